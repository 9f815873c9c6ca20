"""Tokenizers of `transformers`, run by a Python that has it and torch, not by ours.

`python hugging_face_tokenizers.py FOLDER` reads `FOLDER/cases.json`, a dictionary that maps the
paths of checkpoints to a class of tokenizers, keyword arguments and texts, and writes
`FOLDER/ids.json` with the token ids of each text, with `save` the `tokenizer.json`, and with
`saved` the files of `save_pretrained` in the folder that it names.
"""

import json
import pathlib
import sys

import transformers

if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    place = pathlib.Path(sys.argv[1])
    ids = {}
    for path, case in json.loads((place / "cases.json").read_text()).items():
        kind = getattr(transformers, case["class"])
        tokenizer = kind.from_pretrained(path, **case["options"])
        if case["save"]:  # the class numbers languages in another order than published files
            tokenizer.backend_tokenizer.save(f"{path}/tokenizer.json")
        if "saved" in case:
            tokenizer.save_pretrained(case["saved"])
        ids[path] = [tokenizer(text).input_ids for text in case["texts"]]
    (place / "ids.json").write_text(json.dumps(ids))
