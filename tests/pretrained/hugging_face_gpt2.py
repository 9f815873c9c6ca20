"""GPT-2 of `transformers`: run by a Python that has it and torch, not by ours.

`python hugging_face_gpt2.py FOLDER` reads `FOLDER/cases.json`, a dictionary from names to the
arguments of a configuration, and `FOLDER/texts.json`, ids of prompts. For each case it writes
`FOLDER/NAME/` as `save_pretrained` does, and beside it `NAME.npz`: ids of texts, their logits, and
`NAME.json`: what greedy `generate` returns for each prompt after the token that begins a text.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from saved_weights import save


def run(folder, name, case, prompts):
    config = transformers.GPT2Config(**case)
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for key, values in model.named_parameters():
            noise = torch.randn(values.shape, generator=generator)
            noise = noise * (0.3 if values.ndim < 2 else values.shape[0] ** -0.5)
            noise = noise / noise.std() * 0.4 if "wte" in key or "wpe" in key else noise
            values.copy_(1 + noise if "ln_" in key and key.endswith("weight") else noise)
    save(model, folder / name)
    ids = np.random.default_rng(0).integers(0, config.vocab_size, (3, 17))
    outputs = []
    with torch.no_grad():
        logits = model(torch.tensor(ids)).logits.numpy()
        for prompt in prompts:
            row = torch.tensor([[config.bos_token_id, *prompt]])
            options = {"do_sample": False, "max_length": config.n_positions + 1, "pad_token_id": 0}
            mask = torch.ones_like(row)
            outputs.append(model.generate(row, attention_mask=mask, **options)[0].tolist())
    np.savez(folder / f"{name}.npz", ids=ids, logits=logits)
    (folder / f"{name}.json").write_text(json.dumps(outputs))


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    place = pathlib.Path(sys.argv[1])
    prompts = json.loads((place / "texts.json").read_text())
    for name, case in json.loads((place / "cases.json").read_text()).items():
        run(place, name, case, prompts)
