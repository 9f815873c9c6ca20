"""Lines sorted by their scores: `predict --sort`."""

from keras_transformer.opening.stream import outcomes
from keras_transformer.ordering import descending
from keras_transformer.text.lines import without_end, without_mark


def write_sorted(search, source, target, warn, **how) -> None:
    """Writes score, tab and line, sorted in groups such as the passages of a query.

    Groups come in the order of their first lines. In a group, the highest score comes first; equal
    scores keep the order of their lines, and NaN comes last. Empty and bad lines are left out. All
    lines are in memory.

    Args:
        search: A function of lines with an `answering` whose codec `sorts`.
        source: Binary stream to read.
        target: Binary stream to write.
        warn, **how: See `outcomes`.

    Raises:
        ValueError: See `outcomes`.
    """
    lines = list(without_mark(source))
    codec = search.answering.codec
    groups: dict = {}
    for number, results in outcomes(search, iter(lines), warn, fate="left out", **how):
        if results:
            text = without_end(lines[number - 1]).decode()
            groups.setdefault(codec.group(codec.parse(text)), []).append((results[0], text))
    for rows in groups.values():
        for index in descending([result.value for result, _ in rows]):
            result, text = rows[index]
            target.write(f"{result.text}\t{text}\n".encode())
    target.flush()
