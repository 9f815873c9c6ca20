"""BERT of `transformers`, run by a Python that has it and torch, not by ours.

`python hugging_face_bert.py FOLDER` reads `FOLDER/cases.json`, a dictionary that maps names to a
class of models, the arguments of its configuration and the type of the file. For each case it
writes `FOLDER/NAME/` as `save_pretrained` does, and next to it `NAME.npz`: ids and token types of
pairs of texts, the last hidden states and, for a classifier, the logits.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers

LENGTHS = (13, 5, 2)


def rows(size):
    rng = np.random.default_rng(0)
    ids = np.zeros((len(LENGTHS), max(LENGTHS)), "int64")
    types = np.zeros_like(ids)
    for row, kinds, length in zip(ids, types, LENGTHS, strict=True):
        row[:length] = rng.integers(5, size, length)
        row[0], row[length - 1] = 3, 4
        if length > 4:
            row[length // 2] = 4
            kinds[length // 2 + 1 : length] = 1
    return ids, types


def run(folder, name, case):
    config = transformers.BertConfig(**case["config"])
    torch.manual_seed(0)
    model = getattr(transformers, case["class"])(config).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for key, values in model.named_parameters():
            noise = torch.randn(values.shape, generator=generator)
            noise = noise * (0.3 if values.ndim < 2 else values.shape[-1] ** -0.5)
            values.copy_(1 + noise if "LayerNorm.weight" in key else noise)
    model.to(getattr(torch, case.get("dtype", "float32"))).save_pretrained(folder / name)
    model = type(model).from_pretrained(folder / name, dtype=torch.float32).eval()
    ids, types = rows(config.vocab_size)
    inputs = {"input_ids": torch.tensor(ids), "token_type_ids": torch.tensor(types)}
    inputs["attention_mask"] = inputs["input_ids"].ne(0).long()
    with torch.no_grad():
        result = model(**inputs, output_hidden_states=True)
    out = {"ids": ids, "types": types, "states": result.hidden_states[-1].numpy()}
    if case["class"] == "BertForSequenceClassification":
        out["logits"] = result.logits.numpy()
    np.savez(folder / f"{name}.npz", **out)


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    place = pathlib.Path(sys.argv[1])
    for name, case in json.loads((place / "cases.json").read_text()).items():
        run(place, name, case)
