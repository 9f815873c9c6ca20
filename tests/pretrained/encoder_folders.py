"""Folders as Hugging Face writes ALBERT, MPNet, DeBERTa and ModernBERT, with random weights."""

import base64
import functools
import json

import bert_folders
import numpy as np
import roberta_folders
import safetensors.numpy
import unigram_folders

SIZES = {
    "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 34,
    "max_position_embeddings": 23, "id2label": bert_folders.SIZES["id2label"],
}  # fmt: skip
BERT_LIKE = {**SIZES, "hidden_act": "gelu", "layer_norm_eps": 1e-7, "pad_token_id": 0}
SETTINGS = {
    "albert": {
        **BERT_LIKE, "hidden_act": "gelu_new", "embedding_size": 10, "num_hidden_groups": 2,
        "inner_group_num": 1, "type_vocab_size": 2,
    },
    "mpnet": {**BERT_LIKE, "pad_token_id": 1, "relative_attention_num_buckets": 32},
    "deberta-v2": {
        **BERT_LIKE, "relative_attention": True, "position_buckets": 4, "share_att_key": True,
        "pos_att_type": "p2c|c2p", "norm_rel_ebd": "layer_norm", "max_relative_positions": -1,
        "position_biased_input": False, "type_vocab_size": 0, "pooler_hidden_act": "gelu",
    },
    "modernbert": {
        **SIZES, "pad_token_id": 1, "global_attn_every_n_layers": 3, "local_attention": 6,
        "global_rope_theta": 160.0, "local_rope_theta": 10.0, "norm_eps": 1e-5,
        "classifier_pooling": "mean", "hidden_activation": "gelu",
    },
}  # fmt: skip
CLASSES = {"albert": "Albert", "mpnet": "MPNet", "deberta-v2": "DebertaV2",
           "modernbert": "ModernBert"}  # fmt: skip
BASES = {"albert": "albert.", "mpnet": "mpnet.", "deberta-v2": "deberta.", "modernbert": "model."}
# Ids of the first token and of the last one of a text.
MARKS = {"albert": (2, 3), "mpnet": (0, 2), "deberta-v2": (1, 2), "modernbert": (2, 3)}


class Random:
    """Random tensors under the names of PyTorch's layers."""

    def __init__(self, seed=0):
        self.rng, self.tensors = np.random.default_rng(seed), {}

    def add(self, name, *shape, mean=0.0, scale=None):
        scale = shape[-1] ** -0.5 if scale is None else scale
        values = mean + scale * self.rng.normal(size=shape)
        self.tensors[name] = values.astype("float32")

    def linear(self, name, outputs, inputs, bias=True):
        self.add(f"{name}.weight", outputs, inputs)
        if bias:
            self.add(f"{name}.bias", outputs, scale=0.3)

    def norm(self, name, width, bias=True):
        self.add(f"{name}.weight", width, mean=1.0, scale=0.3)
        if bias:
            self.add(f"{name}.bias", width, scale=0.3)


