"""The task of all decoding peers: a model with random weights and a batch of fixed length."""

import dataclasses
import functools

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
SOURCE_LENGTH = 24  # tokens, the end included
FLOAT32 = 4  # bytes
WEIGHTS = "weights.npz"  # arrays named by the paths of the weights


@dataclasses.dataclass(frozen=True)
class Model:
    """An encoder-decoder Transformer, post-norm, with tied embeddings and output weights.

    Args:
        size: Name of the size.
        vocab_size, d_model, num_layers, num_heads, d_ff: As in the paper; `num_layers` blocks each
            in encoder and decoder.
        length: Number of tokens of every output, the end included.
        seed: Seed of weights and sentences.
        decoder: Sublayer that reads the output so far, `"self_attention"` or `"ssru"`.
        source_length: Number of tokens of every source, the end included.
        longest: Maximum length of sources and outputs. `None`: twice the longer of both, because in
            practice the length of an output is not known in advance.
    """

    size: str
    vocab_size: int
    d_model: int
    num_layers: int
    num_heads: int
    d_ff: int
    length: int = 32
    seed: int = 1
    decoder: str = "self_attention"
    source_length: int = SOURCE_LENGTH
    longest: int | None = None

    @property
    def own_matrices(self):
        """Number of D x D matrices in the sublayer of a decoder block that reads the output."""
        return 4 if self.decoder == "self_attention" else 2

    @property
    def max_length(self):
        """Maximum length of sources and outputs of the model."""
        return self.longest or 2 * max(self.length, self.source_length)

    @property
    def step_bytes(self):
        """Size of the weights that every step of the decoder reads, in bytes of float32.

        For each block D^2 each for query, key, value and output of self-attention, or for the two
        matrices of an SSRU, D^2 each for query and output of cross-attention, whose keys and values
        are computed only once, and 2 D F; and D V for the logits.
        """
        block = (self.own_matrices + 2) * self.d_model**2 + 2 * self.d_model * self.d_ff
        return FLOAT32 * (self.num_layers * block + self.d_model * self.vocab_size)


@dataclasses.dataclass(frozen=True)
class Case:
    """A use of the model to measure.

    Args:
        beam_size: Number of running hypotheses; 1 is greedy search.
        batch_size: Number of sentences in the batch.
        length: Number of tokens of every output, the end included.
        source_length: Number of tokens of every source, the end included.
    """

    beam_size: int
    batch_size: int
    length: int
    source_length: int = SOURCE_LENGTH

    @property
    def search(self):
        """Name of the search."""
        return "greedy" if self.beam_size == 1 else f"beam {self.beam_size}"

    def flops(self, model):
        """Returns the operations in the matrix products that a call needs at least.

        A multiplication and an addition count as two floating-point operations. The number of
        multiplications is, per source token and block, 4 D^2 + 2 S D + 2 D F, and 2 D^2 for the
        keys and values of cross-attention. Per target token and hypothesis, it is for each block
        6 D^2 + 2 D F + 2 S D + 2 p D at position p, counted from 1, or 4 D^2 + 2 D F + 2 S D with
        an SSRU, and D V for the logits. At the first position there is only one hypothesis.
        """
        d_model, source = model.d_model, self.source_length
        feed_forward = 2 * d_model * model.d_ff
        encoder = 6 * d_model**2 + 2 * source * d_model + feed_forward
        decoder = (model.own_matrices + 2) * d_model**2 + 2 * source * d_model + feed_forward
        past = 2 * d_model if model.decoder == "self_attention" else 0
        logits = d_model * model.vocab_size
        per_sentence = source * model.num_layers * encoder
        for position in range(1, self.length + 1):
            step = model.num_layers * (decoder + position * past) + logits
            per_sentence += step * (1 if position == 1 else self.beam_size)
        return 2 * self.batch_size * per_sentence

    def sources(self, model):
        """Returns token ids `[batch_size, source_length]`, int32, always the same."""
        import numpy as np  # here, so that a process that only starts workers does not load it

        random = np.random.default_rng(model.seed)
        shape = (self.batch_size, self.source_length)
        sources = random.integers(EOS_ID + 1, model.vocab_size, shape, "int32")
        sources[:, -1] = EOS_ID
        return sources


