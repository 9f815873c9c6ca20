"""One SentencePiece vocabulary for both languages, learned from the training split (5.1)."""

import functools
import io
import os
import re
import sys
import tempfile
import unicodedata

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

PAD_ID, UNK_ID, BOS_ID, EOS_ID = range(4)
MAX_SENTENCES = 2_000_000  # of more, so many are drawn to learn from

# Every kind of white space is one space to a reader; a line of text holds no other control.
_SPACES = "\t\n\v\f\r\x85\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_NOTHING = "\u200b\ufeff"  # zero-width space, byte order mark


class UnfitSize(ValueError):
    """A size that the text cannot have.

    Args:
        message: One line.
        better: A size that it can have, as far as is known.
    """

    def __init__(self, message, better):
        super().__init__(message)
        self.better = better


def strings(rows, columns, total=None, most=None):
    """Yields the strings of some columns of a dataset, as bytes; of a large one those of a sample.

    Args:
        rows: A `tf.data.Dataset` of tuples of scalar strings.
        columns: Numbers of the columns.
        total: Number of rows.
        most: Of more rows, so many are taken, at equal distances. `None`: all.
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


def learn_vocabulary(strings, settings):
    """Learns a vocabulary; the same strings in the same order give the same bytes.

    The text is normalised to Unicode's canonical form NFC, every white space becomes a space, and
    spaces that follow each other become one; nothing else changes. `decode(encode(text))` is
    therefore the text itself for any text in that form, whose characters the training data has.
    SentencePiece's own default, `nmt_nfkc`, would turn "m²" into "m2", "½" into "1⁄2" and "…" into
    "...", which a translation could then never contain; without any normalisation, an "é" typed as
    "e" and an accent would be two unknown characters. The rule is compiled into the model, so that
    Python, TensorFlow Serving and phones apply the same one.

    Characters that the training data lacks become one unknown piece, which decodes to " ⁇ ".
    SentencePiece's `byte_fallback` would spell them in bytes instead. It is off: 256 pieces that
    are never seen in training have no meaning to learn, and would be 6 % of a vocabulary of 4,000.

    Args:
        strings: Iterable of strings (str or UTF-8 bytes) of both languages. Of more than
            `MAX_SENTENCES` a sample is drawn, the same one every time.
        settings: The `[vocabulary]` section; `size` is the number of pieces, special ones included,
            `model_type` is "bpe" or "unigram", `split_digits` makes every digit a piece of its own,
            and `character_coverage` is the share of the text's characters to cover.

    Returns:
        The serialised SentencePiece model. Ids: pad 0, unk 1, bos 2, eos 3.

    Raises:
        ValueError: If the strings hold no text, or `size` is too small or too large for them: an
            `UnfitSize`. One line, with the smallest or the largest size that is possible.
    """
    rules, strings = _write_rules(), _Remembering(strings)
    try:
        return _train(strings, settings, rules)
    except (
        RuntimeError,
        ValueError,
        SyntaxError,
    ) as error:
        if strings.error:
            raise strings.error from None
        raise _explained(str(error), settings.size) from error
    finally:
        os.unlink(rules)


def _train(strings, settings, rules):
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
        num_threads=1,  # the number of threads changes the model: it decides the order of sums
        minloglevel=2,  # errors only; the most important of them are also raised
    )
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    proto.normalizer_spec.ClearField("normalization_rule_tsv")  # where a temporary file was
    return proto.SerializeToString(deterministic=True)


class _Remembering:
    """Iterates once and remembers what went wrong, which SentencePiece reports as text only."""

    def __init__(self, strings):
        self._strings = strings
        self.error = None

    def __iter__(self):
        try:
            yield from self._strings
        except BaseException as error:  # Ctrl-C as well
            self.error = error
            raise


def _explained(reason, size):
    """SentencePiece's message, which names C++ conditions, as an error in terms of the settings."""
    most = re.search(r"too high .*<= (\d+)", reason)
    if most and int(most[1]) > EOS_ID + 1:  # so many are there without any text
        return UnfitSize(
            f"`size` must be at most {most[1]} for a vocabulary of this training text, which has "
            f"no more pieces to learn. Received: size={size}.",
            better=int(most[1]),
        )
    if least := re.search(r"required_chars\. \d+ vs (\d+)", reason):
        return UnfitSize(
            f"`size` must be at least {least[1]}, to hold every character of the training text; a "
            f"lower `character_coverage` needs fewer. Received: size={size}.",
            better=2 * int(least[1]),
        )
    if most or "sentences_.empty()" in reason or "all_chars_count" in reason:
        return ValueError(
            "`strings` must hold text to learn a vocabulary from. Received: no text at all."
        )
    return ValueError(f"the vocabulary cannot be learned: {' '.join(reason.split())}")


def _write_rules():
    """Writes the normalisation as a file of rules, and returns its path."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", delete=False, encoding="ascii") as file:
        for spelling, composed in _rules():
            file.write(f"{_hexadecimal(spelling)}\t{_hexadecimal(composed)}\n")
    return file.name


@functools.cache
def _rules():
    """Every spelling that the normalisation changes, with what it becomes, in a fixed order."""
    rules = dict.fromkeys(_SPACES, " ") | dict.fromkeys(_NOTHING, "")
    for character in map(chr, range(sys.maxunicode + 1)):
        decomposed = unicodedata.normalize("NFD", character)
        # Hangul would add 11,000 rules for syllables, which keyboards put together themselves.
        if decomposed != character and not "가" <= character <= "힣":
            composed = unicodedata.normalize("NFC", character)
            partly = unicodedata.decomposition(character).split()  # "ệ" is also "ẹ" and "^"
            for spelling in (decomposed, "".join(chr(int(code, 16)) for code in partly), character):
                if spelling != composed:
                    rules.setdefault(spelling, composed)
    return sorted(rules.items())


def _hexadecimal(text):
    return " ".join(f"{ord(character):X}" for character in text)
