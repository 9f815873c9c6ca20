"""Several texts in a row of tokens: rows that are full, instead of padding."""

import numpy as np


def pack_texts(texts, max_length):
    """Puts texts together in rows of at most `max_length` tokens.

    A longer text is cut into pieces of `max_length` tokens, each of which is alone in its row, and
    what is left. Texts and pieces go, from the longest to the shortest, into the row with the least
    room that has enough; the same texts give the same rows.

    Args:
        texts: A ragged `Column` of token ids, each text ending in `eos_id`.
        max_length: Longest row.

    Returns:
        A `Column` of the rows; and how many of the texts were cut.
    """
    values, lengths = texts.values, texts.lengths
    counts = -(-lengths // max_length)  # of pieces
    of_text = np.repeat(np.arange(len(lengths)), counts)
    before = max_length * (np.arange(len(of_text)) - np.repeat(np.cumsum(counts) - counts, counts))
    starts = (np.cumsum(lengths) - lengths)[of_text] + before
    sizes = np.minimum(lengths[of_text] - before, max_length)
    rows = best_fit(sizes, max_length)
    order = np.argsort(rows, kind="stable")
    starts, sizes, rows = starts[order], sizes[order], rows[order]
    ends = np.cumsum(sizes)
    places = np.arange(sizes.sum()) + np.repeat(starts - ends + sizes, sizes)
    totals = np.bincount(rows, weights=sizes).astype(np.int64)
    return type(texts)(values[places], totals), int(np.count_nonzero(counts > 1))


def best_fit(sizes, capacity):
    """Puts things into boxes, each into the fullest that has room for it, the largest first.

    Args:
        sizes: Integers `[things]`, from 1 to `capacity`.
        capacity: What a box holds.

    Returns:
        The number of the box of each thing, `[things]`, counting from 0.
    """
    boxes = np.empty(len(sizes), np.int64)
    by_room = [[] for _ in range(capacity + 1)]
    known, count = 0, 0  # bit r: there is a box with room r
    for thing in np.argsort(-sizes, kind="stable").tolist():
        size = int(sizes[thing])
        fitting = known >> size << size
        if fitting:
            room = (fitting & -fitting).bit_length() - 1
            box = by_room[room].pop()
            if not by_room[room]:
                known &= ~(1 << room)
        else:
            box, room, count = count, capacity, count + 1
        boxes[thing] = box
        by_room[room - size].append(box)
        known |= 1 << (room - size)
    return boxes
