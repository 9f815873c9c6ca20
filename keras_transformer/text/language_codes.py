"""Target-language codes at the beginning of texts, such as `>>fra<<`.

They are tokens of the model that its SentencePiece model does not have.
"""

import re

import tensorflow as tf

from keras_transformer.tensors import Tensor

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
