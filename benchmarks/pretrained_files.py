"""Checkpoints with random weights in the formats and sizes of published models.

`write_opus_mt` writes a folder like Hugging Face's for OPUS-MT, `write_marian` a model file and a
vocabulary like Marian's; see `pretrained_weights` for T5 and GPT-2. `keras-transformer convert`
turns each into a run, from which our own peers and CTranslate2 get their files.
"""

import json
import pathlib

import numpy as np
from decoding_files import SENTENCES, Files
from decoding_task import BOS_ID, EOS_ID, PAD_ID, Case, Model, build, vocabulary, words
from pretrained_weights import write_gpt2, write_t5

CHECKPOINT = "checkpoint"  # the folder
LONGEST = 512  # maximum length of OPUS-MT, in tokens
NEVER = -1e4  # logit of a token that is never generated
STUDENT_DECODER = 2  # number of layers
WORD = 3  # tokens of a word in GPT-2's vocabulary, at most
# Our names and the names in OPUS-MT, for every block.
BLOCKS = {
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention_norm": "encoder_attn_layer_norm",
    "feed_forward_norm": "final_layer_norm",
    "self_attention/query": "self_attn.q_proj",
    "self_attention/key": "self_attn.k_proj",
    "self_attention/value": "self_attn.v_proj",
    "self_attention/output": "self_attn.out_proj",
    "cross_attention/query": "encoder_attn.q_proj",
    "cross_attention/key": "encoder_attn.k_proj",
    "cross_attention/value": "encoder_attn.v_proj",
    "cross_attention/output": "encoder_attn.out_proj",
    "feed_forward/inner": "fc1",
    "feed_forward/outer": "fc2",
}
PARTS = {"kernel": "weight", "gamma": "weight", "beta": "bias", "bias": "bias"}


def make(order):
    """Writes a checkpoint, and the sentences to check exports with."""
    model, folder = Model(**order["model"]), pathlib.Path(order["folder"])
    (folder / CHECKPOINT).mkdir()
    WRITERS[order["format"]](model, folder / CHECKPOINT)
    # A check with shorter prompts would generate more tokens.
    count = order["prompt"] // WORD or None
    rows = Case(1, SENTENCES, model.length, model.source_length).sources(model)
    lines = "".join(f"{words(row[:count])}\n" for row in rows)
    (folder / "sentences.txt").write_text(lines, "utf-8")
    return Files({})


def write_opus_mt(model, folder):
    """Writes a folder in Hugging Face's format, with outputs that end at `model.length` tokens.

    The positions in the file are a table instead of sinusoids, because `build` uses them to set the
    end.
    """
    import safetensors.numpy

    tensors = dict(_tensors(build(model), model))
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    settings = {
        "model_type": "marian", "architectures": ["MarianMTModel"], "vocab_size": model.vocab_size,
        "decoder_vocab_size": model.vocab_size, "d_model": model.d_model,
        "activation_function": "swish", "scale_embedding": True, "static_position_embeddings": True,
        "encoder_layers": model.num_layers, "decoder_layers": model.num_layers,
        "encoder_attention_heads": model.num_heads, "decoder_attention_heads": model.num_heads,
        "encoder_ffn_dim": model.d_ff, "decoder_ffn_dim": model.d_ff, "num_hidden_layers":
        model.num_layers, "max_position_embeddings": LONGEST, "dropout": 0.1,
        "tie_word_embeddings": True, "share_encoder_decoder_embeddings": True,
        "pad_token_id": PAD_ID, "bos_token_id": BOS_ID, "eos_token_id": EOS_ID,
        "decoder_start_token_id": BOS_ID,
    }  # fmt: skip
    generation = {
        "bad_words_ids": [[PAD_ID]], "decoder_start_token_id": BOS_ID, "eos_token_id": EOS_ID,
        "forced_eos_token_id": EOS_ID, "max_length": LONGEST, "num_beams": 1,
        "pad_token_id": PAD_ID, "renormalize_logits": True,
    }  # fmt: skip
    content = vocabulary(model)
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(content)
    for name, value in (
        ("config.json", settings), ("generation_config.json", generation),
        ("vocab.json", _ids(content)),
    ):  # fmt: skip
        (folder / name).write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")


def _tensors(transformer, model):
    """Yields the weights with their names in OPUS-MT, including biases, which `build` omits."""
    random = np.random.default_rng(model.seed)
    weights = {weight.path: weight.numpy() for weight in transformer.weights}
    table = weights.pop("embedding/table")
    yield "model.shared.weight", table
    positions = np.zeros((LONGEST, model.d_model), "float32")
    learned = weights.pop("embedding/positions")
    positions[: len(learned)] = learned
    for stack in ("encoder", "decoder"):
        yield f"model.{stack}.embed_positions.weight", positions.copy()
    yield "final_logits_bias", np.zeros((1, model.vocab_size), "float32")
    for path, values in weights.items():
        stack, block, rest = path.split("/", 2)
        layer, _, part = rest.rpartition("/")
        name = f"model.{stack}.layers.{block.removeprefix('block_')}.{BLOCKS[layer]}"
        yield f"{name}.{PARTS[part]}", np.ascontiguousarray(values.T)
        if part == "kernel" and f"{path.rpartition('/')[0]}/bias" not in weights:
            yield f"{name}.bias", random.normal(0, 0.02, values.shape[1]).astype("float32")


def _ids(content):
    from keras_transformer.text.sentencepiece_model import pieces_of

    return {piece: number for number, piece in enumerate(pieces_of(content))}


def write_marian(model, folder):
    """Writes an SSRU student in Marian's format, with outputs that never end by themselves."""
    import keras

    from keras_transformer import Transformer, TransformerConfig
    from keras_transformer.export.marian.arrays import LOGITS, make_arrays
    from keras_transformer.text.tokenizers import Tokenizers
    from keras_transformer.tokenizers import SentencePieceTokenizer

    keras.utils.set_random_seed(model.seed)
    content = vocabulary(model)
    config = TransformerConfig.preset(
        "student_tiny", vocab_size=model.vocab_size, num_layers=model.num_layers,
        num_decoder_layers=STUDENT_DECODER, num_heads=model.num_heads, d_model=model.d_model,
        d_ff=model.d_ff, pad_id=PAD_ID, bos_id=BOS_ID, eos_id=EOS_ID, max_length=model.max_length,
    )  # fmt: skip
    arrays = make_arrays(Transformer(config), Tokenizers.of(SentencePieceTokenizer(content)))
    arrays[LOGITS][0, EOS_ID] = NEVER
    np.savez(folder / "model.npz", **arrays)
    (folder / "vocab.spm").write_bytes(content)


WRITERS = {
    "opus-mt": write_opus_mt, "marian": write_marian, "t5": write_t5, "gpt2": write_gpt2,
}  # fmt: skip
