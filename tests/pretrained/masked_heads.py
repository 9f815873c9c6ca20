"""Heads for masked tokens, in the files of each family and in NumPy.

`write_folder` writes a checkpoint with such a head; `forward` computes it from the names of the
file. Neither shares code with the package.
"""

import typing

import bert_folders
import bert_in_numpy
import distilbert_folders
import distilbert_in_numpy
import electra_folders
import numpy as np
import roberta_folders
import safetensors.numpy
import unigram_folders


class Names(typing.NamedTuple):
    dense: str
    norm: str
    decoder: str
    bias: str


ROBUST = Names("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias")
KINDS = {
    "bert": ("Bert", bert_folders, {}),
    "distilbert": ("DistilBert", distilbert_folders, {}),
    "electra": ("Electra", electra_folders, {}),
    "roberta": ("Roberta", roberta_folders, {}),
    "xlm-roberta": ("XLMRoberta", unigram_folders, {"family": "xlm-roberta"}),
    "camembert": ("Camembert", unigram_folders, {"family": "camembert"}),
}
NAMES = {
    "bert": Names(
        "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
        "cls.predictions.decoder", "cls.predictions.bias",
    ),
    "distilbert": Names(
        "vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias"
    ),
    "electra": Names(
        "generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head",
        "generator_lm_head.bias",
    ),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), ROBUST),
}  # fmt: skip


def write_folder(folder, kind, tied=True, more=None, **changes):
    """Writes a checkpoint of a family with such a head; returns settings and tensors.

    `more`: further tensors, or `None` in the place of one that is left out.
    """
    name, module, options = KINDS[kind]
    changes = {"tie_word_embeddings": tied, **changes}
    settings, tensors = module.write_folder(
        folder, **options, architectures=[f"{name}ForMaskedLM"], **changes
    )
    rng, names = np.random.default_rng(5), NAMES[kind]
    size, width = settings["vocab_size"], settings.get("hidden_size") or settings["dim"]
    narrow = settings.get("embedding_size", width)

    def normal(*shape, mean=0.0):
        return (mean + rng.normal(size=shape) * shape[-1] ** -0.5).astype("float32")

    head = {
        f"{names.dense}.weight": normal(narrow, width),
        f"{names.dense}.bias": normal(narrow),
        f"{names.norm}.weight": normal(narrow, mean=1.0),
        f"{names.norm}.bias": normal(narrow),
        names.bias: normal(size),
    }
    if not tied:
        head[f"{names.decoder}.weight"] = normal(size, narrow)
        if kind != "electra" and kind != "distilbert":  # the head's own bias has no effect
            head[f"{names.decoder}.bias"] = normal(size)
    written = {**{k: v.astype("float32") for k, v in tensors.items()}, **head, **(more or {})}
    kept = {name: values for name, values in written.items() if values is not None}
    safetensors.numpy.save_file(kept, folder / "model.safetensors")
    return settings, {name: values.astype("float64") for name, values in kept.items()}


def states_of(kind, tensors, settings, ids, types):
    if kind == "bert":
        return bert_in_numpy.forward(tensors, settings, ids, types)[0]
    if kind == "electra":
        return electra_folders.forward(tensors, settings, ids, types)[0]
    if kind == "distilbert":
        return distilbert_in_numpy.forward(tensors, settings, ids)[0]
    return roberta_folders.forward(tensors, settings, ids)[0]


def forward(kind, tensors, settings, ids, types):
    """Returns the logits `[B, S, V]` of the tokens at all positions."""
    names, x = NAMES[kind], states_of(kind, tensors, settings, ids, types)
    activation = {"bert": "hidden_act", "distilbert": "activation"}.get(kind)
    activation = settings.get(activation, "gelu")
    epsilon = settings.get("layer_norm_eps", distilbert_in_numpy.EPSILON)
    x = bert_in_numpy.ACTIVATIONS[activation](bert_in_numpy.linear(tensors, names.dense, x))
    x = bert_in_numpy.layer_norm(tensors, names.norm, x, epsilon)
    (table,) = (v for name, v in tensors.items() if name.endswith("word_embeddings.weight"))
    weights = tensors.get(f"{names.decoder}.weight", table)
    return x @ weights.T + tensors.get(f"{names.decoder}.bias", tensors[names.bias])


def random_rows(kind, settings):
    """Returns ids and token types of texts, of which some tokens are masks."""
    if kind in ("bert", "distilbert", "electra"):
        ids, types = bert_folders.random_rows(settings)
        ids[0, 3], ids[1, 1] = 5, 5
        return ids, types
    ids = roberta_folders.random_rows(settings)
    ids[ids == 0] = settings["bos_token_id"]
    ids[0, 3], ids[1, 1] = settings["vocab_size"] - 1, settings["vocab_size"] - 1
    return ids, None
