"""Codes of target languages at the beginning of texts, as in `<2de> A dog.`

`WrittenCodes` are tokens of a SentencePiece model. Those of Marian, such as `>>fra<<`, are tokens
that the SentencePiece model does not have: `split_code` and `split_codes` take them out of a text.
"""

import dataclasses
import re

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.white_space import SPACE

CODE = "[A-Za-z][A-Za-z0-9_-]*"
# The pattern of Hugging Face's tokenizer for Marian models.
MARIAN_CODE = re.compile(">>.*?<<", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class WrittenCodes:
    """Codes of languages at the beginning of texts, which a vocabulary has as tokens of text.

    A text begins with a code if only white space precedes it. In a graph, an unknown code is text.

    Args:
        form: How a code is written, with `{}` in its place, such as `"<2{}>"`.
        codes: Codes of the languages.

    Reference: Kudugunta et al. (2023), "MADLAD-400"; Johnson et al. (2017), section 3.
    """

    form: str
    codes: tuple[str, ...]

    def name(self, code) -> str:
        """Returns a code as it is written."""
        return self.form.format(code)

    @property
    def example(self) -> str:
        """The first code as it is written."""
        return self.name(self.codes[0])

    def of(self, text) -> str | None:
        """Returns the code, perhaps an unknown one, with which a text begins, or `None`.

        Args:
            text: A string, or bytes of UTF-8.
        """
        return self.split(text.decode(errors="replace") if isinstance(text, bytes) else text)[0]

    def split(self, text) -> tuple[str | None, str]:
        """Returns the result of `of`, and the text after the code and a space."""
        begin, end = map(re.escape, self.form.split("{}"))
        match = re.match(rf"\s*{begin}({CODE}){end} ?", text)
        return (None, text) if match is None else (match[1], text[match.end() :])

    def are_in(self, strings) -> Tensor:
        """Returns which of `[B]` strings begin with known codes, `[B]`."""
        return tf.strings.regex_full_match(strings, rf"(?s){SPACE}*{self._pattern}.*")

    def written(self, strings, code) -> Tensor:
        """Returns strings `[B]` that all begin with codes, without white space before them.

        A text without words becomes its code.

        Args:
            strings: Strings `[B]`.
            code: Code of the language of those that begin with none.
        """
        own = tf.strings.regex_replace(strings, rf"(?s)^{SPACE}*({self._pattern})", r"\1")
        front = self.name(code)
        words = tf.strings.join([front + " ", strings])
        texts = tf.where(self.are_in(strings), own, words)
        return tf.strings.regex_replace(texts, rf"(?s)^({self._pattern}){SPACE}*$", r"\1")

    @property
    def _pattern(self):
        begin, end = map(re.escape, self.form.split("{}"))
        return f"{begin}(?:{'|'.join(map(re.escape, self.codes))}){end}"


def split_code(string, table, unk_id) -> tuple[list[int], str]:
    """Splits the language code from the beginning of a string.

    Args:
        string: The string.
        table: A `PieceTable`. If it has no codes, nothing is split off.
        unk_id: Id of a code that the model does not have.

    Returns:
        A list of the id of the code, empty without a code; and the rest of the string.
    """
    match = MARIAN_CODE.match(string) if table.codes else None
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
    has = tf.strings.regex_full_match(strings, f"(?s){MARIAN_CODE.pattern}.*")  # [B]
    codes = tf.strings.regex_replace(strings, f"(?s)^({MARIAN_CODE.pattern}).*$", r"\1")
    equal = tf.equal(tf.expand_dims(codes, 1), tf.constant(names))  # [B, number of codes]
    known = tf.reduce_max(tf.where(equal, tf.constant(ids), -1), axis=1)  # [B]
    known = tf.where(known < 0, unk_id, known)
    codes = tf.RaggedTensor.from_row_lengths(
        tf.boolean_mask(known, has), tf.cast(has, tf.int64), validate=False
    )
    rest = tf.strings.regex_replace(strings, f"(?s)^{MARIAN_CODE.pattern}", "")
    return codes, tf.where(has, rest, strings)
