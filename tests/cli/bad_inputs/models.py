"""Damaged, missing and swapped files of runs, checkpoints and exports."""

import io
import json
import zipfile

import numpy as np

from . import cut, emptied, fails, folder, removed, replaced, scrambled, spoiled, without_member

NEWEST = "RUN/checkpoints/update-00000002.npz"
OLDEST = "RUN/checkpoints/update-00000001.npz"


def archive(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def metadata(text):
    """The bytes of a .tflite file with metadata but without a model."""
    file = io.BytesIO(b"\x1c\0\0\0TFL3")
    with zipfile.ZipFile(file, "a") as target:
        target.writestr("metadata.json", text)
        target.writestr("tokenizer.model", b"x")
    return file.getvalue()


PICKLED = archive(state=np.array({"update": 2}, dtype=object))
FOREIGN = archive(a=np.zeros((2, 3)), state=np.array(json.dumps({"update": 2})))

RUNS = [
    fails("translate RUN", "model.keras is missing", removed("RUN/model.keras")),
    fails("translate RUN", "model.keras is damaged: remove it and run", cut("RUN/model.keras")),
    fails("translate RUN", "model.keras is damaged", emptied("RUN/model.keras")),
    fails("translate RUN", "model.keras is damaged", spoiled("RUN/model.keras")),
    fails("translate RUN", "model.keras is damaged", scrambled("RUN/model.keras")),
    fails("translate RUN", "damaged", without_member("RUN/model.keras", "model.weights.h5")),
    fails("translate RUN", "damaged", without_member("RUN/model.keras", "config.json")),
    fails("translate RUN", "model.keras is missing", removed("RUN/model.keras"),
          folder("RUN/model.keras")),
    fails("translate RUN", "put back a copy", cut("RUN/model.keras"), removed("RUN/checkpoints")),
    fails("translate RUN", "tokenizer.model is missing", removed("RUN/tokenizer.model")),
    fails("translate RUN", "tokenizer.model: .*damaged", cut("RUN/tokenizer.model")),
    fails("translate RUN", "tokenizer.model: .*damaged", emptied("RUN/tokenizer.model")),
    fails("translate RUN", "tokenizer.model: .*damaged.*Put back", spoiled("RUN/tokenizer.model")),
    fails("score RUN --source IN.txt --target OUT.txt", "model.keras is damaged",
          cut("RUN/model.keras")),
    fails("evaluate RUN --split validation", "config.toml is missing", removed("RUN/config.toml")),
    fails("evaluate RUN --split validation", "config.toml.*not valid TOML",
          spoiled("RUN/config.toml")),
    fails("evaluate RUN --split validation", "no longer|cannot be read|No such",
          replaced("RUN/config.toml", "val.en", "gone.en")),
    fails("plot attention RUN sentence --output x.png", "model.keras is damaged",
          cut("RUN/model.keras")),
    fails("plot structure RUN --output x.png", "model.keras is damaged", cut("RUN/model.keras")),
    fails("export saved-model RUN NEW", "model.keras is damaged", cut("RUN/model.keras")),
    fails("export litert RUN x.tflite", "tokenizer.model: .*damaged", cut("RUN/tokenizer.model")),
    fails("export ctranslate2 RUN NEW", "model.keras is missing", removed("RUN/model.keras")),
    fails("train RUN/config.toml --output RUN", "metrics.json is damaged",
          spoiled("RUN/metrics.json")),
]  # fmt: skip

CHECKPOINTS = [
    fails("average RUN --last 2", "00000002.npz is damaged", cut(NEWEST)),
    fails("average RUN --last 2", "00000002.npz is damaged", emptied(NEWEST)),
    fails("average RUN --last 2", "00000001.npz is damaged", spoiled(OLDEST)),
    fails("average RUN --last 2", "00000001.npz is damaged", scrambled(OLDEST)),
    fails("average RUN --last 2", "00000002.npz is damaged",
          spoiled(NEWEST, PICKLED, "pickled objects in")),
    fails("average RUN --last 2", "belongs to another model",
          spoiled(NEWEST, FOREIGN, "another model in")),
    fails("average RUN --last 2", "tokenizer.model is missing", removed("RUN/tokenizer.model")),
    fails("average RUN --last 2", "config.toml: no such configuration file",
          removed("RUN/config.toml")),
    fails("average RUN --last 1", "has 0 of the 1 checkpoint", removed("RUN/checkpoints")),
    fails("train RUN/config.toml --output RUN --set model.d_model=16",
          r"RUN was started with other settings: model.d_model \(8, now 16\)"),
    fails("train RUN/config.toml --output RUN --set training.seed=2",
          r"RUN was started with other settings: training.seed \(1, now 2\)"),
]  # fmt: skip

SAVED_MODELS = [
    fails("translate SAVED", "SAVED.*damaged",
          cut("SAVED/1/variables/variables.data-00000-of-00001")),
    fails("translate SAVED", "SAVED.*damaged",
          emptied("SAVED/1/variables/variables.data-00000-of-00001")),
    fails("translate SAVED", "SAVED.*damaged",
          removed("SAVED/1/variables/variables.data-00000-of-00001")),
    fails("translate SAVED", "SAVED.*damaged", cut("SAVED/1/variables/variables.index")),
    fails("translate SAVED", "SAVED.*damaged", removed("SAVED/1/variables/variables.index")),
    fails("translate SAVED", "SAVED.*damaged", removed("SAVED/1/variables")),
    fails("translate SAVED", "SAVED.*(damaged|cannot be read)", cut("SAVED/1/saved_model.pb")),
    fails("translate SAVED", "SAVED.*(damaged|cannot be read)", emptied("SAVED/1/saved_model.pb")),
    fails("translate SAVED", "SAVED.*(damaged|cannot be read)", spoiled("SAVED/1/saved_model.pb")),
    fails("translate SAVED/1", "SAVED/1.*damaged", removed("SAVED/1/variables")),
]  # fmt: skip

LITERT = [
    fails("translate FILE.tflite", "FILE.tflite was not written by.*or is damaged",
          cut("FILE.tflite")),
    fails("translate FILE.tflite", "FILE.tflite was not written by", emptied("FILE.tflite")),
    fails("translate FILE.tflite", "FILE.tflite was not written by", spoiled("FILE.tflite")),
    fails("translate FILE.tflite", "FILE.tflite.*(damaged|not written)",
          without_member("FILE.tflite", "metadata.json")),
    fails("translate FILE.tflite", "FILE.tflite.*(damaged|not written)",
          without_member("FILE.tflite", "tokenizer.model")),
    fails("translate FILE.tflite", "FILE.tflite.*damaged",
          spoiled("FILE.tflite", metadata("{"), "damaged metadata in")),
    fails("translate FILE.tflite", "FILE.tflite.*(damaged|format)",
          spoiled("FILE.tflite", metadata("[]"), "metadata that is a list in")),
    fails("translate FILE.tflite", "FILE.tflite has format 99",
          spoiled("FILE.tflite", metadata('{"format": 99}'), "newer metadata in")),
]  # fmt: skip

CTRANSLATE2 = [
    fails("translate CT2", "CT2.*damaged: config.json is missing", removed("CT2/config.json")),
    fails("translate CT2", "CT2.*config.json is damaged", spoiled("CT2/config.json")),
    fails("translate CT2", "CT2.*damaged: tokenizer.model", removed("CT2/tokenizer.model")),
    fails("translate CT2", "CT2/tokenizer.model.*damaged", cut("CT2/tokenizer.model")),
    fails("translate CT2", "CT2 cannot be read by CTranslate2", cut("CT2/model.bin")),
    fails("translate CT2", "CT2 cannot be read by CTranslate2", emptied("CT2/model.bin")),
    fails("translate CT2", "CT2 cannot be read by CTranslate2",
          removed("CT2/shared_vocabulary.json")),
]  # fmt: skip

CASES = [*RUNS, *CHECKPOINTS, *SAVED_MODELS, *LITERT, *CTRANSLATE2]
