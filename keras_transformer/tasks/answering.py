"""The interface of everything that answers: pipelines of runs, and opened exports."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from keras_transformer.options import LANGUAGES, OptionError
from keras_transformer.tasks.results import Translation
from keras_transformer.tasks.strings import check_sentences, map_sorted

Kind = TypeVar("Kind", bound="Answering")
Pass = TypeVar("Pass", bound="PassAnswering")
Progress = Callable[[int], object] | None


class Answering:
    """Something that answers inputs of a task: the pipeline of a run, or an opened export.

    The methods `with_...` return a new object, which shares weights and engines with this one, and
    leave this one as it was.

    Attributes:
        task: Name of the task.
        output: Name of the answer in a signature.
        generates: Whether a search generates the answers.
        has_source: Whether answers are generated for a source, to which the model attends.
        search: The search. `None`: the model answers in one pass, or an export has its own.
        tokenizers: The `Tokenizers`, or `None`.
        max_length: Maximum length of an input in tokens, or `None` if inputs have no length.
    """

    task: str = ""
    output: str = ""
    generates = has_source = False
    search: Any = None
    tokenizers: Any = None
    max_length: Any = None

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the settings that `with_settings` replaces."""
        return ()

    @property
    def accepts(self) -> tuple[str, ...]:
        """Names of the options of `keras-transformer predict` that have an effect.

        `"search"` stands for the options of all searches but sampling, `"sample"` for the options
        of sampling.
        """
        return ()

    def __call__(
        self, inputs: Any, search: Any = None, batch_size: int = 64, **options: Any
    ) -> Any:
        """Returns the text of the answer to one input, or of the answers to a list, in order.

        Args:
            inputs, search, batch_size: See `answer`.
            **options: Further arguments of `answer`.

        Raises:
            TypeError, ValueError: See `answer`.
        """
        answers = self.answer(inputs, search, batch_size, **options)
        return answers.text if self.is_one(inputs) else [answer.text for answer in answers]

    def answer(
        self, inputs: Any, search: Any = None, batch_size: int = 64, progress: Progress = None
    ) -> Any:
        """Returns the result for one input, such as a `Translation`, or a list for a list.

        Args:
            inputs: An input of the task, such as a string, or a list of inputs.
            search: A search to use instead of the attribute `search`. `None`: that attribute.
            batch_size: Number of inputs answered at a time. A batch contains inputs of similar
                size.
            progress: Function that is called after each batch with the number of answered inputs.
                `None`: no progress is shown.

        Raises:
            TypeError: If `inputs` is neither an input nor a list of inputs.
            ValueError: If the search does not fit the model, or `search` has no effect.
        """
        other = self if search is None else self.with_search(search)
        one = self.is_one(inputs)
        inputs = self.check_inputs([inputs] if one else inputs)
        results = map_sorted(other.answer_prepared, inputs, batch_size, self.size_of, progress)
        return results[0] if one else results

    def n_best(
        self,
        inputs: Any,
        n: int,
        search: Any = None,
        batch_size: int = 64,
        numbers: Sequence[int] | None = None,
        progress: Progress = None,
    ) -> list:
        """Returns the `n` best results for one input, the best first, or a list of them for a list.

        Args:
            inputs, search, batch_size, progress: See `answer`.
            n: Maximum number of results of an input.
            numbers: For a `Sample`, an integer of 32 bits for each input, which replaces its index
                in the list.

        Raises:
            TypeError: See `answer`.
            ValueError: If there are not `n` results; see `answer` for others.
        """
        other = self if search is None else self.with_search(search)
        one = self.is_one(inputs)
        inputs = self.check_inputs([inputs] if one else inputs)
        batch = functools.partial(other.n_best_batch, n=n)
        results = map_sorted(batch, inputs, batch_size, self.size_of, progress)
        return results[0] if one else results

    def answer_batch(self, inputs: Any, /) -> list:
        """Returns the result for each of a list of inputs, computed as one batch."""
        raise NotImplementedError

    def answer_prepared(self, inputs: list, /) -> list:
        """Returns the results for a batch of inputs that `check_inputs` has returned."""
        return self.answer_batch(inputs)

    def n_best_batch(self, inputs: Any, n: int) -> list[list]:
        """Returns up to `n` different results for each of a list of inputs, the best first."""
        if n != 1:
            raise OptionError("n", f"must be 1 for a model for {self.task}. Received: n={n}.")
        return [[answer] for answer in self.answer_batch(inputs)]

    def is_one(self, inputs: Any) -> bool:
        """Returns whether `inputs` is one input of the task, not a list of inputs."""
        return isinstance(inputs, str | bytes)

    def check_inputs(self, inputs: Any) -> list:
        """Returns a list of inputs after checking them.

        Raises:
            TypeError: If `inputs` is something else.
        """
        return check_sentences(inputs)

    def size_of(self, example: Any) -> int:
        """Returns a number by which inputs are sorted into batches."""
        return len(example)

    def attention(self, example: Any, /) -> dict[str, Any]:
        """Returns the attention weights for an input, by the names of the kinds of attention.

        Raises:
            ValueError: If the model or the export has none.
        """
        raise ValueError(f"A model for {self.task} has no attention weights to show.")

    @property
    def has_languages(self) -> bool:
        """`True` if `with_languages` chooses among languages."""
        return False

    def with_search(self: Kind, search: Any) -> Kind:
        """Returns an object that differs in its search.

        Raises:
            TypeError, ValueError: If there is no search, or not this one.
        """
        reason = f"has no effect on a model for {self.task}"
        raise OptionError("search", f"{reason}. Received: search={search!r}.")

    def with_shortlist(self: Kind, shortlist: Any) -> Kind:
        """Returns an object that differs in its `Shortlist`; `None` removes the shortlist.

        Raises:
            ValueError: If there is no search that uses one, or it belongs to other vocabularies.
        """
        raise OptionError(
            "shortlist",
            f"has no effect on a model for {self.task}: it needs a run that generates a text from "
            "a text.",
        )

    def beam_with(self, **settings: Any) -> Any:
        """Returns a `Beam` with some settings; an export gives the others their fixed values.

        Raises:
            TypeError, ValueError: If a setting is unknown, or does not have such a value.
        """
        from keras_transformer.decoding import Beam

        return Beam(**settings)

    def sample_with(self, **settings: Any) -> Any:
        """Returns a `Sample` with some settings; an export gives the others its defaults.

        Raises:
            TypeError, ValueError: If a setting is unknown, or out of range.
        """
        from keras_transformer.decoding import Sample

        return Sample(**settings)

    def with_languages(self: Kind, source: str | None = None, target: str | None = None) -> Kind:
        """Returns an object that differs in its languages; `None` keeps one.

        Raises:
            ValueError: If a code is unknown, or there are no languages to choose from.
        """
        for name, code in zip(LANGUAGES, (source, target), strict=True):
            if code is not None:
                raise OptionError(
                    name, f"has no effect: the languages are fixed. Received: {name}={code!r}."
                )
        return self

    def with_settings(self: Kind, **settings: Any) -> Kind:
        """Returns an object that differs in some of its `settings`.

        Args:
            **settings: Values by name.

        Raises:
            TypeError: If a value has a wrong type.
            ValueError: If a value is out of range, or a setting has no effect.
        """
        self.check_settings(settings)
        return self

    def check_settings(self, settings: dict[str, Any]) -> None:
        """Raises an `OptionError` for a name that is not one of the `settings`."""
        for name, value in settings.items():
            if name not in self.settings:
                reason = f"has no effect on a model for {self.task}"
                raise OptionError(name, f"{reason}. Received: {name}={value!r}.")


