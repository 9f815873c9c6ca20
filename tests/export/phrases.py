"""A translator of short phrases with constructed weights: the tests need no training.

The result of training depends on the processor. This model is the same everywhere and correct by
a wide margin: English and German phrases correspond token by token, so it translates by looking
up, at every position, the token at that position of the source.

- Embedding table: tokens are random directions of equal length in the second half of the features.
  The fastest `PAIRS` of sines and cosines distinguish positions; the others are levelled out.
- Encoder: hidden units of the first feed-forward network recognise the words and replace each word
  by its translation. All other tokens stay.
- Decoder: self-attention subtracts the previous token from the sum, and cross-attention adds the
  source token of the current position. Other heads add a little of its neighbours and of all
  previous tokens, which gives a beam alternatives and makes every position of a cache matter.
- Noise on every weight makes all values depend on each other a little.
"""

import io
import itertools
import random

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from keras_transformer import Transformer, TransformerConfig, Translator
from keras_transformer.positions import sinusoids
from keras_transformer.tokenizers import SentencePieceTokenizer

WHEN = {"in": "in", "for": "seit", "after": "nach", "before": "vor"}
UNITS = {
    "days": "Tagen",
    "weeks": "Wochen",
    "months": "Monaten",
    "years": "Jahren",
    "hours": "Stunden",
    "minutes": "Minuten",
}
WORDS = {**WHEN, **UNITS, "and": "und"}

LENGTH = 20  # maximum length of source and output
D, K = 64, 32  # width of the model and of each of its two heads
PAIRS = 4  # number of sine and cosine pairs that distinguish positions
SHARPNESS = 12.0  # scale of queries and keys: a head attends to a single position
GAIN = 1.3  # scale of the last normalisation: a translation's probability is about 0.6 to 0.9


def phrases():
    """Returns pairs such as ("in 17 weeks", "in 17 Wochen"), some of them twice as long."""
    spans = [(f"{n} {u}", f"{n} {v}") for n in range(2, 60) for u, v in UNITS.items()]
    pairs = [
        (f"{w} {source}", f"{v} {target}")
        for (w, v), (source, target) in itertools.product(WHEN.items(), spans)
    ]
    pairs += [
        (f"{w} {one[0]} and {two[0]}", f"{v} {one[1]} und {two[1]}")
        for (w, v), one, two in itertools.product(WHEN.items(), spans[::7], spans[::11])
    ]
    random.Random(0).shuffle(pairs)
    return pairs


def bpe_tokenizer():
    """A vocabulary of 130 tokens in which every word is one token. Token 7 is in every phrase."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(_learn("bpe", 130))
    space = next(number for number, piece in enumerate(proto.pieces) if piece.piece == "▁")
    space, seventh = proto.pieces[space], proto.pieces[7]
    for field in ("piece", "score"):
        first, second = getattr(space, field), getattr(seventh, field)
        setattr(space, field, second)
        setattr(seventh, field, first)
    return SentencePieceTokenizer(proto.SerializeToString())


def unigram_tokenizer():
    """The same as a unigram model: SentencePiece's vocabulary plus the words it left out."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(_learn("unigram", 61))
    known = {piece.piece for piece in proto.pieces}
    for word in sorted({*WORDS, *WORDS.values()}):
        if f"▁{word}" not in known:
            proto.pieces.add(piece=f"▁{word}", score=-4.0)
    return SentencePieceTokenizer(proto.SerializeToString())


def _learn(model_type, vocab_size):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(side for pair in phrases() for side in pair),
        model_writer=model,
        vocab_size=vocab_size,
        model_type=model_type,
        split_digits=True,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    return model.getvalue()


