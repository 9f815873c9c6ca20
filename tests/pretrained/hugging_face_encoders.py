"""ALBERT, MPNet, DeBERTa and ModernBERT of `transformers`, run by a Python that has it and torch.

`python hugging_face_encoders.py FOLDER` reads `FOLDER/cases.json`, a dictionary that maps names to
a class of models, the arguments of its configuration, the file of a tokenizer, its special tokens,
texts, and texts with masks. For each case it writes `FOLDER/NAME/` as
`save_pretrained` does, `NAME.npz` with ids, token types, the last hidden states and the logits, and
`NAME.json` with token ids and the answers of the pipeline.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from hugging_face_bert import LONG, answers_of, rows, scores_of, words_of
from saved_weights import save


def randomise(model):
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for key, values in model.named_parameters():
            noise = torch.randn(values.shape, generator=generator)
            noise = noise * (0.3 if values.ndim < 2 else values.shape[-1] ** -0.5)
            is_scale = "norm" in key.lower() and key.endswith("weight")
            values.copy_(1 + noise if is_scale else noise)


def run(folder, name, case):
    kind = getattr(transformers, case["class"])
    config = kind.config_class(**case["config"])
    torch.manual_seed(0)
    model = kind(config).eval()
    randomise(model)
    save(model, folder / name)
    model = kind.from_pretrained(folder / name, dtype=torch.float32).eval()
    special = case["special"]
    tokenizer = tokenizer_of(case)
    tokenizer.model_max_length = case["length"]
    pad, begin, end = (
        tokenizer.convert_tokens_to_ids(special[f"{role}_token"]) for role in ("pad", "cls", "sep")
    )
    ids, types = rows(config.vocab_size, pad, begin, end)
    inputs = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(ids).ne(pad).long()}
    if config.model_type == "albert":
        inputs["token_type_ids"] = torch.tensor(types)
        tokenizer.model_input_names = ["input_ids", "attention_mask", "token_type_ids"]
    else:
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
    with torch.no_grad():
        result = model(**inputs, output_hidden_states=True)
        base = getattr(model, model.base_model_prefix, model)(**inputs)
    out = {"ids": ids, "types": types, "states": base[0].numpy()}
    answers = None
    if case["class"].endswith("Classification"):
        out["logits"] = result.logits.numpy()
        answers = (
            scores_of(model, tokenizer, folder)
            if config.num_labels == 1
            else pipeline_of(case, model, tokenizer)
        )
    if case["class"].endswith("QuestionAnswering"):
        out["logits"] = torch.stack([result.start_logits, result.end_logits], -1).numpy()
        answers = answers_of(model, tokenizer, folder)
    if case["class"].endswith("MaskedLM"):
        out["logits"] = result.logits.numpy()
        answers = words_of(model, tokenizer, case["masked"])
    tokens = [tokenizer(text).input_ids for text in case["texts"]]
    (folder / f"{name}.json").write_text(json.dumps({"tokens": tokens, "answers": answers}))
    np.savez(folder / f"{name}.npz", **out)


def tokenizer_of(case):
    """Returns the tokenizer, whose mask keeps the rules that its file has."""
    added = json.loads(pathlib.Path(case["tokenizer"]).read_text())["added_tokens"]
    rules = {token["content"]: token for token in added}
    special = {
        role: transformers.AddedToken(**{k: v for k, v in rules[name].items() if k != "id"})
        if name in rules
        else name
        for role, name in case["special"].items()
    }
    return transformers.PreTrainedTokenizerFast(tokenizer_file=case["tokenizer"], **special)


def pipeline_of(case, model, tokenizer):
    """Returns labels and scores of each text, or of each token; empty texts have none."""
    texts = case["texts"]
    if case["class"].endswith("SequenceClassification"):
        pipe = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
        more = [LONG] if model.config.problem_type == "multi_label_classification" else []
        return pipe(texts + more, top_k=None, truncation=True)
    pipe = transformers.pipeline(
        "token-classification", model=model, tokenizer=tokenizer, ignore_labels=[]
    )
    return [
        [
            {"label": x["entity"], "score": float(x["score"]), "start": int(x["start"])}
            for x in (pipe(text) if text else [])
        ]
        for text in texts
    ]


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    place = pathlib.Path(sys.argv[1])
    for name, case in json.loads((place / "cases.json").read_text()).items():
        run(place, name, case)
