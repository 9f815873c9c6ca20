"""Signatures of a .tflite file that take and return strings, with the tokenizer in the graph."""

from typing import Any

import tensorflow as tf

from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.fast_tokenizer import FastTokenizer
from keras_transformer.export.litert.packed import make_signatures

NAMES = ("translate", "translate_beam")


def check_run(config, tokenizers, quantize="none", origin=None) -> None:
    """Checks that TensorFlow Text's operators for LiteRT support the vocabularies of a run.

    Raises:
        ExportError: If they do not.
    """
    for side in dict.fromkeys(tokenizers):
        FastTokenizer(side, config.max_length)


def string_options(
    pipeline, sentences, lengths, beam_size=None, greedy_length=None
) -> dict[str, Any]:
    """Returns the options of `convert` for signatures that take strings, a dictionary.

    Args:
        pipeline: A `Translator`.
        sentences: List of strings, for which TensorFlow Text must return the same tokens.
        lengths: Source lengths in tokens.
        beam_size: Number of hypotheses of the beam. `None`: there is no beam.
        greedy_length: Maximum output length of greedy search. `None`: as in the pipeline.

    Raises:
        ExportError: If the model has no encoder, or the tokens differ.
    """
    if not pipeline.blank:
        raise ExportError(
            f"`tokenizer` needs a model with an encoder. Received: one for {pipeline.task}. "
            "Export without the tokenizer."
        )
    source, target = pipeline.tokenizers
    encoder = FastTokenizer(source, pipeline.max_length)
    encoder.require_same_pieces(sentences)
    decoder = encoder if target is source else FastTokenizer(target, pipeline.max_length)
    strings = make_signatures(
        lengths, [1], pipeline.max_length, beam_size, greedy_length=greedy_length, names=NAMES
    )
    return {"strings": strings, "tokenizers": (encoder, decoder), "output": pipeline.output}


def trace_strings(search, signature, tokenizers, output) -> Any:
    """Returns the concrete function of a signature.

    Args:
        search: Function of `source` and, with a beam, of `extra_length` and `length_penalty`.
            Returns a dictionary of `tokens` and `score`.
        signature: A `FixedSignature`.
        tokenizers: Pair of `FastTokenizer`s, of sources and of outputs.
        output: Name of the generated text.
    """
    encoder, decoder = tokenizers

    def translate(sentence, **controls):
        source, truncated, empty = encoder.encode(sentence, signature.source_length)
        outputs = search(source=source, **controls)
        best = tf.reshape(outputs["tokens"], [signature.target_length])
        best = tf.where(empty, decoder.eos_id, best)  # [T], no text for an empty sentence
        return {
            output: decoder.decode(best),
            "score": tf.where(empty, 0.0, tf.reshape(outputs["score"], [1])),
            "truncated": truncated,
        }

    specification = {"sentence": tf.TensorSpec([1], tf.string, name="sentence")}
    if signature.beam_size is not None:
        specification["extra_length"] = tf.TensorSpec([1], tf.int32, name="extra_length")
        specification["length_penalty"] = tf.TensorSpec([1], tf.float32, name="length_penalty")
    return tf.function(translate, autograph=False).get_concrete_function(**specification)
