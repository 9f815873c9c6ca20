"""`WrittenCodes`: codes of target languages that are written into texts, as in `<2de> A dog.`"""

import dataclasses
import re

import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.text.white_space import SPACE

CODE = "[A-Za-z][A-Za-z0-9_-]*"


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
        text = text.decode(errors="replace") if isinstance(text, bytes) else text
        begin, end = map(re.escape, self.form.split("{}"))
        match = re.match(rf"\s*{begin}({CODE}){end}", text)
        return None if match is None else match[1]

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
