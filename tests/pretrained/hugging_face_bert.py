"""Text encoders of `transformers`, run by a Python that has it and torch, not by ours.

`python hugging_face_bert.py FOLDER` reads `FOLDER/cases.json`, a dictionary that maps names to a
class of models, the arguments of its configuration and the type of the file; and
`FOLDER/texts.json`, the tokens of a vocabulary and texts for each family. For each case it writes
`FOLDER/NAME/` as `save_pretrained` does, and next to it `NAME.npz`: ids and token types of pairs of
texts, the last hidden states and, if there is a head, the logits. `NAME.json` contains the answers
of a pipeline to the texts, to those with masks, or to the questions about passages in
`FOLDER/pairs.json`, or token ids and scores of the pairs in `FOLDER/scored.json`.
"""

import base64
import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from saved_weights import save

LENGTHS = (13, 5, 2)
LONG = "good film " * 40  # the last text of a model with several labels per text


def rows(size, pad=0, begin=3, end=4):
    rng = np.random.default_rng(0)
    ids = np.full((len(LENGTHS), max(LENGTHS)), pad)
    types = np.zeros_like(ids)
    for row, kinds, length in zip(ids, types, LENGTHS, strict=True):
        row[:length] = rng.integers(5, size, length)
        row[0], row[length - 1] = begin, end
        if length > 4:
            row[length // 2] = end
            kinds[length // 2 + 1 : length] = 1
    return ids, types


def run(folder, name, case):
    kind = getattr(transformers, case["class"])
    config = kind.config_class(**case["config"])
    torch.manual_seed(0)
    model = kind(config).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for key, values in model.named_parameters():
            noise = torch.randn(values.shape, generator=generator)
            noise = noise * (0.3 if values.ndim < 2 else values.shape[-1] ** -0.5)
            is_scale = key.lower().endswith(("layernorm.weight", "layer_norm.weight"))
            values.copy_(1 + noise if is_scale else noise)
    save(model.to(getattr(torch, case.get("dtype", "float32"))), folder / name)
    model = type(model).from_pretrained(folder / name, dtype=torch.float32).eval()
    pad = config.pad_token_id
    ids, types = rows(config.vocab_size, *((pad, 0, 2) if pad else ()))
    inputs = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(ids).ne(pad).long()}
    if case["class"].startswith(("Bert", "Electra")):
        inputs["token_type_ids"] = torch.tensor(types)
    with torch.no_grad():
        result = model(**inputs, output_hidden_states=True)
    out = {"ids": ids, "types": types, "states": result.hidden_states[-1].numpy()}
    if case["class"].endswith("Classification"):
        out["logits"] = result.logits.numpy()
        if config.num_labels == 1:
            answers = scores_of(model, tokenizer_of(case["class"], config, folder), folder)
        else:
            answers = pipeline_of(case["class"], model, config, folder)
        (folder / f"{name}.json").write_text(json.dumps(answers))
    if case["class"].endswith("QuestionAnswering"):
        out["logits"] = torch.stack([result.start_logits, result.end_logits], -1).numpy()
        answers = answers_of(model, tokenizer_of(case["class"], config, folder), folder)
        (folder / f"{name}.json").write_text(json.dumps(answers))
    if case["class"].endswith("MaskedLM"):
        out["logits"] = result.logits.numpy()
        tokenizer = tokenizer_of(case["class"], config, folder)
        answers = words_of(model, tokenizer, known_of(case["class"], folder)["masked"])
        (folder / f"{name}.json").write_text(json.dumps(answers))
    np.savez(folder / f"{name}.npz", **out)


def pipeline_of(kind, model, config, folder):
    """Returns the answers of the pipeline: labels and scores of each text, or of each token.

    Empty texts have none.
    """
    tokenizer = tokenizer_of(kind, config, folder)
    known = known_of(kind, folder)
    if kind.endswith("SequenceClassification"):
        pipe = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
        more = [LONG] if config.problem_type == "multi_label_classification" else []
        return pipe(known["texts"] + more, top_k=None, truncation=True)
    pipe = transformers.pipeline(
        "token-classification", model=model, tokenizer=tokenizer, ignore_labels=[]
    )
    return [
        [
            {"label": x["entity"], "score": float(x["score"]), "start": int(x["start"])}
            for x in (pipe(text) if text else [])
        ]
        for text in known["texts"]
    ]


def scores_of(model, tokenizer, folder):
    """Returns token ids and the logit of each pair of texts, the way CrossEncoder calls a model."""
    answers = []
    for first, second in json.loads((folder / "scored.json").read_text()):
        inputs = tokenizer(first, second, truncation=True, return_tensors="pt")
        with torch.no_grad():
            answers.append([inputs.input_ids[0].tolist(), model(**inputs).logits.item()])
    return answers


def words_of(model, tokenizer, texts):
    """Returns the words of each mask of each text, with their scores, a list of lists."""
    pipe = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer)
    answers = [pipe(text) for text in texts]
    return [masks if isinstance(masks[0], list) else [masks] for masks in answers]