def words(tokens):
    """Returns the text of token ids without the end; every word is the id of a token."""
    return " ".join(str(token) for token in tokens if token != EOS_ID)


@functools.cache
def vocabulary(model):
    """Returns a SentencePiece model whose `vocab_size` pieces are the ids as words of digits."""
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto()
    kinds = proto.SentencePiece
    special = {
        PAD_ID: ("<pad>", kinds.CONTROL), UNK_ID: ("<unk>", kinds.UNKNOWN),
        BOS_ID: ("<s>", kinds.CONTROL), EOS_ID: ("</s>", kinds.CONTROL),
    }  # fmt: skip
    for token in range(model.vocab_size):
        piece, kind = special.get(token, (f"\u2581{token}", kinds.NORMAL))
        proto.pieces.add(piece=piece, score=0.0, type=kind)
    trainer = proto.trainer_spec
    trainer.model_type, trainer.vocab_size = trainer.UNIGRAM, model.vocab_size
    trainer.pad_id, trainer.unk_id, trainer.bos_id, trainer.eos_id = PAD_ID, UNK_ID, BOS_ID, EOS_ID
    return proto.SerializeToString()


def build(model):
    """Returns a `Transformer` with random weights that ends every output at the same length.

    The weights themselves determine the end, so that no peer needs a rule for it. The last
    normalisation sets the first feature of every hidden state to 1, and the output weights of this
    feature are -20 for special tokens and 0 for all others. The table of positions makes the last
    feature large at the last position only, and the output weight of this feature is positive for
    the end only. So the end is impossible before the last position and certain there.

    The signs of the other features are random, because otherwise every token would be followed by
    itself. The kernels are scaled down by factors with which outputs depend on the source as much
    as on previous tokens: repetitions of a single token would hide errors.
    """
    import keras
    import numpy as np

    from keras_transformer import Transformer, TransformerConfig
    from keras_transformer.layers import sinusoids

    keras.utils.set_random_seed(model.seed)
    transformer = Transformer(
        TransformerConfig(
            vocab_size=model.vocab_size, num_layers=model.num_layers, d_model=model.d_model,
            d_ff=model.d_ff, num_heads=model.num_heads, dropout=0.0, max_length=model.max_length,
            position="learned", pad_id=PAD_ID, bos_id=BOS_ID, eos_id=EOS_ID, decoder=model.decoder,
        )
    )  # fmt: skip
    for weight in transformer.weights:
        if weight.path.endswith("kernel"):
            weight.assign(weight * (0.7 if "cross_attention" in weight.path else 0.3))
    positions = np.array(sinusoids(model.max_length, model.d_model))
    positions[:, -1] = 0
    positions[model.length - 1, -1] = 100  # of features that are about 1
    transformer.target_embedding.positions.assign(positions)
    norm = transformer.decoder.blocks[-1].feed_forward_norm
    signs = np.random.default_rng(model.seed).choice([-1.0, 1.0], model.d_model)
    signs[0], signs[-1] = 0, 1
    norm.gamma.assign(signs)
    norm.beta.assign(np.eye(1, model.d_model)[0])
    table = transformer.target_embedding.table.numpy()
    table[:, [0, -1]] = 0
    table[[PAD_ID, UNK_ID, BOS_ID, EOS_ID], 0] = -20
    table[EOS_ID, -1] = 40 / model.d_model**0.5  # times at most the root of d_model
    transformer.target_embedding.table.assign(table)
    return transformer


def without_end(rows):
    """Returns rows of token ids, each cut before its first end, if any."""
    rows = [list(row) for row in rows]
    return [row[: row.index(EOS_ID)] if EOS_ID in row else row for row in rows]


MODELS = {
    "tiny": Model("tiny", vocab_size=10_000, d_model=128, num_layers=4, num_heads=4, d_ff=256),
    "base": Model("base", vocab_size=32_000, d_model=512, num_layers=6, num_heads=8, d_ff=2048),
    # For the tests.
    "smoke": Model("smoke", vocab_size=200, d_model=16, num_layers=1, num_heads=2, d_ff=32),
}
