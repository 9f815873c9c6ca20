"""The searches of an export: from token ids to tokens and scores, as graphs."""

import tensorflow as tf

from keras_transformer.decoding import beam_decode, greedy_decode
from keras_transformer.decoding.beam import check_beam
from keras_transformer.tasks.beam_translator import search_with_limit

SOURCE = tf.TensorSpec([None, None], tf.int32, name="source")


def traced(search):
    """Returns a search as one graph, which all endpoints share that use it."""
    return tf.function(search, input_signature=search.inputs, autograph=False)


class GreedySearch:
    """`greedy_decode`, from token ids `[B, S]` to `tokens` `[B, L]` and `score` `[B]`.

    With an alignment also to `alignment` `[B, L, S]`.

    Args:
        translator: A `Translator`.
        alignment: See `greedy_decode`.

    Attributes:
        inputs: The `tf.TensorSpec`s of what it is called with.
        summary: How it searches, for people.
        searcher: The `Translator`, or the `BeamTranslator`, whose search it is.
    """

    inputs = (SOURCE,)

    def __init__(self, translator, alignment=None):
        self.searcher, self._alignment = translator, alignment
        self.summary = "greedy search" + _attention(alignment, translator.model.config)

    def aligned(self, alignment):
        """Returns the same search, with an alignment."""
        return GreedySearch(self.searcher, alignment)

    def __call__(self, source):
        translator = self.searcher
        found = greedy_decode(
            translator.model, source, translator.max_length, alignment=self._alignment
        )
        return _outputs(found)


class BeamSearch:
    """`beam_decode`, from token ids `[B, S]` to `tokens` `[B, M, L]` and `score` `[B, M]`.

    With an alignment also to `alignment` `[B, M, L, S]`.

    Args:
        beam: A `BeamTranslator`.
        n_best: Hypotheses M. `None`: the best one, without that axis, as `GreedySearch` gives it.
        alignment: See `beam_decode`.

    Raises:
        ValueError: If `n_best` is not between 1 and the size of the beam.

    Attributes:
        inputs: The `tf.TensorSpec`s of what it is called with.
        summary: How it searches, for people.
        searcher: The `Translator`, or the `BeamTranslator`, whose search it is.
    """

    inputs = (SOURCE,)

    def __init__(self, beam, n_best=None, alignment=None):
        check_beam(
            beam.beam_size, 1 if n_best is None else n_best, beam.length_penalty, beam.normalization
        )
        self.searcher, self._n_best, self._alignment = beam, n_best, alignment
        self.summary = (
            f"beam search, {beam.beam_size} hypotheses, penalty for the length "
            f"`{beam.normalization}` {beam.length_penalty:g}"
            f"{_attention(alignment, beam.translator.model.config)}"
        )

    def aligned(self, alignment):
        """Returns the same search, with an alignment."""
        return BeamSearch(self.searcher, self._n_best, alignment)

    def __call__(self, source):
        beam = self.searcher
        translator = beam.translator
        found = search_with_limit(
            translator,
            source,
            beam.beam_size,
            self._n_best or 1,
            beam.normalization,
            beam.length_penalty,
            beam.min_length,
            translator.max_length if beam.extra_length is None else beam.extra_length,
            self._alignment,
        )
        outputs = _outputs(found)  # [B, M, ...]
        if self._n_best is None:
            outputs = {name: tf.squeeze(value, 1) for name, value in outputs.items()}
        return outputs


class BeamSearchAsAsked:
    """`beam_decode` with settings for each sentence, to `tokens` `[B, M, L]` and `score` `[B, M]`.

    Beside the token ids `[B, S]` it takes the settings, each `[B]`: `beam_size`, from 1 to that of
    `beam`, `length_penalty` and `max_length`.

    Args:
        beam: A `BeamTranslator`, whose other settings are used.
        n_best: Hypotheses M.

    Attributes:
        inputs: The `tf.TensorSpec`s of what it is called with.
        settings: Those of the settings.
        summary: How it searches, for people.
    """

    settings = (
        tf.TensorSpec([None], tf.int32, name="beam_size"),
        tf.TensorSpec([None], tf.float32, name="length_penalty"),
        tf.TensorSpec([None], tf.int32, name="max_length"),
    )
    inputs = (SOURCE, *settings)

    def __init__(self, beam, n_best):
        check_beam(beam.beam_size, n_best, beam.length_penalty, beam.normalization)
        self.searcher, self._n_best = beam, n_best
        self.summary = (
            f"beam search, 1 to {beam.beam_size} hypotheses, penalty for the length "
            f"`{beam.normalization}`, as the request asks for. With 1 it is greedy search."
        )

    def __call__(self, source, beam_size, length_penalty, max_length):
        beam = self.searcher
        found = beam_decode(
            beam.translator.model,
            source,
            beam.beam_size,
            self._n_best,
            length_penalty,
            beam.normalization,
            beam.min_length,
            max_length,
            cache_length=beam.translator.max_length,
            beam_sizes=beam_size,
        )
        return _outputs(found)


def _attention(alignment, config):
    """The end of a summary: whose attention a search tells."""
    if alignment is None:
        return "."
    layer, head = alignment
    layers, heads = config.decoder_layers, config.num_heads
    of = "the mean of its heads" if head is None else f"head {head % heads + 1} of {heads}"
    return f"; attention of decoder layer {layer % layers + 1} of {layers}, {of}."


def _outputs(found):
    """What a search found, by the names of an export."""
    if isinstance(found, dict):
        return {
            "tokens": found["tokens"],
            "score": found["scores"],
            "alignment": found["alignment"],
        }
    tokens, scores = found
    return {"tokens": tokens, "score": scores}