def tensors_of(settings, size):
    """Returns random weights under the names of the file, for a vocabulary of `size` tokens."""
    family, kind = settings["model_type"], settings["architectures"][0]
    base = "" if kind.endswith("Model") else BASES[family]
    random, width, inner = Random(), settings["hidden_size"], settings["intermediate_size"]
    narrow = settings.get("embedding_size", width)
    if family == "modernbert":
        _modernbert(random, base, settings, size)
    else:
        random.add(f"{base}embeddings.word_embeddings.weight", size, narrow)
        if settings.get("position_biased_input", True):
            rows = settings["max_position_embeddings"]
            random.add(f"{base}embeddings.position_embeddings.weight", rows, narrow)
        if settings.get("type_vocab_size"):
            random.add(f"{base}embeddings.token_type_embeddings.weight", 2, narrow)
        random.norm(f"{base}embeddings.LayerNorm", narrow)
    layers = {
        "albert": [
            f"albert_layer_groups.{group}.albert_layers.{number}"
            for group in range(settings.get("num_hidden_groups", 0))
            for number in range(settings.get("inner_group_num", 0))
        ],
        "modernbert": [],
    }.get(family, [f"layer.{number}" for number in range(settings["num_hidden_layers"])])
    square, up, down, norms = {
        "albert": (["attention.query", "attention.key", "attention.value", "attention.dense"],
                   "ffn", "ffn_output", ["attention.LayerNorm", "full_layer_layer_norm"]),
        "mpnet": ([f"attention.attn.{name}" for name in "qkvo"],
                  "intermediate.dense", "output.dense",
                  ["attention.LayerNorm", "output.LayerNorm"]),
        "deberta-v2": ([*(f"attention.self.{n}_proj" for n in ("query", "key", "value")),
                        "attention.output.dense"], "intermediate.dense", "output.dense",
                       ["attention.output.LayerNorm", "output.LayerNorm"]),
    }.get(family, ([], "", "", []))  # fmt: skip
    for layer in layers:
        name = f"{base}encoder.{layer}."
        for part in square:
            random.linear(name + part, width, width)
        random.linear(name + up, inner, width)
        random.linear(name + down, width, inner)
        for part in norms:
            random.norm(name + part, width)
    if family == "albert":
        random.linear(f"{base}encoder.embedding_hidden_mapping_in", width, narrow)
    if family == "mpnet":
        heads = settings["num_attention_heads"]
        random.add(f"{base}encoder.relative_attention_bias.weight", 32, heads, scale=1.0)
    if family == "deberta-v2":
        rows = 2 * settings["position_buckets"]
        random.add(f"{base}encoder.rel_embeddings.weight", rows, width, scale=1.0)
        if settings["norm_rel_ebd"] == "layer_norm":
            random.norm(f"{base}encoder.LayerNorm", width)
    _head(random, family, kind, settings)
    return random.tensors


def _modernbert(random, base, settings, size):
    width, inner = settings["hidden_size"], settings["intermediate_size"]
    shifted = settings.get("norm_bias", False)
    random.add(f"{base}embeddings.tok_embeddings.weight", size, width)
    random.norm(f"{base}embeddings.norm", width, shifted)
    for number in range(settings["num_hidden_layers"]):
        name = f"{base}layers.{number}"
        if number:
            random.norm(f"{name}.attn_norm", width, shifted)
        random.norm(f"{name}.mlp_norm", width, shifted)
        for part, outputs, inputs in (
            ("attn.Wqkv", 3 * width, width),
            ("attn.Wo", width, width),
            ("mlp.Wi", 2 * inner, width),
            ("mlp.Wo", width, inner),
        ):
            random.linear(f"{name}.{part}", outputs, inputs, bias=False)
    random.norm(f"{base}final_norm", width, shifted)


def _head(random, family, kind, settings):
    width, count = settings["hidden_size"], len(settings["id2label"])
    if not kind.endswith(("Classification", "QuestionAnswering")):
        return
    count = 2 if kind.endswith("QuestionAnswering") else count
    if family == "modernbert":
        random.linear("head.dense", width, width, bias=False)
        random.norm("head.norm", width, bias=False)
        random.linear("classifier", count, width)
    elif kind.endswith("QuestionAnswering"):
        random.linear("qa_outputs", count, width)
    elif kind.endswith("TokenClassification"):
        random.linear("classifier", count, width)
    elif family == "mpnet":
        random.linear("classifier.dense", width, width)
        random.linear("classifier.out_proj", count, width)
    else:
        random.linear("albert.pooler" if family == "albert" else "pooler.dense", width, width)
        random.linear("classifier", count, width)


@functools.cache
def unigram(family):
    """Returns pairs of token and score, whose special tokens come first."""
    special = {"albert": ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
               "deberta-v2": ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]}[family]  # fmt: skip
    pieces = unigram_folders.scored("xlm-roberta")[4:-1]
    more = [["[MASK]", 0.0]] if family == "deberta-v2" else []
    return [*([name, 0.0] for name in special), *pieces, *more]


def mpnet_pieces():
    """Returns BERT's small vocabulary with the special tokens of MPNet."""
    first = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>"]
    return [*first, *bert_folders.PIECES[len(first) :]]


def modernbert_pieces():
    """Returns RoBERTa's small vocabulary with other special tokens."""
    first = dict(zip(roberta_folders.SPECIAL, ("[UNK]", "[PAD]", "[CLS]", "[SEP]"), strict=True))
    return [first.get(piece, piece) for piece in roberta_folders.PIECES[:-1]] + ["[MASK]"]


