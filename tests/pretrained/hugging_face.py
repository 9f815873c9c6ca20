"""Encoder-decoders of `transformers`, run by a Python that has it and torch, not by ours.

`python hugging_face.py FOLDER` reads `FOLDER/cases.json`, a dictionary that maps names to a class
of models, the arguments of its configuration, the type of the file and keyword arguments of
`generate`. For each case it writes `FOLDER/NAME/` as `save_pretrained` does, and next to it
`NAME.npz`: inputs, encoder states, logits and the result of `generate`.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from saved_weights import save

LENGTHS = (9, 4, 12, 1, 6)


def sentences(config, left, seed, size, start=None):
    rng = np.random.default_rng(seed)
    pad, end = config.pad_token_id, config.eos_token_id
    words = [token for token in range(size) if token not in (pad, end)]
    rows = np.full((len(LENGTHS), max(LENGTHS)), pad)
    for row, length in zip(rows, LENGTHS, strict=True):
        tokens = rng.choice(words, length)
        tokens[-1] = end
        if start is not None:
            tokens = np.insert(tokens[:-1], 0, start)
        row[slice(-length, None) if left else slice(length)] = tokens
    return torch.tensor(rows)


def randomise(model, seed):
    """Sets weights so that some outputs end and all of them depend on the source."""
    generator = torch.Generator().manual_seed(seed)
    factors = {"embed_positions": 3.0, "q_proj": 3.0}
    with torch.no_grad():
        for name, values in [*model.named_parameters(), *model.named_buffers()]:
            if "embed_positions" in name and not values.requires_grad:
                continue
            noise = torch.randn(values.shape, generator=generator)
            if "norm" in name and name.endswith("weight"):
                noise = 1 + 0.3 * noise
            elif values.ndim < 2 or name == "final_logits_bias":
                noise = 0.3 * noise
            else:
                noise = noise * values.shape[-1] ** -0.5
            factor = next((f for key, f in factors.items() if key in name), 1.0)
            values.copy_(noise * factor)


def run(folder, name, case):
    config = transformers.MarianConfig(**case["config"])
    if case["class"] != "Marian":
        config = getattr(transformers, f"{case['class']}Config")(**case["config"])
    kind = {"Marian": "MarianMTModel"}.get(
        case["class"], f"{case['class']}ForConditionalGeneration"
    )
    torch.manual_seed(0)
    model = getattr(transformers, kind)(config).eval()
    randomise(model, case.get("seed", 0))
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias[:, config.eos_token_id] += 3  # otherwise almost no output would end
    model = model.to(getattr(torch, case.get("dtype", "float32"))).float()
    if case.get("sharpen"):
        with torch.no_grad():
            model.lm_head.weight.mul_(case["sharpen"])
    for key, value in case.get("generation", {}).items():
        setattr(model.generation_config, key, value)
    place = folder / name
    save(model.to(getattr(torch, case.get("dtype", "float32"))), place)
    # Loads the model again, so that tensors missing in the file are exact.
    model = type(model).from_pretrained(place, dtype=torch.float32).eval()
    out = {}
    size, target_size = config.vocab_size, getattr(config, "decoder_vocab_size", config.vocab_size)
    target = sentences(config, False, 1, target_size, config.decoder_start_token_id)
    for side in ("right", "left"):
        source = sentences(config, side == "left", 0, size)
        mask = (source != config.pad_token_id).long()
        with torch.no_grad():
            result = model(input_ids=source, attention_mask=mask, decoder_input_ids=target)
            out[f"{side}_source"], out["target"] = source.numpy(), target.numpy()
            out[f"{side}_states"] = result.encoder_last_hidden_state.numpy()
            out[f"{side}_logits"] = result.logits.numpy()
            for search, options in case["searches"].items():
                found = model.generate(
                    input_ids=source, attention_mask=mask, return_dict_in_generate=True,
                    output_scores=True, **options,
                )  # fmt: skip
                out[f"{side}_{search}"] = found.sequences.numpy()
                if getattr(found, "sequences_scores", None) is not None:
                    out[f"{side}_{search}_scores"] = found.sequences_scores.numpy()
    np.savez(folder / f"{name}.npz", **out)


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    place = pathlib.Path(sys.argv[1])
    for name, case in json.loads((place / "cases.json").read_text()).items():
        run(place, name, case)
