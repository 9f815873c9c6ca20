"""Steps of normalisation that Hugging Face's tokenizers apply before they segment a text."""

import dataclasses
import functools
import unicodedata

import numpy as np

from keras_transformer.lazy_tensorflow import tensorflow_text, tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.code_points import CODE_POINTS, CodePointMap, members
from keras_transformer.text.unicode_ranges import (
    APART,
    LOWERCASE,
    MARKS,
    OTHER_MARKS,
    WHOLE,
    WHOLE_COMPATIBLE,
)
from keras_transformer.text.white_space import SPACE

# Replacements of regular expressions, by the name of the step.
REPLACEMENTS = {
    "backquotes": [("``", '"')],
    "apostrophes": [("''", '"')],
    "spaces": [(rf"{SPACE}{{2,}}|[\n\r\t]", " ")],
    "blanks": [(SPACE, " ")],
    "next_line": [(r"\x{85}", " ")],
    "strip": [(rf"^{SPACE}+", ""), (rf"{SPACE}+$", "")],
    "strip_end": [(rf"{SPACE}+$", "")],
}
# Steps that replace each code point independently of the others.
OF_CODE_POINTS = ("decompose", "strip_accents", "lowercase")
# Steps that put a space in front of a text that is not empty, and the beginnings of texts that do
# not get one. SentencePiece writes a space as the last of them.
PREFIXES = {"prefix_space": (), "one_prefix_space": (" ", "▁")}
STEPS = (*REPLACEMENTS, *OF_CODE_POINTS, "compose", *PREFIXES)


@dataclasses.dataclass(frozen=True)
class TextSteps:
    r"""Steps of the normalisation of texts, in order.

    Args:
        names: Names of the steps. `"backquotes"` and `"apostrophes"`: two of them become a
            quotation mark; `"spaces"`: white space of two characters or more, and each line feed,
            carriage return or tab, becomes a space; `"blanks"`: each character of white space
            becomes a space; `"next_line"`: U+0085 does; `"strip"` and `"strip_end"`: white space is
            removed at both ends, or at the end; `"decompose"` and `"compose"`: Unicode's forms NFKD
            and NFC; `"strip_accents"`: all combining marks are removed; `"lowercase"`: each letter
            becomes lower case; `"prefix_space"`: a text that is not empty gets a space in front;
            `"one_prefix_space"`: it gets one unless it begins with a space.

    Call arguments:
        strings: UTF-8 strings, `[B]`.

    Returns:
        Strings, `[B]`.

    Raises:
        ValueError: If there is no such step.
    """

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        unknown = [name for name in self.names if name not in STEPS]
        if unknown:
            raise ValueError(f"`names` must be of {', '.join(STEPS)}. Received: {unknown[0]!r}.")

    def __call__(self, strings) -> Tensor:
        for step in _joined(self.names):
            if step == "compose":
                strings = _compose(strings)
            elif step in PREFIXES:
                strings = _with_space(strings, PREFIXES[step])
            elif step in REPLACEMENTS:
                for pattern, text in REPLACEMENTS[step]:
                    strings = tf.strings.regex_replace(strings, pattern, text)
            else:
                strings = _code_points(step)(strings)
        return strings


def _with_space(strings, beginnings):
    """Returns strings with a space in front, unless they are empty or begin with one of some texts.

    A regular expression would not see the beginning of a text in front of an invalid byte.
    """
    kept = tf.equal(strings, "")
    for beginning in beginnings:
        kept |= tf.equal(tf.strings.substr(strings, 0, len(beginning.encode())), beginning)
    return tf.where(kept, strings, tf.strings.join([" ", strings]))


def _joined(names):
    """Returns the steps, of which consecutive ones of code points are joined to one tuple."""
    steps = []
    for name in names:
        if name not in OF_CODE_POINTS:
            steps.append(name)
        elif steps and isinstance(steps[-1], tuple):
            steps[-1] += (name,)
        else:
            steps.append((name,))
    return steps


@functools.lru_cache(8)
def _code_points(names):
    marks, whole = members(MARKS + OTHER_MARKS), members(WHOLE + WHOLE_COMPATIBLE)
    lower = {chr(p): chr(p + shift) for a, b, shift in LOWERCASE for p in range(a, b + 1)}
    functions = {
        "decompose": lambda x: x if ord(x) in whole else unicodedata.normalize("NFKD", x),
        "strip_accents": lambda x: "" if ord(x) in marks else x,
        "lowercase": lambda x: lower.get(x) or x.lower(),
    }
    changes = {}
    for point in range(CODE_POINTS):
        if 0xD800 <= point < 0xE000:  # does not occur in UTF-8
            continue
        text = chr(point)
        for name in names:
            text = "".join(map(functions[name], text))
        if text != chr(point):
            changes[point] = tuple(map(ord, text))
    return CodePointMap(changes)


def _compose(strings):
    """Returns strings in the form NFC of the version of Unicode that `tokenizers` has.

    TensorFlow Text follows a newer version. A text is cut at the code points between which only the
    newer version does something.
    """
    points = tf.strings.unicode_decode(strings, "UTF-8", errors="replace")  # [B, (N)]
    row = points.value_rowids()
    is_apart = tf.equal(tf.searchsorted(_bounds(), points.values, "right") % 2, 1)  # [N of all]
    cut = is_apart[1:] | is_apart[:-1] | tf.not_equal(row[1:], row[:-1])
    begins = tf.concat([tf.ones_like(is_apart)[:1], cut], 0)[: tf.size(row)]
    number = tf.cumsum(tf.cast(begins, tf.int64)) - 1
    parts = tf.RaggedTensor.from_value_rowids(points.values, number, validate=False)
    texts = tensorflow_text.normalize_utf8(tf.strings.unicode_encode(parts, "UTF-8"), "NFC")
    of_row = tf.RaggedTensor.from_value_rowids(
        texts, tf.boolean_mask(row, begins), tf.size(strings, tf.int64), validate=False
    )
    return tf.strings.reduce_join(of_row, axis=1)


def _bounds():
    """Returns first code points in `APART` and first ones after them, in order."""
    return tf.constant(np.array([(a, b + 1) for a, b in APART], np.int32).reshape(-1))
