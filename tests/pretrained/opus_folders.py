"""Marian checkpoints as Hugging Face writes them, with random weights and small vocabularies."""

import functools
import io
import json

import numpy as np
import safetensors.numpy
import sentencepiece

SOURCE_TEXT = ["a dog runs over the green hill", "the cat sat on a mat", "seven dogs and nine cats"]
TARGET_TEXT = ["ein hund rennt den hügel hinauf", "die katze sass da", "sieben hunde, neun katzen"]
CODES = (">>deu<<", ">>nld<<")
SIZES = {
    "model_type": "marian",
    "d_model": 12,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 17,
    "decoder_ffn_dim": 17,
    "max_position_embeddings": 23,
    "activation_function": "swish",
    "scale_embedding": True,
    "dropout": 0.1,
}


@functools.cache
def spm(side, size=40):
    """Learns a SentencePiece model from one side's text, as OPUS-MT does."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter({"source": SOURCE_TEXT, "target": TARGET_TEXT}[side] * 3),
        model_writer=model,
        vocab_size=size,
        model_type="unigram",
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


def pieces(side):
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm(side))
    return [processor.id_to_piece(number) for number in range(processor.vocab_size())]


def vocabulary(*sides, codes=(), gap=0):
    """Returns ids as in a `vocab.json`: end, unknown, tokens, a gap, codes and padding."""
    names = ["</s>", "<unk>"]
    for side in sides:
        names += [piece for piece in pieces(side) if piece not in names and piece != "<s>"]
    ids = {piece: number for number, piece in enumerate(names)}
    for name in (*codes, "<pad>"):
        ids[name] = len(ids) + gap
    return ids


def tensors_of(settings, seed=0):
    """Returns random weights under the names of the file; a tied table occurs once."""
    rng = np.random.default_rng(seed)
    width, inner = settings["d_model"], settings["encoder_ffn_dim"]
    tensors = {}

    def add(name, *shape, mean=0.0, scale=None):
        scale = shape[-1] ** -0.5 if scale is None else scale
        tensors[name] = (mean + scale * rng.normal(size=shape)).astype("float32")

    def add_linear(name, outputs, inputs):
        add(f"{name}.weight", outputs, inputs)
        add(f"{name}.bias", outputs, scale=0.3)

    def add_norm(name):
        add(f"{name}.weight", width, mean=1.0, scale=0.3)
        add(f"{name}.bias", width, scale=0.3)

    sizes = {"encoder": settings["vocab_size"], "decoder": settings["decoder_vocab_size"]}
    if settings["share_encoder_decoder_embeddings"]:
        add("model.shared.weight", sizes["encoder"], width)
    for side, size in sizes.items():
        if not settings["share_encoder_decoder_embeddings"]:
            add(f"model.{side}.embed_tokens.weight", size, width)
        attentions = ["self_attn"] + ["encoder_attn"] * (side == "decoder")
        for number in range(settings[f"{side}_layers"]):
            name = f"model.{side}.layers.{number}"
            for attention in attentions:
                for projection in ("q", "k", "v", "out"):
                    add_linear(f"{name}.{attention}.{projection}_proj", width, width)
                add_norm(f"{name}.{attention}_layer_norm")
            add_linear(f"{name}.fc1", inner, width)
            add_linear(f"{name}.fc2", width, inner)
            add_norm(f"{name}.final_layer_norm")
        if settings.get("normalize_embedding"):
            add_norm(f"model.{side}.layernorm_embedding")
        if settings.get("add_final_layer_norm"):
            add_norm(f"model.{side}.layer_norm")
    add("final_logits_bias", 1, sizes["decoder"], scale=0.5)
    if not settings.get("tie_word_embeddings", True):
        add("lm_head.weight", sizes["decoder"], width)
    return tensors


def settings_of(vocab, target_vocab=None, extra=0, **changes):
    """Returns a `config.json` for these vocabularies, with `extra` ids after the last token."""
    size = max(vocab.values()) + 1 + extra
    target = size if target_vocab is None else max(target_vocab.values()) + 1 + extra
    special = {
        "vocab_size": size,
        "decoder_vocab_size": target,
        "share_encoder_decoder_embeddings": target_vocab is None,
        "pad_token_id": vocab["<pad>"],
        "decoder_start_token_id": vocab["<pad>"],
        "bos_token_id": 0,
        "eos_token_id": vocab["</s>"],
        "forced_eos_token_id": vocab["</s>"],
        "bad_words_ids": [[vocab["<pad>"]]],
        "num_beams": 4,
        "max_length": 20,
        "renormalize_logits": True,
    }
    return {**SIZES, **special, **changes}


def write_vocabulary(folder, vocab, target_vocab=None):
    """Writes all vocabulary files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False), "utf-8")
    if target_vocab is not None:
        text = json.dumps(target_vocab, ensure_ascii=False)
        (folder / "target_vocab.json").write_text(text, "utf-8")
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(spm(side))


