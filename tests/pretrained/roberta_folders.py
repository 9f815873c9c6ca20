"""Folders as Hugging Face writes RoBERTa, with random weights and a small vocabulary."""

import json

import bert_folders
import bpe_in_python
import numpy as np
import safetensors.numpy

LINES = [
    "A dog is running.",
    "the film is not very good",
    "bad, bad film",
    "cats & dogs",
    "the good dog",
]
TEXTS = [*LINES[:3], "", " cats & dogs ☃", "good " * 40, "I've it's  2 dogs"]
MERGES = bpe_in_python.learn(LINES, 30)
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
PIECES = [*bpe_in_python.vocabulary(MERGES, SPECIAL), "<mask>"]
SIZES = {
    "model_type": "roberta",
    "architectures": ["RobertaForSequenceClassification"],
    "vocab_size": len(PIECES),
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 34,
    "max_position_embeddings": 23,
    "type_vocab_size": 1,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-5,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "id2label": bert_folders.SIZES["id2label"],
}
PLAIN = {"architectures": ["RobertaModel"]}
TAGGER = {**bert_folders.TAGGER, "architectures": ["RobertaForTokenClassification"]}


def ids_of(text):
    """The ids of a text between `<s>` and `</s>`."""
    ranks = {pair: number for number, pair in enumerate(MERGES)}
    return [0, *(PIECES.index(token) for token in bpe_in_python.tokens(text, ranks)), 2]


def tensors_of(settings, seed=0):
    """Random weights under the names of the file, most of which are BERT's."""
    rng = np.random.default_rng(seed)
    base = "" if settings["architectures"][0].endswith("Model") else "roberta."
    theirs = bert_folders.tensors_of({**settings, "architectures": ["BertModel"]}, seed)
    tensors = {f"{base}{name}": values for name, values in theirs.items()}
    width = settings["hidden_size"]
    name = f"{base}embeddings.token_type_embeddings.weight"
    tensors[name] = tensors[name][:1]
    if base:
        for end in ("weight", "bias"):
            tensors.pop(f"{base}pooler.dense.{end}")
    kind = settings["architectures"][0]
    last = {"QuestionAnswering": ("qa_outputs", 2),
            "TokenClassification": ("classifier", len(settings["id2label"]))}  # fmt: skip
    for end, (name, outputs) in last.items():
        if kind.endswith(end):
            kernel = rng.normal(size=(outputs, width)) * width**-0.5
            tensors[f"{name}.weight"] = kernel.astype("float32")
            tensors[f"{name}.bias"] = rng.normal(size=outputs).astype("float32") / 3
    if kind.endswith("SequenceClassification"):
        for name, outputs in (("dense", width), ("out_proj", len(settings["id2label"]))):
            kernel = rng.normal(size=(outputs, width)) * width**-0.5
            tensors[f"classifier.{name}.weight"] = kernel.astype("float32")
            tensors[f"classifier.{name}.bias"] = rng.normal(size=outputs).astype("float32") / 3
    return tensors


def tokenizer_json():
    """The vocabulary as a `tokenizer.json`."""
    return {
        "added_tokens": [{"id": PIECES.index("<mask>"), "content": "<mask>", "special": True}],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                          "use_regex": True},
        "post_processor": {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 2],
                           "trim_offsets": True, "add_prefix_space": False},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "byte_fallback": False,
                  "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False,
                  "vocab": {piece: number for number, piece in enumerate(PIECES)},
                  "merges": [" ".join(pair) for pair in MERGES]},
    }  # fmt: skip


def write_vocabulary(folder):
    """Writes `vocab.json` and `merges.txt`."""
    ids = {piece: number for number, piece in enumerate(PIECES)}
    (folder / "vocab.json").write_text(json.dumps(ids), "utf-8")
    pairs = "".join(f"{' '.join(pair)}\n" for pair in MERGES)
    (folder / "merges.txt").write_text(f"#version: 0.2\n{pairs}", "utf-8")


def write_folder(folder, more=None, lines=True, dtype="float32", **changes):
    """Writes a checkpoint, as `bert_folders.write_folder` does.

    `lines`: whether there are `vocab.json` and `merges.txt`, or else a `tokenizer.json`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SIZES, **changes}
    tensors = {name: values.astype(dtype) for name, values in tensors_of(settings).items()}
    safetensors.numpy.save_file({**tensors, **(more or {})}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    if lines:
        write_vocabulary(folder)
    else:
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()), "utf-8")
    return settings, {name: values.astype("float64") for name, values in tensors.items()}


def random_rows(settings, lengths=(13, 5, 2), seed=0):
    """Ids of texts, `<s> text </s>` and padding."""
    rng = np.random.default_rng(seed)
    ids = np.ones((len(lengths), max(lengths)), "int32")
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = rng.integers(4, settings["vocab_size"], length)
        row[0], row[length - 1] = 0, 2
    return ids


def forward(weights, settings, ids):
    """Hidden states `[B, S, D]` and, where there is a classifier, logits `[B, C]`, in NumPy.

    Positions count from the id of padding and one; token types are all 0. The blocks are BERT's.
    """
    import bert_in_numpy as numpy_bert

    weights = {name.removeprefix("roberta."): values for name, values in weights.items()}
    pad = settings["pad_token_id"]
    real = ids != pad
    places = np.where(real, np.cumsum(real, axis=1) + pad, pad)
    word, position, kind = (
        weights[f"embeddings.{name}_embeddings.weight"]
        for name in ("word", "position", "token_type")
    )
    x = word[ids] + position[places] + kind[0]
    x = numpy_bert.layer_norm(weights, "embeddings.LayerNorm", x, settings["layer_norm_eps"])
    x = numpy_bert.blocks(weights, settings, x, real)
    if "classifier.weight" in weights:
        return x, numpy_bert.linear(weights, "classifier", x)
    if "classifier.dense.weight" not in weights:
        return x, None
    pooled = np.tanh(numpy_bert.linear(weights, "classifier.dense", x[:, 0]))
    return x, numpy_bert.linear(weights, "classifier.out_proj", pooled)