def phrase_translator(tokenizer, num_layers=1, max_length=LENGTH):
    """The translator, for a vocabulary in which every word is one token; one layer suffices."""
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size,
        num_layers=num_layers,
        d_model=D,
        d_ff=D,
        num_heads=2,
        max_length=max_length,
        norm="pre",
        dropout=0.0,
    )
    model = Transformer(config)
    rng = np.random.default_rng(0)
    variables = {weight.path.removeprefix(f"{model.name}/"): weight for weight in model.weights}
    weights = {path: _noise(rng, weight.shape, path) for path, weight in variables.items()}
    weights["embedding/table"] += _table(rng, tokenizer.vocab_size)
    _replace_words(weights, tokenizer)
    _read_by_position(weights, num_layers)
    for path, variable in variables.items():
        variable.assign(weights[path])
    return Translator(model, tokenizer)


def _noise(rng, shape, path):
    noise = rng.normal(size=shape)
    if path.endswith("gamma"):
        return 1 + 0.03 * noise
    return {"kernel": 0.01, "table": 0.005}.get(path.rsplit("/")[-1], 0.03) * noise


def _table(rng, vocab_size):
    """Returns unit vectors for the tokens, orthogonal to the slow sinusoids."""
    table = np.zeros((vocab_size, D))
    tokens = rng.normal(size=(vocab_size, D - K))
    for sines_or_cosines in (tokens[:, 0::2], tokens[:, 1::2]):
        sines_or_cosines -= sines_or_cosines.mean(axis=1, keepdims=True)
    table[:, K:] = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
    levels = sinusoids(LENGTH, D)[:, 2 * PAIRS :].mean(axis=0)
    table[:, 2 * PAIRS :] -= levels / D**0.5  # the embedding multiplies by sqrt(D)
    return table


def _replace_words(weights, tokenizer):
    """Sets two hidden units per word, which switch at 6 and at 7; a word reaches 7.7."""
    table, path = weights["embedding/table"], "encoder/block_0/feed_forward"
    pairs = [[ids[0] for ids in tokenizer.encode(list(pair)).to_list()] for pair in WORDS.items()]
    pairs.append([tokenizer.unk_id, pairs[0][1]])  # no translation contains the unknown token
    for number, (source, target) in enumerate(pairs):
        for unit, begin, sign in ((2 * number, 6.0, 1), (2 * number + 1, 7.0, -1)):
            weights[f"{path}/inner/kernel"][:, unit] = table[source] - table.mean(axis=0)
            weights[f"{path}/inner/bias"][unit] = -begin
            weights[f"{path}/outer/kernel"][unit] = sign * D**0.5 * (table[target] - table[source])


def _read_by_position(weights, num_layers):
    for number in range(num_layers):
        block = f"decoder/block_{number}"
        # Removes the previous token once; later blocks look at all earlier tokens.
        forget = number == 0
        _attend(weights, f"{block}/self_attention", 0, *((0, -1.03) if forget else (None, 0.3)))
        _attend(weights, f"{block}/self_attention", 1, -1, 0.1)
        _attend(weights, f"{block}/cross_attention", 0, 0, 1.0)
        _attend(weights, f"{block}/cross_attention", 1, 1, 0.2)
    weights["decoder/norm/gamma"] *= GAIN


def _attend(weights, path, head, offset, scale):
    """Makes a head look `offset` positions ahead, or everywhere, and add what it finds, scaled."""
    columns = slice(head * K, head * K + K)
    weights[f"{path}/value/kernel"][K:, columns] += np.eye(K)
    weights[f"{path}/output/kernel"][columns, K:] += scale * np.eye(K)
    if offset is None:
        return
    query, key = np.zeros((D, K)), np.zeros((D, K))
    for sine in range(0, 2 * PAIRS, 2):
        pair = slice(sine, sine + 2)
        # The rotation of the sinusoids over `offset` positions.
        turn = offset * 10_000.0 ** (-sine / D)
        query[pair, pair] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        key[pair, pair] = np.eye(2)
    weights[f"{path}/query/kernel"][:, columns] += SHARPNESS * query
    weights[f"{path}/key/kernel"][:, columns] += SHARPNESS * key
