"""Languages of a translation model, which are tokens in front of its texts."""

import dataclasses
import difflib

import numpy as np

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.language_names import close_names
from keras_transformer.text.written_codes import WrittenCodes

SHOWN = 5  # languages in an error
DETECTED = "auto"  # in place of a code: the model detects the language of a recording
TRANSCRIBE, TRANSLATE, ENGLISH = "transcribe", "translate", "en"  # tasks of Whisper; a language


@dataclasses.dataclass(frozen=True)
class Languages:
    """Languages of one side of a model, with their tokens and a default for each side.

    The ids of a source begin with the token of the target language, in most models also with that
    of its own language; the model decides what it does with them, see `language_codes` of
    `TransformerConfig`. The ids of a target may begin with the token of its language.

    In other models, the code of the target language is written into the source, as in
    `"<2de> A dog."`. A text may then begin with a code of its own, which takes precedence over the
    default; see `WrittenCodes`.

    Args:
        ids: Dictionary from the codes of the languages, such as `"deu_Latn"`, to token ids.
        source: Code of the default source language. `None`: there is no default.
        target: Code of the default target language. `None`: there is no default.
        of_source: Whether a text also has the token of the source language in front.
        written: How texts begin with the code of the target language, with `{}` in its place, such
            as `"<2{}>"`. `None`: its token is not text.
        before: Ids of the tokens in front of those of the languages.

    Raises:
        ValueError: If a default is not one of the languages.
    """

    ids: dict
    source: str | None = None
    target: str | None = None
    of_source: bool = True
    written: str | None = None
    before: tuple[int, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "before", tuple(self.before))  # a list in JSON
        for side in ("source", "target"):
            self.check(side, getattr(self, side))

    def check(self, side, code) -> None:
        """Raises a `ValueError` unless a code is one of the languages, or `None`.

        Args:
            side: `"source"` or `"target"`, for the message.
            code: Code of a language.
        """
        self.check_named(f"{side}_language", code)

    def check_named(self, name, code) -> None:
        """Raises a `ValueError`, which names the argument, as `check` does."""
        if code is not None and not self._knows(code):
            raise ValueError(f"`{name}` must be {self._one_of(code)}. Received: {code!r}.")

    def _knows(self, code):
        return isinstance(code, str) and code in self.ids

    def _one_of(self, code):
        """Returns a description of the languages for a message, with those that are like a code."""
        close = difflib.get_close_matches(str(code), self.ids, SHOWN, cutoff=0.3)
        begin = [name for name in self.ids if name[:2] == str(code)[:2].lower()]
        names = close_names(code, self.ids, SHOWN)
        shown = list(dict.fromkeys([*names, *begin, *close, *self.ids]))[:SHOWN]
        return f"one of the {len(self.ids)} languages of the model, such as {', '.join(shown)}"

    def examples(self) -> str:
        """Returns a few codes as text."""
        return ", ".join([*self.ids][:SHOWN])

    def replaced(self, source=None, target=None) -> "Languages":
        """Returns languages with other defaults; `None` keeps one.

        Raises:
            ValueError: If a code is not one of the languages, or the tokens in front of a text do
                not depend on the source language.
        """
        if source is not None and not self.of_source:
            raise ValueError(
                "`source_language` must be None: the model reads the language of the target only. "
                f"Received: {source!r}."
            )
        return dataclasses.replace(self, source=source or self.source, target=target or self.target)

    def with_any(self) -> "Languages":
        """Returns languages with the first one in place of each default that is missing."""
        missing = {side: next(iter(self.ids)) for side in self.sides if getattr(self, side) is None}
        return self.replaced(**missing)

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides whose tokens are in front of a text, in order."""
        return ("target", "source") if self.of_source else ("target",)

    @property
    def size(self) -> int:
        """Number of ids in front of a text."""
        return len(self.before) + len(self.sides)

    @property
    def codes(self) -> WrittenCodes | None:
        """The `WrittenCodes` of texts, or `None`."""
        return None if self.written is None else WrittenCodes(self.written, tuple(self.ids))

    @property
    def prefix(self) -> list[int]:
        """Ids in front of a text, a list of `size`.

        Raises:
            ValueError: If a language has no default.
        """
        self.require_defaults()
        return [*self.before, *(self.ids[getattr(self, side)] for side in self.sides)]

    def require_defaults(self) -> None:
        """Raises a `ValueError` if a language has no default."""
        for side in self.sides:
            if getattr(self, side) is None:
                raise ValueError(self.missing(side))

    def missing(self, side) -> str:
        """Returns the message about a side without a default."""
        rest = ", ..." if len(self.ids) > SHOWN else ""
        example = "" if self.codes is None else self.codes.example
        own = f", or each text must begin with one, such as {example}" if example else ""
        return (
            f"`{side}_language` must be chosen, because the model has no default: one of "
            f"{self.examples()}{rest}{own}."
        )

    def fronts(self, texts) -> Tensor:
        """Returns the default ids in front of each of a list of texts, int32 `[B, size]`.

        Args:
            texts: List of strings; they may begin with codes of their own, which are checked.

        Raises:
            ValueError: If a text begins with the code of an unknown language, or without a code
                while there is no default.
        """
        if self.codes is None:
            return tf.tile([self.prefix], [len(texts), 1])
        for number, code in enumerate(map(self.codes.of, texts)):
            if code is not None and not self._knows(code):
                raise ValueError(
                    f"{self.codes.name(code)} at the beginning of a text must name "
                    f"{self._one_of(code)}."
                )
            if code is None and self.target is None and texts[number].strip():
                raise ValueError(self.missing("target"))
        return tf.tile([self.with_any().prefix], [len(texts), 1])

    @property
    def front_rule(self) -> str:
        """The tokens in front of a text, for messages and metadata."""
        if self.of_source:
            return "the token of the target language and that of the source language"
        return f"{self.size} tokens, of which the last is that of the target language"

    def begin(self, ids) -> bool:
        """Returns true if a list of ids begins as an encoded text does."""
        fixed, codes = ids[: len(self.before)], ids[len(self.before) : self.size]
        known = {*codes} <= {*self.ids.values()}
        return tuple(fixed) == self.before and known and len(codes) == len(self.sides)

    def begins_with(self, front) -> Tensor:
        """Returns which ids of rows `[B, size or more]` are those of languages, `[B, size]`."""
        fixed = tf.equal(front[:, : len(self.before)], self.before)  # [B, before]
        codes = tf.expand_dims(front[:, len(self.before) : self.size], 2)  # [B, sides, 1]
        known = tf.reduce_any(tf.equal(codes, [*self.ids.values()]), axis=2)  # [B, sides]
        return tf.concat([fixed, known], axis=1)

    def look_up(self, side, codes) -> tuple[Tensor, Tensor]:
        """Returns the ids of languages in the graph, `[B]`, and which codes are known, `[B]`.

        Args:
            side: `"source"` or `"target"`.
            codes: Strings `[B]`. The empty string stands for the default.
        """
        default = getattr(self, side)
        return look_up({**self.ids, **({} if default is None else {"": self.ids[default]})}, codes)


def with_front(ids, front, languages, texts) -> "tf.RaggedTensor":
    """Returns ragged token ids `[B, (S)]` with other ids `[B, N]` in place of the first N.

    Args:
        ids: Ragged token ids, each row with at least N.
        front: Ids of languages, int32 `[B, N]`.
        languages: The `Languages` of the ids.
        texts: The texts of the ids, string `[B]`. Those with codes of their own keep them.
    """
    count = tf.shape(front)[1]
    if languages.codes is not None:
        own = tf.expand_dims(languages.codes.are_in(texts), 1)  # [B, 1]
        front = tf.where(own, ids[:, :count].to_tensor(shape=[None, front.shape[1]]), front)
    return tf.concat([tf.RaggedTensor.from_tensor(front), ids[:, count:]], axis=1)


def look_up(numbers, names) -> tuple[Tensor, Tensor]:
    """Returns the numbers of names in the graph, `[B]`, and which names are known, `[B]`.

    Args:
        numbers: Dictionary from names to integers.
        names: Strings `[B]`.
    """
    equal = tf.equal(tf.expand_dims(names, 1), tf.constant([*numbers]))  # [B, number of names]
    values = tf.constant(np.fromiter(numbers.values(), np.int32))
    places = tf.argmax(tf.cast(equal, tf.int32), axis=1)  # [B]; 0 for an unknown name
    return tf.gather(values, places), tf.reduce_any(equal, axis=1)


def task_for(source, target) -> str | None:
    """Returns the task of a model of speech, which translates to English or not at all.

    Args:
        source: Code of the language of a recording, or `DETECTED`.
        target: Code of the language of the text. `None`: no task is chosen.

    Raises:
        ValueError: If the model has no such task.
    """
    if target is None:
        return None
    if target == source:
        return TRANSCRIBE
    if target != ENGLISH:
        raise ValueError(
            "`target_language` must be the source language, for transcripts, or "
            f"{ENGLISH!r}, for translations. Received: {target!r}."
        )
    return TRANSLATE