def write_folder(
    folder, separate=False, codes=(), gap=0, extra=0, dtype="float32", seed=0, more=None, **changes
):
    """Writes a whole checkpoint; returns its settings and its tensors in float64.

    `more`: tensors to add or to replace; `changes`: changed settings, where `None` removes one.
    """
    target_vocab = None
    vocab = vocabulary("source", "target", codes=codes, gap=gap)
    if separate:
        vocab, target_vocab = vocabulary("source"), vocabulary("target")
        size = max(len(vocab), len(target_vocab))  # padding has the same id on both sides
        for ids in (vocab, target_vocab):
            ids["<pad>"] = size - 1
    settings = settings_of(vocab, target_vocab, extra, **changes)
    tensors = {**tensors_of(settings, seed), **(more or {})}
    tensors = {name: values.astype(dtype) for name, values in tensors.items()}
    write_vocabulary(folder, vocab, target_vocab)
    kept = {name: value for name, value in settings.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(kept), "utf-8")
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    return kept, {name: values.astype("float64") for name, values in tensors.items()}


UNKNOWN = ["ж", "жж", "€", "漢字", "漢", "ÿ", "xyz", "▁ж"]  # tokens that no SentencePiece model has


def with_unknown_pieces(folder):
    """Adds these tokens to the `vocab.json` of a folder and returns the folder."""
    write_folder(folder, codes=CODES, extra=len(UNKNOWN))
    vocab = json.loads((folder / "vocab.json").read_text())
    size = len(vocab)
    vocab |= {piece: size + number for number, piece in enumerate(UNKNOWN)}
    (folder / "vocab.json").write_text(json.dumps(vocab))
    return vocab


UNKNOWN_TEXTS = [
    "ж", "a ж dog", "жж", "жжж a жж", "a€", "€€", "漢字", "漢", "字漢", "漢字漢字", "ж€", "ÿ a",
    "xyz", "the \uff58 cat", "\uff21\uff22", "a\u00a0ж", ">>deu<< ж", ">>xxx<<жж", "ж >>deu<<",
    "", "a dog", "😀 ж😀", "</s> ж", "<unk>", "Ж",
]  # fmt: skip


def random_tokens(settings, lengths, seed=0, left=False, size="vocab_size", start=None):
    """Returns random sentences `[B, max]`, padded on one side; each ends with the end token."""
    rng = np.random.default_rng(seed)
    pad, end = settings["pad_token_id"], settings["eos_token_id"]
    words = [token for token in range(settings[size]) if token not in (pad, end)]
    rows = np.full((len(lengths), max(lengths)), pad, "int32")
    for row, length in zip(rows, lengths, strict=True):
        tokens = rng.choice(words, length)
        tokens[-1] = end
        if start is not None:
            tokens = np.insert(tokens[:-1], 0, start)
        row[slice(-length, None) if left else slice(length)] = tokens
    return rows