def tokenizer_of(kind, config, folder):
    known, bert = known_of(kind, folder), kind.startswith(("Bert", "DistilBert", "Electra"))
    if "charsmap" in known:
        rules = base64.b64decode(known["charsmap"])
        make = transformers.XLMRobertaTokenizer
        make = transformers.CamembertTokenizer if kind.startswith("Camembert") else make
        pieces = [tuple(pair) for pair in known["pieces"]]
        tokenizer = make(vocab=pieces, _spm_precompiled_charsmap=rules)
    else:
        pieces = {piece: number for number, piece in enumerate(known["pieces"])}
        if bert:
            tokenizer = transformers.BertTokenizer(vocab=pieces)
        else:
            merges = [tuple(pair) for pair in known["merges"]]
            tokenizer = transformers.RobertaTokenizer(vocab=pieces, merges=merges)
    tokenizer.model_max_length = config.max_position_embeddings - (0 if bert else 2)
    return tokenizer


def known_of(kind, folder):
    """Returns tokens and texts of the family of a class."""
    names = {"Roberta": "roberta", "XLMRoberta": "xlm-roberta", "Camembert": "camembert"}
    family = next((names[name] for name in names if kind.startswith(name)), "bert")
    return json.loads((folder / "texts.json").read_text())[family]


def answers_of(model, tokenizer, folder, longest=15):
    """Returns the text, score and places of answers, and the score of no answer.

    This is the pipeline "question-answering" of version 4, which version 5 does not have, for
    passages that fit into one window.
    """
    answers = []
    for question, passage in json.loads((folder / "pairs.json").read_text()):
        inputs = tokenizer(question, passage, return_tensors="pt")
        encoding = inputs.encodings[0]
        with torch.no_grad():
            result = model(**inputs)
        kept = np.array([kind == 1 for kind in encoding.sequence_ids])
        kept[0] = True
        shares = []
        for logits in (result.start_logits, result.end_logits):
            logits = np.where(kept, logits[0].numpy().astype("float64"), -10000.0)
            exp = np.exp(logits - logits.max())
            shares.append(exp / exp.sum())
        none = shares[0][0] * shares[1][0]
        shares[0][0] = shares[1][0] = 0.0
        outer = np.tril(np.triu(np.outer(*shares)), longest - 1)
        start, end = np.unravel_index(outer.argmax(), outer.shape)
        words = (encoding.token_to_word(int(token)) for token in (start, end))
        first, last = (encoding.word_to_chars(word, sequence_index=1) for word in words)
        answers.append([passage[first[0] : last[1]], outer[start, end], first[0], last[1], none])
    return answers


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    place = pathlib.Path(sys.argv[1])
    for name, case in json.loads((place / "cases.json").read_text()).items():
        run(place, name, case)
