"""TensorFlow Text's operators for LiteRT against SentencePiece itself."""

import random
import types

import pytest
import tensorflow as tf
import tensorflow_text
from sentencepiece import sentencepiece_model_pb2

from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.fast_tokenizer import FastTokenizer
from keras_transformer.tasks.strings import encode
from keras_transformer.tokenizers import SentencePieceTokenizer, WordPieceTokenizer
from keras_transformer.training.vocabulary import learn_vocabulary

LENGTH = 20
WORDS = [
    f"{when} {number} {unit}"
    for when in ("in", "seit", "nach", "after", "before", "été")
    for number in (2, 17, 38, 45, 60, 91, "½")
    for unit in ("days", "weeks", "Wochen", "Monaten", "months", "Stunden", "Minuten", "m²")
]
# Letters and digits with and without a token of their own, several kinds of spaces, text that
# normalisation changes, and SentencePiece's symbol for a space.
CHARACTERS = "\u00ad\u200d\ufe0f\U000e0041"
CHARACTERS += "inweksotafrm0127  ▁▁\t\n\u00a0\u3000\u200bé\u0301eßﬁ½¨日語\ue000\ufffd\0"


@pytest.fixture(scope="module")
def ours():
    """A vocabulary learned as `train` does, with this package's rules of normalisation."""
    settings = types.SimpleNamespace(
        table=None, size=46, model_type="unigram", split_digits=True, character_coverage=1.0
    )
    return SentencePieceTokenizer(learn_vocabulary(WORDS, settings))


@pytest.fixture(params=["with our rules", "with nmt_nfkc"], scope="module")
def unigram(request, ours, unigram_translator):
    return ours if request.param == "with our rules" else unigram_translator.source_tokenizer


@pytest.mark.parametrize("unigram", ["with nmt_nfkc"], indirect=["unigram"])
def test_the_tokens_of_any_text_are_those_of_the_tokenizer(unigram):
    fast = FastTokenizer(unigram, LENGTH)
    encode_fast = tf.function(lambda text: fast.encode(text, LENGTH), autograph=False)
    rng = random.Random(0)
    texts = ["", " ", "▁", "x" * 5000, "\ue000" * 5000 + " in", "in " * 7000, "n▁ ▁", "▁ n"]
    texts += ["".join(rng.choices(CHARACTERS, k=rng.randrange(1, 30))) for _ in range(500)]
    texts += ["".join(rng.choices(CHARACTERS, k=7)) * 100 for _ in range(20)]
    ids, truncated, empty = encode(unigram, tf.constant(texts), LENGTH)
    ids = ids.to_tensor(unigram.pad_id, shape=[None, LENGTH])
    for text, *expected in zip(texts, ids.numpy(), truncated.numpy(), empty.numpy(), strict=True):
        outputs = [output.numpy()[0].tolist() for output in encode_fast(tf.constant([text]))]
        assert outputs == [values.tolist() for values in expected], text
    assert set(zip(truncated.numpy(), empty.numpy(), strict=True)) == {
        (False, False),
        (True, False),
        (False, True),
    }


def test_the_text_of_any_tokens_is_that_of_the_tokenizer(unigram):
    fast = FastTokenizer(unigram, LENGTH)
    decode = tf.function(fast.decode, autograph=False)
    rng = random.Random(0)
    special = [unigram.pad_id, unigram.unk_id, unigram.bos_id, unigram.eos_id]
    space = unigram.encode(["\ue000"]).to_list()[0][0]
    rows = [[unigram.pad_id] * LENGTH, [space] * LENGTH, [unigram.unk_id] * LENGTH]
    for _ in range(500):
        some = rng.sample([*special, space, space], 4) + rng.sample(range(unigram.vocab_size), 6)
        rows.append(rng.choices(some, k=LENGTH))
    texts = unigram.decode(tf.constant(rows)).numpy()
    for row, text in zip(rows, texts, strict=True):
        assert decode(tf.constant(row)).numpy() == text, unigram.pieces(row)
    assert len(set(texts)) > 400


def test_a_source_is_cut_at_a_shorter_length_and_marked_as_truncated(ours):
    fast = FastTokenizer(ours, LENGTH)
    (whole,) = ours.encode(["in 17 weeks"]).to_list()
    source, truncated, _ = fast.encode(tf.constant(["in 17 weeks"]), len(whole))
    assert (source.numpy().tolist(), truncated.numpy().tolist()) == ([whole], [False])
    source, truncated, _ = fast.encode(tf.constant(["in 17 weeks"]), len(whole) - 1)
    assert source.numpy().tolist() == [[*whole[:-2], ours.eos_id]]
    assert truncated.numpy().tolist() == [True]


def test_a_vocabulary_that_the_operators_split_differently_is_refused(tokenizer, ours):
    def bytes_for_unknown(proto):
        proto.pieces[9].type = proto.pieces[9].BYTE

    def suffix(proto):
        proto.trainer_spec.treat_whitespace_as_suffix = True

    def keep_spaces(proto):
        proto.normalizer_spec.remove_extra_whitespaces = False

    def no_rules(proto):
        proto.normalizer_spec.precompiled_charsmap = b""

    def rules_for_decoding(proto):
        proto.denormalizer_spec.precompiled_charsmap = b"x"

    def other_unknown(proto):
        proto.trainer_spec.unk_surface = "?"

    def no_space(proto):
        (space,) = (piece for piece in proto.pieces if piece.piece == "▁")
        space.piece = "§"

    refused = [
        (bytes_for_unknown, "has pieces of type BYTE"),
        (suffix, "treats spaces differently"),
        (keep_spaces, "treats spaces differently"),
        (no_rules, "has no rules of normalisation"),
        (rules_for_decoding, "has rules for decoding"),
        (other_unknown, "decodes the unknown token to '\\?'"),
        (no_space, "has no piece for a space"),
    ]
    for function, message in refused:
        proto = sentencepiece_model_pb2.ModelProto.FromString(ours.model)
        function(proto)
        model = proto.SerializeToString()
        altered = types.SimpleNamespace(title="SentencePiece", table=None, model=model)
        with pytest.raises(ExportError, match=f"`tokenizer` needs .* This vocabulary {message}"):
            FastTokenizer(altered, LENGTH)
    message = (
        "`tokenizer` needs a SentencePiece vocabulary. Received: a vocabulary of WordPiece. Export"
    )
    with pytest.raises(ExportError, match=message):
        FastTokenizer(WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]"]), LENGTH)
    message = 'needs a vocabulary that is a unigram model.* BPE models.*model_type = "unigram"'
    with pytest.raises(ExportError, match=message):
        FastTokenizer(tokenizer, LENGTH)


def test_different_tokens_are_refused_with_the_text(tokenizer, unigram):
    FastTokenizer(unigram, LENGTH).require_same_pieces(WORDS)
    fast = FastTokenizer(unigram, LENGTH)
    fast._encoder = tensorflow_text.FastSentencepieceTokenizer(tokenizer.model)
    message = "operators for LiteRT split 'in 3 weeks' into .*, not .* Export without the tokenizer"
    with pytest.raises(ExportError, match=message):
        fast.require_same_pieces(["", "in 3 weeks"])
    with pytest.raises(ExportError, match="operators for LiteRT split '<pad>.* into"):
        fast.require_same_pieces([])
