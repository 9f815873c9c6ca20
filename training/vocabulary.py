"""Learning of a SentencePiece vocabulary from the training split (section 5.1)."""

import io
import re
from collections.abc import Iterator

import numpy as np

from keras_transformer.text.sentencepiece_package import sentencepiece, sentencepiece_model_pb2
from keras_transformer.training.normalization import drop_unseen, rules_file

PAD_ID, UNK_ID, BOS_ID, EOS_ID = range(4)
ADAPTS = "if it is left out, the size follows from the text"
MAX_SENTENCES = 2_000_000  # size of the sample that is drawn from more sentences


class UnfitSize(ValueError):
    """Error for a vocabulary size that the text does not allow.

    Args:
        message: One line.
        better: A size that the text probably allows.
    """

    def __init__(self, message, better):
        super().__init__(message)
        self.better = better


def strings(rows, columns, total=None, most=None) -> Iterator[bytes]:
    """Yields the strings of some columns of a dataset, or of a sample of it, as bytes.

    Args:
        rows: A `tf.data.Dataset` of tuples of scalar strings.
        columns: Indices of the columns.
        total: Number of rows.
        most: Maximum number of rows; from a larger dataset they are taken at equal distances.
            `None`: all rows.
    """
    batch_size, begin = 1024, 0
    for batch in rows.batch(batch_size).prefetch(1).as_numpy_iterator():
        taken = slice(None)
        if most is not None and total is not None and total > most:
            numbers = np.arange(begin, begin + len(batch[0]))
            taken = (numbers + 1) * most // total > numbers * most // total
            begin += len(batch[0])
        for column in columns:
            yield from batch[column][taken]


def learn_vocabulary(strings, settings, mask=None) -> bytes:
    """Learns a vocabulary; the same strings in the same order give the same bytes.

    The text is normalised to Unicode's canonical form NFC, every white space character becomes a
    space, and several spaces in a row become one; nothing else changes. For a text in this form
    whose characters are in the training data, `decode(encode(text))` is therefore the text itself.
    SentencePiece's own default, `nmt_nfkc`, would turn "m²" into "m2", "½" into "1⁄2" and "…" into
    "...", so that a translation could never contain the former. Without any normalisation, an "é"
    typed as "e" and an accent would be two unknown characters. Invisible characters that are not in
    the training data, such as a soft hyphen, are removed, because a word with one would become
    unknown. The rules are part of the model, so that Python, TensorFlow Serving and phones apply
    the same ones.

    Characters that are not in the training data become the unknown token, which decodes to " ⁇ ".
    SentencePiece's `byte_fallback`, which would spell them in bytes, is off: its 256 tokens would
    never occur in training, so that the model could not learn them, and would be 6 % of a
    vocabulary of 4,000.

    Args:
        strings: Iterable of strings (str or UTF-8 bytes), of both languages if they share the
            vocabulary. If there are more than `MAX_SENTENCES`, a sample is drawn, always the same.
        settings: The `[vocabulary]` section: `size` is the number of tokens, including special
            ones; `model_type` is "bpe" or "unigram"; `split_digits` makes every digit a token of
            its own; and `character_coverage` is the share of the text's characters to cover.
        mask: A token that no text is split into, with id 4. `None`: there is none.

    Returns:
        The serialised SentencePiece model. Ids: pad 0, unk 1, bos 2, eos 3.

    Raises:
        UnfitSize: A `ValueError`, if `size` is too small or too large for the text. One line, with
            the smallest or the largest possible size.
        ValueError: If the strings contain no text.
    """
    strings = _Remembering(strings)
    try:
        with rules_file() as rules:
            return _train(strings, settings, rules, mask)
    except (
        RuntimeError,
        ValueError,
        SyntaxError,
    ) as error:
        if strings.error:
            raise strings.error from None
        without_text = EOS_ID + 1 + (mask is not None)
        raise _explained(str(error), settings.size, without_text) from error


def _train(strings, settings, rules, mask):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(strings),
        model_writer=model,
        vocab_size=settings.size,
        model_type=settings.model_type,
        split_digits=settings.split_digits,
        character_coverage=settings.character_coverage,
        normalization_rule_tsv=rules,
        input_sentence_size=MAX_SENTENCES,
        shuffle_input_sentence=True,  # the sample is drawn with a constant seed
        max_sentence_length=16384,  # bytes; longer lines are ignored
        pad_id=PAD_ID,
        unk_id=UNK_ID,
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        control_symbols=[] if mask is None else [mask],
        num_threads=1,  # the order of sums, and so the model, depends on the number of threads
        minloglevel=2,  # errors only; the most important of them are also raised
    )
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    drop_unseen(proto)
    proto.normalizer_spec.ClearField("normalization_rule_tsv")  # the path of a temporary file
    return proto.SerializeToString(deterministic=True)


class _Remembering:
    """Iterator that keeps an exception of its strings, which SentencePiece reports as text only."""

    def __init__(self, strings):
        self._strings = strings
        self.error = None

    def __iter__(self):
        try:
            yield from self._strings
        except BaseException as error:  # Ctrl-C as well
            self.error = error
            raise


def _explained(reason, size, without_text):
    """Returns an error that names settings, for a message of SentencePiece that names C++ code.

    Args:
        reason: The message.
        size: Size of the vocabulary that was asked for.
        without_text: Size of a vocabulary without any text.
    """
    most = re.search(r"too high .*<= (\d+)", reason)
    if most and int(most[1]) > without_text:
        return UnfitSize(
            f"`vocabulary.size` must be at most {most[1]} for this training text, which has no "
            f"more tokens to learn; {ADAPTS}. Received: vocabulary.size={size}.",
            better=int(most[1]),
        )
    if least := re.search(r"required_chars\. \d+ vs (\d+)", reason):
        return UnfitSize(
            f"`vocabulary.size` must be at least {least[1]}, to cover every character of the "
            f"training text, or less with a lower `vocabulary.character_coverage`; {ADAPTS}. "
            f"Received: vocabulary.size={size}.",
            better=2 * int(least[1]),
        )
    if most or "sentences_.empty()" in reason or "all_chars_count" in reason:
        return ValueError(
            "the training data must have text to learn a vocabulary from. Received: no text at all."
        )
    return ValueError(f"the vocabulary cannot be learned: {' '.join(reason.split())}")
