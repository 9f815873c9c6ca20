"""Languages of a translation model, which are tokens in front of its texts.

Some models have target-language codes at the beginning of a text instead, such as `>>fra<<`: tokens
that their SentencePiece model does not have.
"""

import dataclasses
import difflib
import re

import numpy as np
import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.text.language_names import close_names

# The pattern of Hugging Face's tokenizer for Marian models.
CODE = re.compile(">>.*?<<", re.DOTALL)


def split_code(string, table, unk_id) -> tuple[list[int], str]:
    """Splits the language code from the beginning of a string.

    Args:
        string: The string.
        table: A `PieceTable`. If it has no codes, nothing is split off.
        unk_id: Id of a code that the model does not have.

    Returns:
        A list of the id of the code, empty without a code; and the rest of the string.
    """
    match = CODE.match(string) if table.codes else None
    if match is None:
        return [], string
    return [table.codes.get(match[0], unk_id)], string[match.end() :]


def split_codes(strings, table, unk_id) -> tuple[Tensor | None, Tensor]:
    """Splits language codes from the beginnings of strings, in the graph.

    Args:
        strings: Strings `[B]`.
        table, unk_id: See `split_code`.

    Returns:
        A ragged tensor of ids `[B, (0 or 1)]`, or `None` if the table has no codes; and the rest of
        each string, `[B]`.
    """
    if not table.codes:
        return None, strings
    names, ids = zip(*table.codes.items(), strict=True)
    has = tf.strings.regex_full_match(strings, f"(?s){CODE.pattern}.*")  # [B]
    codes = tf.strings.regex_replace(strings, f"(?s)^({CODE.pattern}).*$", r"\1")
    equal = tf.equal(tf.expand_dims(codes, 1), tf.constant(names))  # [B, number of codes]
    known = tf.reduce_max(tf.where(equal, tf.constant(ids), -1), axis=1)  # [B]
    known = tf.where(known < 0, unk_id, known)
    codes = tf.RaggedTensor.from_row_lengths(
        tf.boolean_mask(known, has), tf.cast(has, tf.int64), validate=False
    )
    rest = tf.strings.regex_replace(strings, f"(?s)^{CODE.pattern}", "")
    return codes, tf.where(has, rest, strings)


SHOWN = 5  # languages in an error
DETECTED = "auto"  # in place of a code: the model detects the language of a recording
TRANSCRIBE, TRANSLATE, ENGLISH = "transcribe", "translate", "en"  # tasks of Whisper; a language


@dataclasses.dataclass(frozen=True)
class Languages:
    """Languages of one side of a model, with their tokens and a default for each side.

    The ids of a source begin with the token of the target language and that of its own language;
    the model decides what it does with them, see `language_codes` of `TransformerConfig`. The ids
    of a target begin with the token of its language.

    Args:
        ids: Dictionary from the codes of the languages, such as `"deu_Latn"`, to token ids.
        source: Code of the default source language. `None`: there is no default.
        target: Code of the default target language. `None`: there is no default.
        of_source: Whether these are the languages of sources.

    Raises:
        ValueError: If a default is not one of the languages.
    """

    ids: dict
    source: str | None = None
    target: str | None = None
    of_source: bool = True

    def __post_init__(self):
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
        if code is None or isinstance(code, str) and code in self.ids:
            return
        close = difflib.get_close_matches(str(code), self.ids, SHOWN, cutoff=0.3)
        begin = [name for name in self.ids if name[:2] == str(code)[:2].lower()]
        names = close_names(code, self.ids, SHOWN)
        shown = list(dict.fromkeys([*names, *begin, *close, *self.ids]))[:SHOWN]
        raise ValueError(
            f"`{name}` must be one of the {len(self.ids)} languages of the model, such as "
            f"{', '.join(shown)}. Received: {code!r}."
        )

    def examples(self) -> str:
        """Returns a few codes as text."""
        return ", ".join([*self.ids][:SHOWN])

    def replaced(self, source=None, target=None) -> "Languages":
        """Returns languages with other defaults; `None` keeps one.

        Raises:
            ValueError: If a code is not one of the languages.
        """
        return dataclasses.replace(self, source=source or self.source, target=target or self.target)

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides whose tokens are in front of a text, in order."""
        return ("target", "source") if self.of_source else ("target",)

    @property
    def prefix(self) -> list[int]:
        """Ids in front of a text, a list of one or two.

        Raises:
            ValueError: If a language has no default.
        """
        for side in self.sides:
            if getattr(self, side) is None:
                raise ValueError(
                    f"`{side}_language` must be chosen, because the model has no default: one of "
                    f"{self.examples()}{', ...' if len(self.ids) > SHOWN else ''}."
                )
        return [self.ids[getattr(self, side)] for side in self.sides]

    def look_up(self, side, codes) -> tuple[Tensor, Tensor]:
        """Returns the ids of languages in the graph, `[B]`, and which codes are known, `[B]`.

        Args:
            side: `"source"` or `"target"`.
            codes: Strings `[B]`. The empty string stands for the default.
        """
        default = getattr(self, side)
        return look_up({**self.ids, **({} if default is None else {"": self.ids[default]})}, codes)


def with_front(ids, front) -> tf.RaggedTensor:
    """Returns ragged token ids `[B, (S)]` with other ids `[B, N]` in place of the first N.

    Args:
        ids: Ragged token ids, each row with at least N.
        front: Ids of languages, int32 `[B, N]`.
    """
    return tf.concat([tf.RaggedTensor.from_tensor(front), ids[:, tf.shape(front)[1] :]], axis=1)


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
