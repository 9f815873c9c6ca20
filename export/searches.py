"""The searches of an export: from token ids to tokens and scores, as graphs."""

import tensorflow as tf

from keras_transformer.beam_translator import search_with_limit
from keras_transformer.decoding import greedy_decode
from keras_transformer.decoding.beam import check_beam

SOURCE = tf.TensorSpec([None, None], tf.int32, name="source")


def traced(search):
    """Returns a search as one graph, which all endpoints share that use it."""
    return tf.function(search, input_signature=[SOURCE], autograph=False)


class GreedySearch:
    """`greedy_decode`, from token ids `[B, S]` to `tokens` `[B, L]` and `score` `[B]`.

    Args:
        translator: A `Translator`.

    Attributes:
        summary: How it searches, for people.
    """

    summary = "greedy search."

    def __init__(self, translator):
        self._translator = translator

    def __call__(self, source):
        translator = self._translator
        tokens, scores = greedy_decode(translator.model, source, translator.max_length)
        return {"tokens": tokens, "score": scores}


class BeamSearch:
    """`beam_decode`, from token ids `[B, S]` to `tokens` `[B, M, L]` and `score` `[B, M]`.

    Args:
        beam: A `BeamTranslator`.
        n_best: Hypotheses M. `None`: the best one, without that axis, as `GreedySearch` gives it.

    Raises:
        ValueError: If `n_best` is not between 1 and the size of the beam.

    Attributes:
        summary: How it searches, for people.
    """

    def __init__(self, beam, n_best=None):
        check_beam(
            beam.beam_size, 1 if n_best is None else n_best, beam.length_penalty, beam.normalization
        )
        self._beam, self._n_best = beam, n_best
        self.summary = (
            f"beam search, {beam.beam_size} hypotheses, penalty for the length "
            f"`{beam.normalization}` {beam.length_penalty:g}."
        )

    def __call__(self, source):
        beam = self._beam
        translator = beam.translator
        tokens, scores = search_with_limit(
            translator,
            source,
            beam.beam_size,
            self._n_best or 1,
            beam.normalization,
            beam.length_penalty,
            beam.min_length,
            translator.max_length if beam.extra_length is None else beam.extra_length,
        )  # [B, M, L], [B, M]
        outputs = {"tokens": tokens, "score": scores}
        if self._n_best is None:
            outputs = {name: tf.squeeze(value, 1) for name, value in outputs.items()}
        return outputs
