"""The task of every peer: one model of random weights, one batch, always the same length."""

import dataclasses
import functools

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
SOURCE_LENGTH = 24  # tokens, the end included
FLOAT32 = 4  # bytes
WEIGHTS = "weights.npz"  # an array for each path of a weight


@dataclasses.dataclass(frozen=True)
class Model:
    """One encoder-decoder Transformer, post-norm, with one matrix for both embeddings and logits.

    Args:
        size: Name of the size.
        vocab_size, d_model, num_layers, num_heads, d_ff: As in the paper; `num_layers` blocks in
            the encoder and as many in the decoder.
        length: Tokens of every output, the end included.
        seed: Of weights and sentences.
        decoder: What reads the output so far, `"self_attention"` or `"ssru"`.
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

    @property
    def own_matrices(self):
        """How many matrices D^2 of a block of the decoder read the output so far."""
        return 4 if self.decoder == "self_attention" else 2

    @property
    def max_length(self):
        """Longest source and longest output that the model is made for.

        Twice as long as the outputs: whoever ships a model does not know how long they will be.
        """
        return 2 * max(self.length, SOURCE_LENGTH)

    @property
    def step_bytes(self):
        """Bytes of the weights that every step of a decoder reads, in float32.

        D^2 each for query, key, value and output of the self-attention, or the two matrices of an
        SSRU, and for query and output of the cross-attention, whose keys and values are made once;
        2 D F; and D V for the logits.
        """
        block = (self.own_matrices + 2) * self.d_model**2 + 2 * self.d_model * self.d_ff
        return FLOAT32 * (self.num_layers * block + self.d_model * self.vocab_size)


@dataclasses.dataclass(frozen=True)
class Case:
    """How the model is used.

    Args:
        beam_size: Hypotheses that run at a time; 1 is greedy search.
        batch_size: Sentences at a time.
        length: Tokens of every output, the end included.
        source_length: Tokens of every source, the end included.
    """

    beam_size: int
    batch_size: int
    length: int
    source_length: int = SOURCE_LENGTH

    @property
    def search(self):
        """What the search is called."""
        return "greedy" if self.beam_size == 1 else f"beam {self.beam_size}"

    def flops(self, model):
        """Floating-point operations in the matrix products of one call, without a wasted one.

        With a multiplication and an addition counted as two. Per source token and block 4 D^2 +
        2 S D + 2 D F, and 2 D^2 for the keys and values of the cross-attention. Per target token,
        hypothesis and block 6 D^2 + 2 D F + 2 S D + 2 p D at position p, counted from 1, or with
        an SSRU 4 D^2 + 2 D F + 2 S D; and D V. All hypotheses begin as one.
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
        import numpy as np  # here, so that whoever only starts workers stays small

        random = np.random.default_rng(model.seed)
        shape = (self.batch_size, self.source_length)
        sources = random.integers(EOS_ID + 1, model.vocab_size, shape, "int32")
        sources[:, -1] = EOS_ID
        return sources


def words(tokens):
    """Returns the text for token ids, the end left out: every word is the number of a token."""
    return " ".join(str(token) for token in tokens if token != EOS_ID)


@functools.cache
def vocabulary(model):
    """Returns a SentencePiece model of `vocab_size` pieces, each of them a word of digits."""
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
    """Returns a `Transformer` of random weights that ends every sentence at the same length.

    No peer needs a rule for when to end: the last normalisation gives every hidden state a 1 in
    the first place, and there the table has -20 for the special tokens and 0 for all others. The
    last place of a hidden state is large at the last position alone, which the table of positions
    makes so, and there the table has a number for the end of a sentence alone: it is out of the
    question before that position and certain at it. The other places change their sign at random,
    or every token would be followed by itself; and kernels are smaller than at the start of a
    training, by factors that make outputs depend on the source as much as on the tokens before:
    outputs of one token again and again would show no mistake.
    """
    import keras
    import numpy as np

    from keras_transformer import Transformer, TransformerConfig, sinusoids

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
    """Returns rows of token ids up to the first end of each, or whole where there is none."""
    rows = [list(row) for row in rows]
    return [row[: row.index(EOS_ID)] if EOS_ID in row else row for row in rows]


MODELS = {
    "tiny": Model("tiny", vocab_size=10_000, d_model=128, num_layers=4, num_heads=4, d_ff=256),
    "base": Model("base", vocab_size=32_000, d_model=512, num_layers=6, num_heads=8, d_ff=2048),
    # For the tests.
    "smoke": Model("smoke", vocab_size=200, d_model=16, num_layers=1, num_heads=2, d_ff=32),
}
