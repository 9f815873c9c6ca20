"""Prompts of conversations by `transformers`, run by a Python that has it, not by ours.

`python hugging_face_chats.py FOLDER` reads `FOLDER/cases.json`, a dictionary from the paths of
checkpoints to lists of conversations, and writes `FOLDER/ids.json` with the ids of each prompt.
"""

import json
import pathlib
import sys

import transformers

if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    place, ids = pathlib.Path(sys.argv[1]), {}
    for path, rows in json.loads((place / "cases.json").read_text()).items():
        tokenizer = transformers.AutoTokenizer.from_pretrained(path)
        options = {"tokenize": True, "add_generation_prompt": True, "return_dict": False}
        ids[path] = [tokenizer.apply_chat_template(messages, **options) for messages in rows]
    (place / "ids.json").write_text(json.dumps(ids))
