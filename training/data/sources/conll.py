"""CoNLL files: a word with its columns on each line, and an empty line after each sentence.

Columns are separated by ASCII white space, as the words of a text are everywhere else: a
no-break space is part of a word.
"""

from pathlib import Path

from keras_transformer.tasks.labelling.spans import (
    OUTSIDE,
    find_problem,
    labels_of,
    spans_of,
    words_of,
)
from keras_transformer.text.lines import binary_lines
from keras_transformer.training.data.sources.base import SPLITS
from keras_transformer.training.data.sources.memory import MemoryData

DOCUMENT = "-DOCSTART-"  # begins a document; it is not a word


def open_conll(settings):
    """Reads the files that a `[data]` section names, and checks every line.

    Args:
        settings: The section, a `ConllData`, or anything with its attributes.

    Returns:
        A `Source` of words and labels, each separated by spaces.

    Raises:
        ValueError: If a file cannot be read or holds no sentence, or a line has too few columns, a
            label that breaks the scheme or, but for training, that no training file has. One line,
            which names file and line.
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


def read_conll(path, column, scheme, known=None):
    """Reads one file.

    Args:
        path: The file; UTF-8, and gzip if its name ends in `.gz`.
        column: Place of the label in a line, from 1; below 0 from the end, -1 for the last.
        scheme: `"BIO"`, `"BIOES"` or `"IOB1"`.
        known: The labels there may be, a set. `None`: any.

    Returns:
        List of sentences, each a list of pairs: a word and its label, in BIO if it was in IOB1.

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
        raise ValueError(f"{path} must hold at least one sentence. Received: {number:,} lines.")
    return sentences


def _label(path, number, cells, column):
    """The label in a line."""
    place = column - 1 if column > 0 else column
    least = max(2, abs(column))
    if len(cells) < least:
        raise ValueError(
            f"{path}, line {number}: must have at least {least} columns, a word and in column "
            f"{column} its label. Received: {len(cells)} ({' '.join(cells)!r})."
        )
    return cells[place]


def _labels(path, begin, labels, scheme, known):
    """The labels of a sentence, which begins on a line, in BIO or BIOES.

    Raises:
        ValueError: If they break the scheme, or one is not among those that are known.
    """
    if problem := find_problem(labels, scheme):
        place, what = problem
        if scheme == "BIO" and labels[place].startswith("I-"):
            what += ' If spans begin with I-, as in CoNLL-2003, set `scheme = "IOB1"`.'
        raise ValueError(f"{path}, line {begin + place}: {what}")
    if scheme == "IOB1":
        labels = labels_of(spans_of(labels), len(labels))
    for number, label in enumerate(labels, start=begin):
        if known is not None and label not in known:
            raise ValueError(
                f"{path}, line {number}: the label must be one of the training data's, "
                f"{', '.join(sorted(known))}. Received: {label!r}."
            )
    return labels
