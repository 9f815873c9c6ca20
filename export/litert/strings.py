"""Signatures of a .tflite file that take a string and give a string: the tokenizer inside."""

import tensorflow as tf

from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.fast_tokenizer import FastTokenizer
from keras_transformer.export.litert.packed import make_signatures

NAMES = ("translate", "translate_beam")


def check_run(config, tokenizers, quantize="none", origin=None):
    """Raises unless LiteRT has the vocabularies of a run.

    Raises:
        ExportError: If TensorFlow Text's operators for it do not.
    """
    for side in dict.fromkeys(tokenizers):
        FastTokenizer(side, config.max_length)


def string_options(pipeline, sentences, lengths, beam_size=None, greedy_length=None):
    """Returns what `convert` needs for the signatures that take strings: options by name.

    Args:
        pipeline: A `Translator`.
        sentences: List of strings, for which TensorFlow Text must give the same pieces.
        lengths: Source lengths in tokens.
        beam_size: Hypotheses of the beam. `None`: there is none.
        greedy_length: Longest output of greedy search. `None`: that of the pipeline.

    Raises:
        ExportError: If the model does not translate, or the pieces are others.
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


def trace_strings(search, signature, tokenizers, output):
    """Returns the concrete function of a signature.

    Args:
        search: What the signature's search does: a function from `source` and, with a beam,
            `extra_length` and `length_penalty` to a dictionary of `tokens` and `score`.
        signature: A `FixedSignature`.
        tokenizers: A pair of `FastTokenizer`s, of sources and of outputs.
        output: Name of the text that is generated.
    """
    encoder, decoder = tokenizers

    def translate(sentence, **controls):
        source, truncated, empty = encoder.encode(sentence, signature.source_length)
        outputs = search(source=source, **controls)
        best = tf.reshape(outputs["tokens"], [signature.target_length])
        best = tf.where(empty, decoder.eos_id, best)  # [T], of an empty sentence nothing
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
