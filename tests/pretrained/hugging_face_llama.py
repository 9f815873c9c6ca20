"""Llama and Qwen of `transformers`: run by a Python that has it and torch, not by ours.

`python hugging_face_llama.py FOLDER` reads `FOLDER/cases.json`, a dictionary from names to a class,
the arguments of its configuration, and whether a token begins each text, and `FOLDER/texts.json`,
ids of prompts. For each case it writes `FOLDER/NAME/` as `save_pretrained` does, and beside it
`NAME.npz`: ids of texts, their hidden states and logits, and `NAME.json`: what `generate` returns
for each prompt, without padding, by search, for the prompts one by one and for all of them with
padding on the left. Without a token that begins texts, empty prompts are left out.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from saved_weights import save

LONGEST = 23
SEARCHES = {
    "greedy": {"num_beams": 1},
    "beam4": {"num_beams": 4, "length_penalty": 0.0},
}


def randomise(model):
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for key, values in model.named_parameters():
            noise = torch.randn(values.shape, generator=generator)
            noise = noise * (0.3 if values.ndim < 2 else values.shape[-1] ** -0.5)
            noise = noise * 3 if "lm_head" in key else noise
            noise = noise / noise.std() * 0.6 if "embed" in key else noise
            values.copy_(1 + noise if "norm" in key else noise)


def padded(prompts, side, pad):
    longest = max(map(len, prompts))
    rows, mask = [], []
    for prompt in prompts:
        room = longest - len(prompt)
        before, after = (room, 0) if side == "left" else (0, room)
        rows.append([pad] * before + prompt + [pad] * after)
        mask.append([0] * before + [1] * len(prompt) + [0] * after)
    return torch.tensor(rows), torch.tensor(mask)


def generated(model, rows, mask, **options):
    options = {"do_sample": False, "pad_token_id": 0, **options}
    return model.generate(rows, attention_mask=mask, **options).tolist()


def run(folder, name, case, prompts):
    config = getattr(transformers, f"{case['class']}Config")(**case["config"])
    torch.manual_seed(0)
    model = getattr(transformers, f"{case['class']}ForCausalLM")(config).eval()
    randomise(model)
    save(model, folder / name)
    ids = np.random.default_rng(0).integers(0, config.vocab_size, (3, 17))
    arrays = {"ids": ids}
    with torch.no_grad():
        found = model(torch.tensor(ids), output_hidden_states=True)
        arrays |= {"logits": found.logits.numpy(), "states": found.hidden_states[-1].numpy()}
        begin = [config.bos_token_id] * case["starts"]
        prompts = [begin + prompt for prompt in prompts if begin or prompt]
        for side in ("left", "right"):
            rows, mask = padded(prompts, side, 0)
            logits = model(rows, attention_mask=mask).logits
            arrays |= {f"{side}_logits": logits.numpy(), f"{side}_mask": mask.numpy()}
            arrays[f"{side}_ids"] = rows.numpy()
        outputs = {}
        for search, options in SEARCHES.items():
            outputs[search] = [
                generated(
                    model, torch.tensor([row]), torch.ones(1, len(row), dtype=torch.long),
                    max_length=LONGEST + case["starts"], **options,
                )[0]
                for row in prompts
            ]  # fmt: skip
        rows, mask = padded(prompts, "left", 0)
        together = generated(model, rows, mask, max_new_tokens=6, num_beams=1)
        outputs["together"] = [
            row[rows.shape[1] - len(prompt) :]
            for row, prompt in zip(together, prompts, strict=True)
        ]
    np.savez(folder / f"{name}.npz", **arrays)
    (folder / f"{name}.json").write_text(json.dumps(outputs))


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    place = pathlib.Path(sys.argv[1])
    prompts = json.loads((place / "texts.json").read_text())
    for name, case in json.loads((place / "cases.json").read_text()).items():
        run(place, name, case, prompts)
