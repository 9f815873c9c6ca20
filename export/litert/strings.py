"""Signatures of a .tflite file that take and return strings, with the tokenizer in the graph."""

from collections.abc import Callable

import tensorflow as tf

from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.fast_tokenizer import FastTokenizer
from keras_transformer.tasks.results import COMPLETE
from keras_transformer.tensors import Tensor

NAMES = ("translate", "translate_beam")  # as `names` of `make_signatures`


def check_run(config, tokenizers, quantize="none", origin=None) -> None:
    """Checks that TensorFlow Text's operators for LiteRT support the vocabularies of a run.

    Raises:
        ExportError: If they do not.
    """
    if None in (config.encoder, config.decoder):
        return  # such a model has no signatures for strings, which is reported later
    for side in dict.fromkeys(tokenizers):
        FastTokenizer(side, config.max_length)


class StringSignatures:
    """Signatures that take and return strings.

    Args:
        pipeline: A `Translator`.
        sentences: List of strings, for which TensorFlow Text must return the same tokens.
        signatures: List of the `FixedSignature`s, also an attribute.

    Raises:
        ExportError: If the model has no encoder, or the tokens differ.
    """

    def __init__(self, pipeline, sentences, signatures):
        if not pipeline.blank:
            raise ExportError(
                f"`tokenizer` needs a model with an encoder. Received: one for {pipeline.task}. "
                "Export without the tokenizer."
            )
        source, target = pipeline.tokenizers
        self.signatures, self._output = signatures, pipeline.output
        longest = pipeline.max_length
        self._encoder = self._decoder = FastTokenizer(source, longest)
        self._encoder.require_same_pieces(sentences)
        if target is not source:
            self._decoder = FastTokenizer(target, longest)

    def function(self, find, signature) -> Callable[..., dict[str, Tensor]]:
        """Returns the function of a signature.

        Args:
            find: Function from token ids `[1, S]` and, with a beam, `extra_length` and
                `length_penalty` to a `Found`.
            signature: One of `signatures`.
        """
        encoder, decoder = self._encoder, self._decoder

        def translate(sentence, **controls):
            source, truncated, empty = encoder.encode(sentence, signature.source_length)
            found = find(source, **controls)
            best = tf.reshape(found.tokens, [signature.target_length])
            best = tf.where(empty, decoder.eos_id, best)  # [T], no text for an empty sentence
            return {
                self._output: decoder.decode(best),
                "score": tf.where(empty, 0.0, tf.reshape(found.scores, [1])),
                "truncated": truncated,
                COMPLETE: empty | tf.reshape(found.complete, [1]),
            }

        return translate