def added(number, name, **changes):
    """Returns an entry of `added_tokens`."""
    rules = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": number, "content": name, "special": True, **rules, **changes}


def tokenizer_json(family):
    """Returns the vocabulary as a `tokenizer.json`, as the published ones are."""
    if family == "modernbert":
        pieces = modernbert_pieces()
        content = roberta_folders.tokenizer_json()
        vocab = {piece: number for number, piece in enumerate(pieces)}
        special = [added(vocab["[MASK]"], "[MASK]", lstrip=True)]
        return {
            **content, "normalizer": {"type": "NFC"}, "added_tokens": special,
            "post_processor": bert_folders.template("[CLS]", "[SEP]", pieces),
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                        "use_regex": True},
            "model": {**content["model"], "vocab": vocab},
        }  # fmt: skip
    if family == "mpnet":
        pieces = mpnet_pieces()
        content = bert_folders.tokenizer_json()
        vocab = {piece: number for number, piece in enumerate(pieces)}
        return {
            **content, "added_tokens": [added(1, "<pad>"), added(5, "<mask>", lstrip=True)],
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "post_processor": {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 2],
                               "trim_offsets": True, "add_prefix_space": False},
            "model": {**content["model"], "vocab": vocab},
        }  # fmt: skip
    pieces = unigram(family)
    names = [name for name, _ in pieces]
    rules = {
        "type": "Precompiled",
        "precompiled_charsmap": base64.b64encode(unigram_folders.charsmap()).decode(),
    }
    one_space = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    quotes = [{"type": "Replace", "pattern": {"String": x}, "content": '"'} for x in ("``", "''")]
    steps = [*quotes, {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]
    if family == "deberta-v2":
        steps = [{"type": "Strip", "strip_left": True, "strip_right": True}]
    splits = [{"type": "WhitespaceSplit"}] if family == "albert" else []
    marks = bert_folders.template("[CLS]", "[SEP]", names)
    last = {"SpecialToken": {"id": "[SEP]", "type_id": 1}}  # ends the second text
    marks["pair"] = [*marks["pair"][:-1], last]
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    return {
        "added_tokens": [added(names.index("[MASK]"), "[MASK]", lstrip=True)],
        "normalizer": {"type": "Sequence", "normalizers": [*steps, rules, one_space]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, metaspace]},
        "decoder": metaspace,
        "post_processor": marks,
        "model": {
            "type": "Unigram",
            "unk_id": names.index("<unk>" if family == "albert" else "[UNK]"),
            "vocab": pieces,
            "byte_fallback": False,
        },
    }


def vocab_size(family):
    """Returns the number of tokens, with some that no text has."""
    vocab = tokenizer_json(family)["model"]["vocab"]
    return len(vocab) + 2


def settings_of(family, head="SequenceClassification", **changes):
    """Returns the settings of a checkpoint with a head, or `"Model"`."""
    kind = head if head in ("Model", "ForMaskedLM") else f"For{head}"
    sizes = {"model_type": family, "vocab_size": vocab_size(family)}
    return {**sizes, **SETTINGS[family], "architectures": [CLASSES[family] + kind], **changes}


def write_folder(folder, family, head="SequenceClassification", more=None, **changes):
    """Writes a checkpoint; returns its settings, and the stored tensors in float64.

    `more`: tensors besides those of the model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = settings_of(family, head, **changes)
    tensors = tensors_of(settings, settings["vocab_size"])
    safetensors.numpy.save_file({**tensors, **(more or {})}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json(family)), "utf-8")
    return settings, {name: values.astype("float64") for name, values in tensors.items()}


def random_rows(settings, lengths=(17, 5, 2), seed=0):
    """Returns ids and token types of pairs of texts, padded."""
    family, rng = settings["model_type"], np.random.default_rng(seed)
    begin, end = MARKS[family]
    ids = np.full((len(lengths), max(lengths)), settings["pad_token_id"], "int32")
    types = np.zeros_like(ids)
    for row, kinds, length in zip(ids, types, lengths, strict=True):
        row[:length] = rng.integers(5, settings["vocab_size"], length)
        row[0], row[length - 1] = begin, end
        if length > 4:
            row[length // 2] = end
            kinds[length // 2 + 1 : length] = 1
    return ids, types
