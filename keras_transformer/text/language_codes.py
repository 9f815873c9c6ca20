"""Codes of target languages that texts begin with, such as `>>fra<<`, apart from the text.

They are entries of a model's vocabulary that SentencePiece does not have.
"""

import re

import tensorflow as tf

# As Hugging Face's tokenizer of Marian models finds them.
CODE = re.compile(">>.*?<<", re.DOTALL)


def split_code(string, table, unk_id):
    """Returns the id of the code that a string begins with, in a list, and the rest of it.

    Args:
        string: The string.
        table: A `PieceTable`; without codes nothing is split.
        unk_id: The id of a code that the model does not have.
    """
    match = CODE.match(string) if table.codes else None
    if match is None:
        return [], string
    return [table.codes.get(match[0], unk_id)], string[match.end() :]


def split_codes(strings, table, unk_id):
    """The same in the graph.

    Args:
        strings: Strings `[B]`.
        table: As above.
        unk_id: As above.

    Returns:
        A ragged tensor of ids `[B, (0 or 1)]`, `None` where the table has no codes; and the rests,
        strings `[B]`.
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
