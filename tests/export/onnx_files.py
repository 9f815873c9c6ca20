"""Rows of token ids for the graphs of .onnx files, and their inputs."""

import numpy as np

PAD, UNK, BOS, EOS = range(4)
RIGHT = [[7, 9, EOS], [EOS], [10, UNK, 4, 8, EOS]]


def wrong_rows(vocab_size):
    """Returns a list of rows that are not the ids of a sentence."""
    return [
        [],
        [7, 9, 4],
        [7, -1, EOS],
        [np.iinfo(np.int32).min, 9, EOS],
        [7, vocab_size, EOS],
        [7, np.iinfo(np.int32).max, EOS],
        [PAD, 7, EOS],
        [7, PAD, 9, EOS],
        [7, EOS, 9, EOS],
        [7, EOS, 5],
        [BOS, 7, EOS],
    ]


def batch_of(rows, width=5):
    """Returns rows with padding up to `width`, int32."""
    return np.array([[*row, *[PAD] * (width - len(row))] for row in rows], np.int32)


def inputs_of(model, rows, width=5, limit=20, penalty=1.0):
    """Returns the inputs of an `OnnxModel` for rows of token ids, a dictionary."""
    known = {
        "source": batch_of(rows, width),
        "max_length": np.full(len(rows), limit, np.int32),
        "length_penalty": np.array([penalty], np.float32),
        "seed": np.array([[5, number] for number in range(len(rows))], np.int32),
        "temperature": np.full(len(rows), 2, np.float32),
        "top_k": np.full(len(rows), 7, np.int32),
        "top_p": np.full(len(rows), 0.9, np.float32),
    }
    return {name: known[name] for name in model.inputs}
