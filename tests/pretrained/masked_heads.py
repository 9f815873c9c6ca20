"""Heads for masked tokens, in the files of each family and in NumPy.

`write_folder` writes a checkpoint with such a head; `forward` computes it from the names of the
file. Neither shares code with the package.
"""

import re
import typing

import bert_folders
import bert_in_numpy
import distilbert_folders
import distilbert_in_numpy
import electra_folders
import encoder_folders
import encoders_in_numpy
import numpy as np
import roberta_folders
import safetensors.numpy
import unigram_folders


class Names(typing.NamedTuple):
    """`decoder`: name of the output weights, `None` if they are always those of the embedding."""

    dense: str
    norm: str
    decoder: str | None
    bias: str


ROBUST = Names("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias")
KINDS = {
    "bert": ("Bert", bert_folders, {}),
    "distilbert": ("DistilBert", distilbert_folders, {}),
    "electra": ("Electra", electra_folders, {}),
    "roberta": ("Roberta", roberta_folders, {}),
    "xlm-roberta": ("XLMRoberta", unigram_folders, {"family": "xlm-roberta"}),
    "camembert": ("Camembert", unigram_folders, {"family": "camembert"}),
    "albert": ("Albert", encoder_folders, {"family": "albert"}),
    "mpnet": ("MPNet", encoder_folders, {"family": "mpnet"}),
    "modernbert": ("ModernBert", encoder_folders, {"family": "modernbert"}),
    "deberta": ("DebertaV2", encoder_folders, {"family": "deberta-v2"}),
    "deberta, newer": ("DebertaV2", encoder_folders, {"family": "deberta-v2", "legacy": False}),
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
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert", "mpnet"), ROBUST),
    "albert": Names(
        "predictions.dense", "predictions.LayerNorm", "predictions.decoder", "predictions.bias"
    ),
    "modernbert": Names("head.dense", "head.norm", "decoder", "decoder.bias"),
    "deberta, newer": Names(
        "lm_predictions.lm_head.dense", "lm_predictions.lm_head.LayerNorm", None,
        "lm_predictions.lm_head.bias",
    ),
}  # fmt: skip
NAMES["deberta"] = NAMES["bert"]
# The setting that names the activation of the head; the others have GELU.
ACTIVATIONS = {
    **dict.fromkeys(("bert", "albert", "deberta", "deberta, newer"), "hidden_act"),
    "distilbert": "activation",
    "modernbert": "classifier_activation",
}

TEXTS = [
    "A {} is running.", "the {} is {} very good", "{}", "the film is not very{}.", "{}, bad film",
    "A dog  {}s {}{} \u2603 caf\u00e9", "a DOG & the\t{}\u00a0cat",
]  # fmt: skip

UNUSED = re.compile(r"<unused \d+>")  # which have no name in `transformers`


def masked_texts(mask):
    """Returns texts with masks, which have another name in each vocabulary."""
    return [text.replace("{}", mask) for text in TEXTS]


def check_words(results, theirs):
    """Compares `Filling`s with the answers of the pipeline of `transformers` to the same texts."""
    assert len({result.choice for result in results}) > 3
    for ours, masks in zip(results, theirs, strict=True):
        scores = [[word["score"] for word in words] for words in masks]
        np.testing.assert_allclose(ours.probabilities, scores, rtol=0, atol=1e-5)
        words = [[UNUSED.sub("", word) for word in row] for row in ours.words]
        assert words == [[word["token_str"] for word in row] for row in masks]


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
    if kind == "modernbert":
        kept = {
            f"{names.dense}.bias": settings.get("classifier_bias", False),
            f"{names.norm}.bias": settings.get("norm_bias", False),
            names.bias: settings.get("decoder_bias", True),
        }
        head = {name: values for name, values in head.items() if kept.get(name, True)}
    if not tied and names.decoder is not None:
        head[f"{names.decoder}.weight"] = normal(size, narrow)
        if f"{names.decoder}.bias" != names.bias:  # which then has no effect
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
    if KINDS[kind][1] is encoder_folders:
        return encoders_in_numpy.forward(tensors, settings, ids, types)[0]
    return roberta_folders.forward(tensors, settings, ids)[0]


def forward(kind, tensors, settings, ids, types):
    """Returns the logits `[B, S, V]` of the tokens at all positions."""
    names, x = NAMES[kind], states_of(kind, tensors, settings, ids, types)
    activation = settings.get(ACTIVATIONS.get(kind), "gelu")
    epsilon = settings.get("norm_eps", settings.get("layer_norm_eps", distilbert_in_numpy.EPSILON))
    x = encoders_in_numpy.product(tensors, names.dense, x)
    x = bert_in_numpy.ACTIVATIONS[activation](x)
    x = encoders_in_numpy.plain_norm(tensors, names.norm, x, epsilon)
    ends = ("word_embeddings.weight", "tok_embeddings.weight")
    (table,) = (values for name, values in tensors.items() if name.endswith(ends))
    weights = tensors.get(f"{names.decoder}.weight", table)
    return x @ weights.T + tensors.get(f"{names.decoder}.bias", tensors.get(names.bias, 0.0))


def random_rows(kind, settings):
    """Returns ids and token types of texts, of which some tokens are masks."""
    if kind in ("bert", "distilbert", "electra"):
        ids, types = bert_folders.random_rows(settings)
        ids[0, 3], ids[1, 1] = 5, 5
        return ids, types
    if KINDS[kind][1] is encoder_folders:
        return encoder_folders.random_rows(settings)
    ids = roberta_folders.random_rows(settings)
    ids[ids == 0] = settings["bos_token_id"]
    ids[0, 3], ids[1, 1] = settings["vocab_size"] - 1, settings["vocab_size"] - 1
    return ids, None
