"""Vectors and scores of `MultiVectorEncoder`, by a Python that has sentence-transformers 6.

`python late_interaction_answers.py FOLDER` reads `FOLDER/cases.json` with the names of folders,
queries and passages, and writes `FOLDER/answers.json`.
"""

import json
import pathlib
import sys

import sentence_transformers

if __name__ == "__main__":
    place = pathlib.Path(sys.argv[1])
    cases, answers = json.loads((place / "cases.json").read_text()), {}
    for name in cases["names"]:
        model = sentence_transformers.MultiVectorEncoder(str(place / name), device="cpu")
        queries = model.encode_query(cases["queries"])
        passages = model.encode_document(cases["passages"])
        answers[name] = {
            "queries": [vectors.tolist() for vectors in queries],
            "passages": [vectors.tolist() for vectors in passages],
            "scores": model.similarity(queries, passages).tolist(),
        }
    (place / "answers.json").write_text(json.dumps(answers))
