"""Long recordings as overlapping windows, and the transcript that theirs add up to."""

import re
import unicodedata
from typing import Any, TypeVar

# Scripts without spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, Japanese, Chinese.
UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3001-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
)
WORD = re.compile(rf" ?(?:[{UNSPACED}]|[^ {UNSPACED}]+)")
Word = TypeVar("Word", bound=str)
MATCH, ERROR = 2, -1  # scores of two equal words, and of a replaced, additional or missing one


def split(samples: Any, length: int, overlap: int) -> list[Any]:
    """Splits a recording into windows of equal length.

    The last window ends with the recording, so that it overlaps the one before it by more than
    `overlap`, unless the lengths fit. A recording that is not longer than a window is one window.

    Args:
        samples: Samples `[N]`, or another sequence, such as their numbers.
        length: Length of a window, in samples.
        overlap: Number of samples that two neighbouring windows share, below `length`.

    Returns:
        List of arrays of `length` samples each, or of a shorter one.

    Raises:
        ValueError: If `overlap` is negative or not below `length`.
    """
    if not 0 <= overlap < length:
        raise ValueError(
            "`overlap` must be at least 0 and below `length`. "
            f"Received: overlap={overlap}, length={length}."
        )
    if len(samples) <= length:
        return [samples]
    begins = [*range(0, len(samples) - length, length - overlap), len(samples) - length]
    return [samples[begin : begin + length] for begin in begins]


def words_of(text: str) -> list[str]:
    """Returns the words of a text for `merge`, with the spaces between them.

    In scripts that do not separate words by spaces, such as Chinese, every character is a word. All
    words of merged lists, joined without anything between them, are a text, perhaps after a space.

    Args:
        text: The text. White space counts as one space.

    Example:
        >>> from keras_transformer.tasks.speech_recognition.audio.windows import words_of
        >>> words_of("on the mat"), words_of("猫は2 匹")
        ([' on', ' the', ' mat'], ['猫', 'は', '2', ' 匹'])
    """
    words = WORD.findall(" ".join(text.split()))
    if words and not re.match(f"[{UNSPACED}]", words[0]):
        words[0] = f" {words[0]}"  # another window may come before it
    return words


def merge(transcripts: list[list[Word]]) -> list[Word]:
    """Joins the words of overlapping windows, so that no word is lost or repeated.

    The end of one transcript and the beginning of the next describe the same sound. They are
    aligned. Any number of words may come before the overlap on the left and after it on the right.
    Equal words raise the score by 2; each replaced, additional or missing word in the overlap
    lowers it by 1. Of the best alignment, the words on the left count up to the middle of the
    overlap and those on the right from there. The edge of a window often cuts a word, which then is
    wrong. Without an alignment above 0, nothing is shared, and all words are kept. Case and
    punctuation do not matter for equality.

    Args:
        transcripts: List of the words of each window, in order; see `words_of`.

    Returns:
        List of words.

    Reference: Durbin et al. (1998), Biological Sequence Analysis, section 2.3, overlap matches.
    """
    words, last = [], 0
    for transcript in transcripts:
        begin = len(words) - last  # only the last window can overlap this one
        kept, first = _seam([_plain(word) for word in words[begin:]], list(map(_plain, transcript)))
        words[begin + kept :] = transcript[first:]
        last = min(len(transcript), len(words))
    return words


def _seam(left, right):
    """Returns how many words of the left to keep, and the first word of the right that counts."""
    rows, columns = len(left), len(right)
    scores = [[ERROR * column for column in range(columns + 1)]]
    for word in left:
        above, row = scores[-1], [0]  # what comes before the overlap on the left is free
        for column, other in enumerate(right):
            change = above[column] + _pair(word, other)
            row.append(max(change, above[column + 1] + ERROR, row[column] + ERROR))
        scores.append(row)
    column = scores[rows].index(max(scores[rows]))  # as is what comes after it on the right
    if scores[rows][column] <= 0:
        return rows, 0
    pairs = _matches(scores, left, right, column)
    middle = (rows + min(row for row, _ in pairs)) / 2
    row, column = min(pairs, key=lambda pair: (abs(pair[0] + 0.5 - middle), pair))
    return row, column


def _pair(one, other):
    return MATCH if one == other else ERROR


def _matches(scores, left, right, column):
    """Returns the indices of equal words in the best alignment, which ends before `column`."""
    row, pairs = len(left), []
    while row and column:
        pair = _pair(left[row - 1], right[column - 1])
        if scores[row][column] == scores[row - 1][column - 1] + pair:
            row, column = row - 1, column - 1
            if pair == MATCH:
                pairs.append((row, column))
        elif scores[row][column] == scores[row - 1][column] + ERROR:
            row -= 1
        else:
            column -= 1
    return pairs


def _plain(word):
    """Returns a word without case, spaces and punctuation, unless it is only punctuation."""
    letters = [sign for sign in word.casefold() if unicodedata.category(sign)[0] not in "PSZ"]
    return "".join(letters) or word.strip()
