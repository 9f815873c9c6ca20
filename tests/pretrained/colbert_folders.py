"""Folders of ColBERT models, as PyLate, sentence-transformers and Stanford's ColBERT write them."""

import json
import string

import bert_folders
import encoder_folders
import numpy as np
import safetensors.numpy

MODULES = "sentence_transformers.models."
IDENTITY = "torch.nn.modules.linear.Identity"
# The settings of PyLate; its prefixes are tokens with the space.
PYLATE = {
    "prompts": {}, "default_prompt_name": None, "similarity_fn_name": "MaxSim",
    "query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 9, "document_length": 14,
    "attend_to_expansion_tokens": False, "skiplist_words": [*string.punctuation],
    "do_query_expansion": True,
}  # fmt: skip
STANFORD = {
    "query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_token": "[Q]",
    "doc_token": "[D]", "dim": 7, "similarity": "cosine", "query_maxlen": 9, "doc_maxlen": 14,
    "mask_punctuation": True, "attend_to_mask_tokens": False, "interaction": "colbert",
}  # fmt: skip
QUERIES = ["a dog is running", "good film", "", "the film is not very good , a dog is not bad"]
PASSAGES = ["A dog is running.", "the film, is not very good.", "bad, bad film", "good " * 40]


def dense(folder, name, inputs, outputs, seed, **settings):
    """Writes a Dense module; returns its matrix in float64."""
    place = folder / name
    place.mkdir()
    weight = np.random.default_rng(seed).normal(size=(outputs, inputs)).astype("float32")
    safetensors.numpy.save_file({"linear.weight": weight}, place / "model.safetensors")
    values = {"in_features": inputs, "out_features": outputs, "bias": False,
              "activation_function": IDENTITY, **settings}  # fmt: skip
    (place / "config.json").write_text(json.dumps(values))
    return weight.astype("float64")


def write_modules(folder, *rows):
    """Writes `modules.json`: the Transformer, and pairs of a type and a folder."""
    rows = [(MODULES + "Transformer", ""), *rows]
    names = [{"idx": n, "name": str(n), "path": p, "type": t} for n, (t, p) in enumerate(rows)]
    (folder / "modules.json").write_text(json.dumps(names))


def with_markers(folder, content, names, mask="[MASK]", **options):
    """Writes a tokenizer with two more tokens, and the mask token as padding, as PyLate does."""
    vocab = content["model"]["vocab"]
    content["added_tokens"] = [
        encoder_folders.added(vocab[name], name, special=True)
        for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", mask)
        if name in vocab
    ]
    for name in names:
        if name and name not in vocab:
            number = len(vocab) + sum(t["id"] >= len(vocab) for t in content["added_tokens"])
            token = encoder_folders.added(number, name, special=False, normalized=False)
            content["added_tokens"].append(token)
    (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    tokens = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": mask,
              "mask_token": mask, "model_max_length": 21, **options}  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(tokens))


def write_pylate(folder, family="bert", layers=({},), **changes):
    """A folder of PyLate; returns settings, tensors, and the product of its linear layers."""
    width = 24
    if family == "bert":
        size = {"vocab_size": len(bert_folders.PIECES) + 2}
        settings, tensors = bert_folders.write_folder(folder, **bert_folders.PLAIN, **size)
        content = bert_folders.tokenizer_json()
    else:
        settings, tensors = encoder_folders.write_folder(folder, family, "Model")
        content = encoder_folders.tokenizer_json(family)
        width = settings["hidden_size"]
    stated = {**PYLATE, **changes}
    with_markers(folder, content, [stated["query_prefix"], stated["document_prefix"]])
    matrix, rows = np.eye(width), []
    for number, options in enumerate(layers, start=1):
        options = {"outputs": 7, **options}
        outputs = options.pop("outputs")
        name = f"{number}_Dense"
        weight = dense(folder, name, len(matrix), outputs, number, **options)
        if options.get("use_residual"):
            weight = weight + np.eye(outputs)
        matrix = weight @ matrix
        rows.append(("pylate.models.Dense.Dense", name))
    write_modules(folder, *rows)
    (folder / "config_sentence_transformers.json").write_text(json.dumps(stated))
    return settings, tensors, matrix


def write_stanford(folder, **changes):
    """A folder of Stanford's ColBERT with BERT; returns settings, tensors and the linear layer."""
    pieces = ["[PAD]", "[unused0]", "[unused1]", *bert_folders.PIECES[2:]]
    weight = np.random.default_rng(3).normal(size=(7, 24)).astype("float32")
    settings = {"architectures": ["HF_ColBERT"], "vocab_size": len(pieces)}
    settings, tensors = bert_folders.write_folder(folder, {"linear.weight": weight}, **settings)
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"do_lower_case": True, "tokenizer_class": "BertTokenizer"})
    )
    (folder / "artifact.metadata").write_text(json.dumps({**STANFORD, **changes}))
    return settings, tensors, weight.astype("float64")


def write_sentence_transformers(folder, expansion=None, **changes):
    """A folder of a `MultiVectorEncoder` of sentence-transformers 6."""
    result = write_pylate(folder, layers=({"module_input_name": "token_embeddings"},))
    rows = [("sentence_transformers.base.modules.dense.Dense", "1_Dense")]
    for number, (kind, options) in enumerate(
        (
            ("multi_vector_encoder.modules.MultiVectorMask", {"skiplist_words": [",", "."]}),
            ("sentence_transformer.modules.Normalize", {"module_input_name": "token_embeddings"}),
        ),
        start=2,
    ):
        name = f"{number}_{kind.rpartition('.')[2]}"
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(options))
        rows.append((f"sentence_transformers.{kind}", name))
    write_modules(folder, *rows)
    stated = {"model_type": "MultiVectorEncoder", "similarity_fn_name": "maxsim",
              "prompts": {"query": "[Q] ", "document": "[D] "}, **changes}  # fmt: skip
    (folder / "config_sentence_transformers.json").write_text(json.dumps(stated))
    first = {"query_length": 12, "document_length": 14, "query_expansion": expansion}
    (folder / "sentence_bert_config.json").write_text(json.dumps(first))
    return result
