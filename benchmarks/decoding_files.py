"""The model in the forms that peers read from files; made in a process of its own.

So that no peer shares its process with a framework that it does not need.
"""

import contextlib
import pathlib

import numpy as np
import tensorflow as tf
from decoding_peers.parallel import ways
from decoding_task import UNK_ID, WEIGHTS, Case, Model, build

from keras_transformer import beam_decode, greedy_decode
from keras_transformer.export.conversion import convert
from keras_transformer.export.packed import Signature


class Files:
    """What `make` returns; there is nothing to run."""

    def __init__(self, facts):
        self.facts = facts


def make(order):
    """Writes the weights, and what the peers ask for."""
    model, case = Model(**order["model"]), Case(**order["case"])
    folder = pathlib.Path(order["folder"])
    transformer = build(model)
    np.savez(folder / WEIGHTS, **{each.path: each.numpy() for each in transformer.weights})
    for kind, quantize in order["files"]:
        if kind == "litert":
            content = _litert(transformer, case, quantize, order["cores"])
            (folder / f"{quantize}.tflite").write_bytes(content)
        else:
            _write_ctranslate2(transformer, model, folder / f"ctranslate2_{quantize}", quantize)
    return Files({"parameters": transformer.count_params()})


def decode(transformer, case, source):
    """Returns the best hypotheses `[B, length]` and their scores `[B]`."""
    if case.beam_size == 1:
        return greedy_decode(transformer, source, case.length)
    tokens, scores = beam_decode(transformer, source, case.beam_size, max_length=case.length)
    return tokens[:, 0], scores[:, 0]


def saved(transformer, function, folder, more=()):
    """Writes a SavedModel with the signature `decode`; it may use `more` variables."""
    module = tf.Module()
    module.weights = [*(variable.value for variable in transformer.variables), *more]
    with contextlib.suppress(FileExistsError):
        pathlib.Path(folder).mkdir()
    tf.saved_model.save(module, str(folder), signatures={"decode": function})


def _litert(transformer, case, quantize, cores):
    """The bytes of a .tflite file, as the product makes it, for all batches that it is used for."""
    beam = None if case.beam_size == 1 else case.beam_size
    batches = {
        len(part)
        for parts, _ in ways(cores, case.batch_size)
        for part in np.array_split(range(case.batch_size), parts)
    }
    lengths = case.source_length, case.length
    signatures = [Signature(f"decode_{size}", size, *lengths, beam) for size in sorted(batches)]
    return convert(transformer, signatures, quantize)


def _write_ctranslate2(transformer, model, folder, quantize):
    from keras_transformer.export.ctranslate2_spec import make_spec

    pieces = [str(token) for token in range(model.vocab_size)]
    spec = make_spec(transformer, pieces, UNK_ID, model.max_length)
    spec.optimize(None if quantize == "none" else quantize)
    folder.mkdir()
    spec.save(str(folder))
