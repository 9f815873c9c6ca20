"""Vectors of sentence-transformers, run by a Python that has it and torch.

`python sentence_transformers_answers.py FOLDER` reads `FOLDER/cases.json`, a dictionary from the
path of a model to its texts and the names of its prompts, and writes `FOLDER/answers.json`, a
dictionary from the same paths to the vectors by name of prompt ("": none) of all texts in one
batch, with padding before and after them, and of each text alone.
"""

import json
import pathlib
import sys

import sentence_transformers


def vectors_of(model, texts, prompt):
    options = {"prompt_name": prompt} if prompt else {"prompt": ""}
    padded = []
    for side in ("left", "right"):
        model.tokenizer.padding_side = side
        padded.append(model.encode(texts, batch_size=len(texts), **options).tolist())
    alone = [model.encode([text], **options)[0].tolist() for text in texts]
    return [*padded, alone]


if __name__ == "__main__":
    place = pathlib.Path(sys.argv[1])
    answers = {}
    for path, case in json.loads((place / "cases.json").read_text()).items():
        model = sentence_transformers.SentenceTransformer(path, device="cpu")
        answers[path] = {name: vectors_of(model, case["texts"], name) for name in case["prompts"]}
    (place / "answers.json").write_text(json.dumps(answers))
