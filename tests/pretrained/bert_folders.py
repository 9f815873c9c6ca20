"""Checkpoints of BERT as Hugging Face writes them, with random weights and a small vocabulary."""

import json

import numpy as np
import safetensors.numpy

WORDS = ["a", "dog", "cat", "run", "good", "bad", "film", "the", "is", "not", "very", ".", ",", "é"]
PARTS = ["##s", "##ning", "##ly", "##a", "##b", "##g"]
PIECES = ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *"bcfgmnrstv", *PARTS]
SIZES = {
    "model_type": "bert",
    "architectures": ["BertForSequenceClassification"],
    "vocab_size": len(PIECES),
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 34,
    "max_position_embeddings": 21,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "id2label": {"0": "NEGATIVE", "1": "NEUTRAL", "2": "POSITIVE"},
}
PLAIN = {"architectures": ["BertModel"]}
TAGGER = {
    "architectures": ["BertForTokenClassification"],
    "id2label": {"0": "O", "1": "B-PER", "2": "I-PER", "3": "B-LOC"},
}
TEXTS = [
    "A dog is running.", "the film is not very good", "bad, bad film", "", "cats & dogs ☃",
    "good " * 40,
]  # fmt: skip


def tensors_of(settings, seed=0):
    """Returns random weights under the names of the file."""
    rng = np.random.default_rng(seed)
    width, inner = settings["hidden_size"], settings["intermediate_size"]
    base = "" if settings["architectures"] == ["BertModel"] else "bert."
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

    for table, rows in (
        ("word", settings["vocab_size"]),
        ("position", settings["max_position_embeddings"]),
        ("token_type", 2),
    ):
        add(f"{base}embeddings.{table}_embeddings.weight", rows, width)
    add_norm(f"{base}embeddings.LayerNorm")
    for number in range(settings["num_hidden_layers"]):
        name = f"{base}encoder.layer.{number}"
        for projection in ("query", "key", "value"):
            add_linear(f"{name}.attention.self.{projection}", width, width)
        add_linear(f"{name}.attention.output.dense", width, width)
        add_norm(f"{name}.attention.output.LayerNorm")
        add_linear(f"{name}.intermediate.dense", inner, width)
        add_linear(f"{name}.output.dense", width, inner)
        add_norm(f"{name}.output.LayerNorm")
    if settings["architectures"][0].endswith("QuestionAnswering"):
        add_linear("qa_outputs", 2, width)
    elif settings["architectures"] != TAGGER["architectures"]:
        add_linear(f"{base}pooler.dense", width, width)
    if settings["architectures"][0].endswith("Classification"):
        add_linear("classifier", len(settings["id2label"]), width)
    return tensors


def template(begin, end, pieces):
    """Returns the `post_processor` that puts two tokens around a text."""
    names = {
        name: {"id": name, "ids": [pieces.index(name)], "tokens": [name]} for name in (begin, end)
    }
    marks = [{"SpecialToken": {"id": name, "type_id": 0}} for name in (begin, end)]
    single = [marks[0], {"Sequence": {"id": "A", "type_id": 0}}, marks[1]]
    other = [{"Sequence": {"id": "B", "type_id": 1}}, marks[1]]
    return {"type": "TemplateProcessing", "single": single, "pair": [*single, *other],
            "special_tokens": names}  # fmt: skip


def tokenizer_json(lowercase=True):
    """Returns the vocabulary as a `tokenizer.json`."""
    return {
        "added_tokens": [{"id": 0, "content": "[PAD]", "special": True}],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": lowercase},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": template("[CLS]", "[SEP]", PIECES),
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100,
                  "vocab": {piece: number for number, piece in enumerate(PIECES)}},
    }  # fmt: skip


def write_folder(folder, more=None, lines=True, dtype="float32", **changes):
    """Writes a checkpoint; returns its settings, and the stored tensors in float64.

    `more`: tensors besides those of the model; `lines`: writes `vocab.txt` if true, otherwise
    `tokenizer.json`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SIZES, **changes}
    tensors = {name: values.astype(dtype) for name, values in tensors_of(settings).items()}
    safetensors.numpy.save_file({**tensors, **(more or {})}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    if lines:
        (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", "utf-8")
    else:
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()), "utf-8")
    return settings, {name: values.astype("float64") for name, values in tensors.items()}


def random_rows(settings, lengths=(13, 5, 2), seed=0):
    """Returns ids and token types of pairs of texts: `[CLS] one [SEP] other [SEP]`, padded."""
    rng = np.random.default_rng(seed)
    ids = np.zeros((len(lengths), max(lengths)), "int32")
    types = np.zeros_like(ids)
    for row, kinds, length in zip(ids, types, lengths, strict=True):
        row[:length] = rng.integers(5, settings["vocab_size"], length)
        row[0], row[length - 1] = 3, 4
        if length > 4:
            row[length // 2] = 4
            kinds[length // 2 + 1 : length] = 1
    return ids, types
