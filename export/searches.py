"""Searches of an export as graphs, from token ids to hypotheses."""

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_transformer.decoding import Beam, Greedy, Sample
from keras_transformer.tasks.generator import SOURCE, Generator


def traced(search) -> Callable:
    """Returns a search as a graph that all of its endpoints share."""
    return tf.function(search, input_signature=search.inputs, autograph=False)


def search_of(pipeline, options) -> Any:
    """Returns the search of an export that cannot draw its outputs at random.

    A pipeline that draws them is exported with greedy search, unless the options name a search.

    Args:
        pipeline: A `Generator`.
        options: Options of a format.
    """
    if options.search is not None:
        return options.search
    return pipeline.greedy if isinstance(pipeline.search, Sample) else pipeline.search


def plain_greedy(pipeline) -> Greedy:
    """Returns greedy search for a format whose only setting is a maximum length."""
    return Greedy(pipeline.search.max_length)


@dataclasses.dataclass(frozen=True)
class ModelSearch:
    """A search of a model, called with token ids `[B, S]`.

    Returns the fields of a `Found` as a dictionary.

    Args:
        pipeline: A `Generator`.
        search: A `Greedy` or `Beam`.
        n_best: Number M of hypotheses.
        alignment, token_scores: See `SearchOptions`.

    Attributes:
        inputs: The `tf.TensorSpec`s of the arguments.
    """

    pipeline: Generator
    search: Greedy | Beam
    n_best: int = 1
    alignment: tuple | None = None
    token_scores: bool = False

    inputs = (SOURCE,)

    def __call__(self, source) -> dict[str, Any]:
        return self._run(self.search, source, alignment=self.alignment)

    def _run(self, search, source, **asked):
        asked["token_scores"] = self.token_scores
        options = self.pipeline.options(n_best=self.n_best, **asked)
        result = search(self.pipeline.searched, source, options)
        return {name: value for name, value in result._asdict().items() if value is not None}

    @property
    def summary(self) -> str:
        """Description of the search for readers."""
        text = "greedy search"
        if isinstance(self.search, Beam):
            text = (
                f"beam search, {self.search.size} hypotheses, `{self.search.normalization}` "
                f"length penalty of {self.search.length_penalty:g}"
            )
        if self.search.repetition_penalty != 1:
            text += f", repetition penalty of {self.search.repetition_penalty:g}"
        if self.pipeline.shortlist is not None:
            text += ", restricted to the candidates of a shortlist"
        return text + _attention(self.alignment, self.pipeline.model.config)


class RequestedSearch(ModelSearch):
    """A beam search whose settings are part of the request, separately for each sentence.

    It is called with the token ids `[B, S]` and with settings `[B]`: `beam_size`, from 1 to the
    size of its `Beam`, `length_penalty` and `max_length`.
    """

    settings = (
        tf.TensorSpec([None], tf.int32, name="beam_size"),
        tf.TensorSpec([None], tf.float32, name="length_penalty"),
        tf.TensorSpec([None], tf.int32, name="max_length"),
    )
    inputs = (SOURCE, *settings)
    search: Any

    def __call__(self, source, beam_size, length_penalty, max_length) -> dict[str, Any]:
        search = self.requested(length_penalty, max_length)
        return self._run(search, source, sizes=beam_size)

    def requested(self, length_penalty, max_length) -> Greedy | Beam:
        """Returns the `Beam` with the length penalty and the maximum length of a request."""
        settings = {"length_penalty": length_penalty, "max_length": max_length}
        return dataclasses.replace(self.search, extra_length=None, **settings)

    @property
    def summary(self) -> str:  # noqa: D102
        return (
            f"beam search with 1 to {self.search.size} hypotheses and a "
            f"`{self.search.normalization}` length penalty, as set in the request. With 1 "
            "hypothesis it is greedy search."
        )


def _attention(alignment, config):
    """Returns the end of a summary, about the attention that a search returns."""
    if alignment is None:
        return "."
    layer, head = alignment
    layers, heads = config.decoder_layers, config.decoder.block.memory_attention.num_heads
    of = "the mean of its heads" if head is None else f"head {head % heads + 1} of {heads}"
    return f"; attention of decoder layer {layer % layers + 1} of {layers}, {of}."
