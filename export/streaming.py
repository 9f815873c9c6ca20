"""Exports that return one token of a text a call, whatever runs them."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from keras_transformer.decoding import Greedy, Sample
from keras_transformer.decoding.next_token import GREEDY, control_specs
from keras_transformer.decoding.search import check_search
from keras_transformer.decoding.stored import EXPORTED, as_dict, from_dict
from keras_transformer.export.metadata import METADATA, SEARCH, STREAMING, reading
from keras_transformer.export.numbered import NumberedGenerator
from keras_transformer.export.open_file import OpenFile
from keras_transformer.export.runtime import Decoded, changed
from keras_transformer.export.source_ids import check_source_ids
from keras_transformer.tasks.streams.kept_text import KeptText
from keras_transformer.text.chat_template import ChatTemplate


def past_name(number: int) -> str:
    """Returns the name of an input with heads of earlier tokens."""
    return f"past_{number}"


def check_streamed(search: Any) -> None:
    """Raises a `ValueError` if files for streams of tokens do not hold a search."""
    if not isinstance(search, Greedy | Sample):
        raise ValueError(
            "A file for streams of tokens holds greedy search and sampling: choose one as its "
            f"default with --greedy or --sample. Received: search={search!r}."
        )


def about_streaming(pipeline: Any, nothing: list, search: Any) -> dict[str, Any]:
    """Returns the metadata of a file for streams of tokens.

    Args:
        pipeline: The `TextGenerator`.
        nothing: See `NextToken.nothing`.
        search: The default search of the file, a `Greedy` or a `Sample`.
    """
    template = pipeline.chat_template
    return {
        SEARCH: as_dict(search, EXPORTED),
        STREAMING: {
            "heads": [[*part.shape[:2], part.shape[3]] for part in nothing],
            "hides_start": pipeline.hides_start,
            "chat_template": None if template is None else template.to_dict(),
        },
    }


class OpenStreamer(OpenFile, NumberedGenerator):
    """Base class of loaded files that return one token of a text a call.

    A form defines `_empty_text`.

    Attributes:
        search: Any `Greedy` or `Sample`; that of the export is the default.
        chat_template: The `ChatTemplate` of an instruct model, or `None`.
        hides_start: See `TextGenerator.hides_start`.
    """

    opened_with = ("greedy", "sample", "max_output", "repetition_penalty")
    any_greedy = True

    def take_streaming(self) -> None:
        """Sets the attributes that the metadata of a file determine.

        Raises:
            ValueError: If the metadata are damaged.
        """
        self.take_task()
        with reading(self.path, METADATA):
            self.search: Any = from_dict(self.metadata[SEARCH], EXPORTED)
            about = self.metadata[STREAMING]
            template = about["chat_template"]
            self.chat_template = None if template is None else ChatTemplate.from_dict(template)
            self.hides_start = bool(about["hides_start"])
            self.heads = [tuple(int(size) for size in sizes) for sizes in about["heads"]]
            check_streamed(self.search)
        self._text = self._empty_text()

    def _empty_text(self) -> "ScoredText":
        raise NotImplementedError

    @property
    def target_tokenizer(self) -> Any:
        """The `Tokenizer`."""
        return self.tokenizers.target

    def with_search(self, search: Any) -> Any:
        """Returns a file that differs in its search, with the same model.

        Args:
            search: A `Greedy` or a `Sample`.

        Raises:
            TypeError: If `search` is something else.
        """
        check_search(search, Greedy, Sample)
        return changed(self, search=search)

    def sample_with(self, **settings: Any) -> Sample:  # noqa: D102
        held = self.search if isinstance(self.search, Sample) else Sample()
        return dataclasses.replace(held, **settings)

    def kept_text(self) -> "ScoredText":
        """Returns a `KeptText` of the model, which has no tokens yet."""
        return self._text.another()

    def streamer(self, count: int) -> Any:  # noqa: D102
        from keras_transformer.tasks.streams.streamer import Streamer

        return Streamer(self, count)

    def find(
        self, sources: list[list[int]], n: int = 1, numbers: Sequence[int] | None = None
    ) -> Decoded:
        """Continues token ids, one text after the other; see `NumberedGenerator`.

        Raises:
            ValueError: If a source is longer than `max_length`, or its ids are invalid.
        """
        check_source_ids(sources, self.tokenizers.source)
        for number, source in enumerate(sources):
            if len(source) > self.max_length:
                raise ValueError(
                    f"`sources[{number}]` has {len(source)} tokens including eos_id, but "
                    f"{self.path} takes at most {self.max_length}."
                )
        shape, pad_id = (len(sources), 1), self.tokenizers.target.pad_id
        tokens = np.full([*shape, self.max_length], pad_id, np.int32)
        scores, complete = np.zeros(shape, np.float32), np.zeros(shape, bool)
        numbers = range(len(sources)) if numbers is None else numbers
        text = self.kept_text()
        for row, (source, number) in enumerate(zip(sources, numbers, strict=True)):
            prompt, found = source[:-1], []  # without its end
            for token, score in text.scored(prompt, self.search, number):
                found.append(token)
                scores[row, 0] += score
            tokens[row, 0, : len(prompt) + len(found)] = [*prompt, *found]
            complete[row, 0] = found[-1] == self.tokenizers.target.eos_id
        return Decoded(tokens, scores, complete)


class ScoredText(KeptText):
    """A `KeptText` of a file; a form defines `_next`.

    Args:
        opened: The `OpenStreamer`.
        nothing: See `KeptText`.
    """

    def __init__(self, opened: OpenStreamer, nothing: Any):
        tokenizer = opened.target_tokenizer
        super().__init__(tokenizer.bos_id, opened.max_length, nothing)
        self._eos_id = tokenizer.eos_id

    def _generate(self, prompt, search, number):
        for token, _ in self.scored(prompt, search, number):
            yield token

    def scored(self, prompt: Sequence[int], search: Any, number: int) -> Iterator:
        """Yields the tokens of `generate`, each with its log-probability."""
        inputs, limit = [self._bos_id, *prompt], self.limit(prompt, search)
        settings = {**controls_of(search, number), "limit": np.array([limit], np.int32)}
        self._keep_only(self._common(inputs))
        while True:
            token, score = self._next(inputs, settings)
            inputs.append(token)
            yield token, score
            if token == self._eos_id or len(inputs) - 1 >= limit:
                return

    def _keep_only(self, count):
        """Drops the heads of all tokens but the first `count` ones."""
        raise NotImplementedError

    def _next(self, inputs, settings):
        """Returns the next token and its log-probability, and keeps the heads of all inputs.

        Args:
            inputs: Ids of all tokens, with the one that begins a text, a list. The first ones are
                those whose heads are kept.
            settings: The settings of the search, arrays by name.
        """
        raise NotImplementedError


def controls_of(search: Any, number: int) -> dict[str, np.ndarray]:
    """Returns the settings of a search of a text with a number, as inputs by name.

    Args:
        search: A `Greedy` or a `Sample`.
        number: See `KeptText.generate`.
    """
    sample = search
    if isinstance(search, Greedy):
        sample = Sample(repetition_penalty=search.repetition_penalty)
    values = {spec.name: getattr(sample, spec.name) for spec in control_specs()}
    values["seed"] = [sample.seed, number]
    if isinstance(search, Greedy):
        values["temperature"] = GREEDY
    return {
        spec.name: np.array(
            np.broadcast_to(values[spec.name], spec.shape), spec.dtype.as_numpy_dtype
        )
        for spec in control_specs()
    }
