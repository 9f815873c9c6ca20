"""Whisper of `transformers`, run by a Python that has it and torch, not by ours.

`python hugging_face_whisper.py FOLDER` reads `FOLDER/cases.json`, a dictionary that maps names to
the vocabulary, a list of tokens and one of merges, the arguments of the configuration, and keyword
arguments of `generate` by name of the search. For each case it writes `FOLDER/NAME/` as
`save_pretrained` does, and next to it `NAME.npz`: features, encoder states, logits and the results
of `generate`.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from saved_weights import save
from transformers.models.whisper.tokenization_whisper import LANGUAGES


def recordings(seconds, rate=16_000):
    """Tones with noise, of several lengths."""
    rng = np.random.default_rng(3)
    for number, length in enumerate(seconds, start=1):
        times = np.arange(round(length * rate)) / rate
        tone = 0.3 * np.sin(2 * np.pi * 300 * number * times * (1 + times))
        yield (tone + 0.02 * rng.normal(size=len(times))).astype("float32")


def randomise(model, seed, end, times):
    """Sets weights so that outputs differ and depend on the recording, and that some of them end.

    Args:
        model: The model.
        seed: Seed of the weights.
        end: Id of the end token.
        times: Id of the first timestamp.
    """
    generator = torch.Generator().manual_seed(seed)
    # Outputs would repeat their tokens if embeddings, which are tied, were large in the decoder.
    factors = {
        **{"q_proj": 3.0, "decoder.embed_tokens": 0.5, "decoder.embed_positions": 3.0},
        **{"encoder_attn.out_proj": 6.0, "self_attn.out_proj": 4.0, "fc2": 6.0},
        "decoder.layer_norm.weight": 8.0,
    }
    with torch.no_grad():
        for name, values in model.named_parameters():
            noise = torch.randn(values.shape, generator=generator)
            if "norm" in name and name.endswith("weight"):
                noise = 1 + 0.3 * noise
            elif values.ndim < 2:
                noise = 0.3 * noise
            else:
                noise = noise * (values.numel() // len(values)) ** -0.5
            factor = next((f for key, f in factors.items() if key in name), 1.0)
            values.copy_(noise * factor)
        table = model.proj_out.weight
        towards = table[end] / table[end].norm() ** 2
        for row in table[times:]:
            row.add_(0.3 * table[times] - 0.3 * row)
        model.model.decoder.layer_norm.bias.copy_(6.0 * towards)


def spread(model, features, languages):
    """Sets the tokens of languages so that number k is the most probable one of recording k.

    After the start token, the decoder has a state for each recording. A unit vector towards the
    part of it that other recordings do not have in common has its largest product with that state.

    Args:
        model: The model.
        features: Features of as many recordings as there are languages.
        languages: Token ids.
    """
    begin = torch.full([len(features), 1], model.config.decoder_start_token_id)
    with torch.no_grad():
        states = model.model(features, decoder_input_ids=begin).last_hidden_state[:, 0]
        common = torch.nn.functional.normalize(states.mean(0), dim=0)
        own = states - (states @ common)[:, None] * common
        model.proj_out.weight[languages] = torch.nn.functional.normalize(own, dim=1)


def run(folder, name, case):
    config = transformers.WhisperConfig(**case["config"])
    model = transformers.WhisperForConditionalGeneration(config).eval()
    first = case["pieces"].index("<|0.00|>")
    randomise(model, case["seed"], config.eos_token_id, first)
    place = folder / name
    extractor = transformers.WhisperFeatureExtractor(**case["features"])
    samples = [*recordings(case["seconds"])]
    features = extractor(samples, sampling_rate=16_000, return_tensors="pt").input_features
    if case.get("every_language"):
        known = case["generation"]["lang_to_id"]
        assert {*known} == {f"<|{code}|>" for code in LANGUAGES}
        spread(model, features, [*known.values()])
    special = {key: value for key, value in case["config"].items() if key.endswith("token_id")}
    settings = {**special, **case["generation"]}
    model.generation_config = transformers.GenerationConfig.from_dict(settings)
    save(model, place)
    extractor.save_pretrained(place)
    ids = {piece: number for number, piece in enumerate(case["pieces"])}
    merges = [tuple(pair) for pair in case["merges"]]
    text = {piece: number for piece, number in ids.items() if not piece.startswith("<|")}
    tokenizer = transformers.WhisperTokenizer(vocab=text, merges=merges)
    added = [piece for piece in case["pieces"] if piece.startswith("<|")]
    times = [piece for piece in added if piece[2].isdigit()]
    tokenizer.add_tokens(
        [transformers.AddedToken(t, special=t not in times, normalized=False) for t in added]
    )
    assert all(tokenizer.convert_tokens_to_ids(piece) == ids[piece] for piece in added)
    tokenizer.save_pretrained(place)
    model = transformers.WhisperForConditionalGeneration.from_pretrained(place).eval()
    longest = max(map(len, samples))
    out = {
        "samples": np.array([np.pad(row, (0, longest - len(row))) for row in samples]),
        "lengths": np.array([len(row) for row in samples], "int32"),
        "features": features.numpy().transpose(0, 2, 1),
    }
    rng = np.random.default_rng(1)
    target = torch.tensor(rng.integers(0, config.vocab_size, (len(samples), 7)))
    with torch.no_grad():
        result = model(input_features=features, decoder_input_ids=target)
        out["target"] = target.numpy()
        out["states"] = result.encoder_last_hidden_state.numpy()
        out["logits"] = result.logits.numpy()
        for search, options in case["searches"].items():
            found = model.generate(
                features, return_dict_in_generate=True, output_scores=True,
                force_unique_generate_call=True, **options,
            )  # fmt: skip
            out[search] = found.sequences.numpy()
            if getattr(found, "sequences_scores", None) is not None:
                out[f"{search}_scores"] = found.sequences_scores.numpy()
    np.savez(folder / f"{name}.npz", **out)
    texts = case.get("texts", [])
    encoded = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    (folder / f"{name}.json").write_text(json.dumps(encoded))


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    place = pathlib.Path(sys.argv[1])
    for name, case in json.loads((place / "cases.json").read_text()).items():
        run(place, name, case)