class TextAnswering(Answering):
    """Something that generates texts.

    Attributes:
        result: Class of the results, such as `Translation`.
        blank: Whether an empty input has an empty output.
        has_source: Whether texts are generated for a source, to which the model attends.
    """

    generates, blank = True, True
    has_source = False
    result: Any = Translation

    @property
    def max_outputs(self) -> int | None:
        """Maximum number of outputs of an input; `None`: any number."""
        return None

    def answer(
        self,
        inputs: Any,
        search: Any = None,
        batch_size: int = 64,
        progress: Progress = None,
        numbers: Sequence[int] | None = None,
    ) -> Any:
        """Returns the `result` for a string, or a list of them for a list of strings.

        Args:
            inputs, search, batch_size, progress: See `Answering.answer`.
            numbers: See `n_best`.
        """
        return super().answer(inputs, search, batch_size, progress)

    def streamer(self, count: int) -> Any:
        """Returns the `Streamer`, which generates texts token by token.

        Args:
            count: Maximum number of texts at a time.

        Raises:
            ValueError: If the model returns no tokens before its search has ended.
        """
        raise ValueError(f"a model for {self.task} in this form generates no single tokens.")

    @property
    def aligns(self) -> bool:
        """`True` if `align` works."""
        return False

    @property
    def has_languages(self) -> bool:  # noqa: D102
        return self.tokenizers is not None and self.tokenizers.languages is not None


class SourceAnswering(TextAnswering):
    """Something that generates a text for a source."""

    blank = has_source = True


class PassAnswering(Answering):
    """Something that answers in one pass.

    Attributes:
        codec: The `Codec`, or its class if the codec needs no metadata.
        codec_class: Class of the codec.
    """

    codec: Any = None
    codec_class: Any = None

    def __call__(  # noqa: D102
        self, inputs: Any, search: Any = None, batch_size: int = 64, **options: Any
    ) -> Any:
        if not self.codec.simulates:
            return super().__call__(inputs, search, batch_size, **options)
        other = self if search is None else self.with_search(search)
        return self.codec.simulate(other.run, inputs, batch_size)

    def run(self, **tensors: Any) -> dict[str, Any]:
        """Returns the numbers of the model for its inputs, both as arrays by name."""
        raise NotImplementedError

    def answer_part(self, part: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """Returns the answers to a part of an example, arrays `[B, ...]` by name.

        Args:
            part: One of `Codec.parts`, such as `"queries"`.
            texts: Sequence of B strings.
        """
        raise NotImplementedError

    def part_vectors(
        self, part: str, texts: Sequence[str], batch_size: int = 64
    ) -> list[np.ndarray]:
        """Returns the vectors of tokens that are compared, an array `[tokens, N]` for each text.

        Args:
            part, texts: See `answer_part`.
            batch_size: Number of texts at a time. A batch contains texts of similar length.
        """

        def embed(batch):
            answers = self.answer_part(part, batch)
            pairs = zip(answers["vectors"], answers["mask"], strict=True)
            return [vectors[mask] for vectors, mask in pairs]

        return map_sorted(embed, texts, batch_size)

    def is_one(self, inputs: Any) -> bool:  # noqa: D102
        return self.codec.is_one(inputs)

    def check_inputs(self, inputs: Any) -> list:  # noqa: D102
        return self.codec.check(inputs)

    def size_of(self, example: Any) -> int:  # noqa: D102
        return self.codec.size(example)

    @property
    def has_languages(self) -> bool:  # noqa: D102
        return self.codec.choices.has_languages

    def with_languages(self: Pass, source: str | None = None, target: str | None = None) -> Pass:  # noqa: D102
        if not self.has_languages or source is target is None:
            return super().with_languages(source, target)
        return self.with_settings(**self.codec.choices.for_languages(source, target))
