"""The package `tokenizers`, run by `tokenization.py` in a Python that has it.

Each line of the input is an order in JSON: `train` a vocabulary, `open` one, `encode` texts,
`prepare` them as its model gets them, or `time` them. Each line of the output is its result.
"""

import json
import pathlib
import sys
import time

import numpy as np
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

BATCH = 2000  # texts
SPECIAL = {
    "wordpiece": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
    "byte-bpe": ["<s>", "<pad>", "</s>", "<unk>"],
}


def train(order):
    """Trains a WordPiece or a byte-level BPE vocabulary and writes its `tokenizer.json`."""
    special, size = SPECIAL[order["model"]], order["pieces"]
    options = {"vocab_size": size, "special_tokens": special, "show_progress": False}
    if order["model"] == "wordpiece":
        made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer(lowercase=order["lowercase"])
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(limit_alphabet=size // 3, **options)
    else:
        made = tokenizers.Tokenizer.from_str(json.dumps(order["steps"]))
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(initial_alphabet=alphabet, **options)
    texts = json.loads(pathlib.Path(order["texts"]).read_text(encoding="utf-8"))
    made.train_from_iterator(texts, trainer)
    content = json.loads(made.to_str())
    content["added_tokens"] = []  # otherwise the package would find them in texts
    pathlib.Path(order["path"]).write_text(json.dumps(content), encoding="utf-8")


def batches(order):
    """Yields the texts of a file in batches, so that few results are in memory at a time."""
    texts = json.loads(pathlib.Path(order["texts"]).read_text(encoding="utf-8"))
    for begin in range(0, len(texts), BATCH):
        yield texts[begin : begin + BATCH]


def encode(tokenizer, order):
    """Writes the ids of all texts in one array, and the number of ids of each text."""
    rows = [
        np.array(row.ids, np.int32)
        for batch in batches(order)
        for row in tokenizer.encode_batch(batch, add_special_tokens=False)
    ]
    np.savez(order["path"], ids=np.concatenate(rows), lengths=[len(row) for row in rows])


def prepare(tokenizer, order):
    """Returns the normalised words of each text, joined."""
    texts = [tokenizer.normalizer.normalize_str(text) for text in order["texts"]]
    if tokenizer.pre_tokenizer is None:
        return texts
    split = tokenizer.pre_tokenizer.pre_tokenize_str
    return ["".join(word for word, _ in split(text)) for text in texts]


def shortest(tokenizer, order):
    """Returns the shortest time that all texts take, in seconds."""
    texts, times = [*batches(order)], []
    for _ in range(order["repeats"]):
        begin = time.perf_counter()
        for batch in texts:
            tokenizer.encode_batch(batch, add_special_tokens=False)
        times.append(time.perf_counter() - begin)
    return min(times)


def main():
    tokenizer = None
    for line in sys.stdin:
        order, result = json.loads(line), None
        if order["do"] == "train":
            train(order)
        elif order["do"] == "open":
            tokenizer = tokenizers.Tokenizer.from_file(order["path"])
            result = tokenizers.__version__
        elif order["do"] == "encode":
            encode(tokenizer, order)
        elif order["do"] == "prepare":
            result = prepare(tokenizer, order)
        else:
            result = shortest(tokenizer, order)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
