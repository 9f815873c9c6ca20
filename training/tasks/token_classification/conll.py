"""CoNLL files: a word with its columns on each line, and an empty line after each sentence.

Like the words of a text elsewhere, columns are separated by ASCII white space: a no-break space is
part of a word.
"""

from pathlib import Path

from keras_transformer.tasks.token_classification.spans import (
    CONVERTED,
    OUTSIDE,
    find_problem,
    labels_of,
    spans_of,
    words_of,
)
from keras_transformer.text.lines import binary_lines
from keras_transformer.training.data.sources.base import SPLITS
from keras_transformer.training.data.sources.memory import MemoryData

DOCUMENT = "-DOCSTART-"  # marks the beginning of a document; not a word


def open_conll(settings) -> MemoryData:
    """Reads the files that a `[data]` section names, and checks every line.

    Args:
        settings: The section, a `ConllData`, or an object with its attributes.

    Returns:
        A `Source` of words and labels, both separated by spaces.

    Raises:
        ValueError: If a file cannot be read or contains no sentence, or if a line has too few
            columns or a label that violates the scheme. In validation and test, also for a label
            that is not in the training files. One line, which names file and line.
    """
    examples, known = {}, None
    for split in SPLITS:
        files = getattr(settings, split)
        files = [files] if isinstance(files, str) else files or []
        sentences = [
            sentence
            for file in files
            for sentence in read_conll(file, settings.column, settings.scheme, known)
        ]
        examples[split] = [tuple(map(" ".join, zip(*rows, strict=True))) for rows in sentences]
        if split == "train":
            known = {label for rows in sentences for _, label in rows} | {OUTSIDE}
    return MemoryData(examples, f"the CoNLL files beside {settings.train[0]}")


def read_conll(path, column, scheme, known=None) -> list[list[tuple[str, str]]]:
    """Reads one file.

    Args:
        path: The file; UTF-8, and gzip if its name ends in `.gz`.
        column: Column of the label, counted from 1; negative numbers count from the end,
            -1 is the last.
        scheme: One of `spans.SCHEMES`.
        known: Set of allowed labels. `None`: all are allowed.

    Returns:
        List of sentences, each a list of pairs of a word and its label; IOB1, IOE
        and IO are converted to BIO.

    Raises:
        ValueError: See `open_conll`.
    """
    path, sentences, rows, begin, number = Path(path), [], [], 0, 0

    def end():
        if rows:
            words, labels = zip(*rows, strict=True)
            sentences.append(
                [*zip(words, _labels(path, begin, labels, scheme, known), strict=True)]
            )
            rows.clear()

    try:
        for number, line in enumerate(binary_lines(path), start=1):
            cells = words_of(line.decode("utf-8"))
            if not cells or cells[0] == DOCUMENT:
                end()
                continue
            begin = begin if rows else number
            rows.append((cells[0], _label(path, number, cells, column)))
        end()
    except UnicodeDecodeError:
        raise ValueError(f"{path}, line {number}: must be UTF-8.") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}.") from None
    if not sentences:
        raise ValueError(f"{path} must contain at least one sentence. Received: {number:,} lines.")
    return sentences


def _label(path, number, cells, column):
    """Returns the label in a line."""
    place = column - 1 if column > 0 else column
    least = max(2, abs(column))
    if len(cells) < least:
        raise ValueError(
            f"{path}, line {number}: must have at least {least} columns, a word and in column "
            f"{column} its label. Received: {len(cells)} ({' '.join(cells)!r})."
        )
    return cells[place]


def _labels(path, begin, labels, scheme, known):
    """Returns the labels of a sentence that begins on a line, in BIO, BIOES or BILOU.

    Raises:
        ValueError: If the labels violate the scheme, or one of them is not known.
    """
    if problem := find_problem(labels, scheme):
        place, what = problem
        if scheme == "BIO" and labels[place].startswith("I-"):
            what += ' If spans begin with I-, as in CoNLL-2003, set `scheme = "IOB1"`.'
        raise ValueError(f"{path}, line {begin + place}: {what}")
    if scheme in CONVERTED:
        labels = labels_of(spans_of(labels, scheme), len(labels))
    for number, label in enumerate(labels, start=begin):
        if known is not None and label not in known:
            raise ValueError(
                f"{path}, line {number}: the label must be one of those in the training "
                f"data: {', '.join(sorted(known))}. Received: {label!r}."
            )
    return labels
