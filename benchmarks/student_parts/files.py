"""Files for the engines: a run, its shortlist, and the exports of `keras-transformer export`."""

import pathlib

from decoding_files import LENIENT, Files
from decoding_task import vocabulary

from student_parts.task import (
    BEST,
    FIRST,
    SOURCE_LENGTH,
    Student,
    build,
    sentences,
    tokens_of,
)

SENTENCES = 4  # to check an export with; few, because the weights are random
CALIBRATION = 32  # sentences
RUN, SHORTLIST, LINES, SHOWN = "run", "lists.bin", "sentences.txt", "calibration.txt"
ENDINGS = {"litert": ".tflite", "onnx": ".onnx"}  # of exports that are one file
MODEL, LEXICON = "model.intgemm.alphas.bin", "lex.s2t.bin"


def make(order):
    """Writes a run and a shortlist; the float32 outputs are among the metadata."""
    from keras_transformer.tasks import open_run
    from keras_transformer.tasks.run import Run
    from keras_transformer.text.shortlist import Shortlist

    student, folder = Student(**order["student"]), pathlib.Path(order["folder"])
    transformer = build(student)
    run = Run(folder / RUN)
    run.path.mkdir()
    transformer.save(run.model)
    run.tokenizer.write_bytes(vocabulary(student))
    run.update_metrics(parameters=transformer.count_params())
    shortlist = Shortlist.from_counts(student.counts(), student.vocab_size, FIRST, BEST)
    shortlist.write(folder / SHORTLIST)
    for name, count in ((LINES, SENTENCES), (SHOWN, CALIBRATION)):
        (folder / name).write_text("".join(f"{text}\n" for text in sentences(student, count)))
    translator, metadata = open_run(run.path), {"tokens": {}, "candidates": {}}
    batches = order["batches"]
    for restricted in (False, True):
        chosen = translator.with_shortlist(shortlist) if restricted else translator
        texts = [output.text for output in chosen.answer_batch(sentences(student, max(batches)))]
        metadata["tokens"][str(restricted)] = [tokens_of(text) for text in texts]
    for batch in batches:
        found = shortlist.candidates(student.sources(batch), shared=True)
        metadata["candidates"][str(batch)] = len(found)
    return Files(metadata)


def commands(student, folder, kinds, restricted, batches):
    """Returns the commands that write exports, as lists of arguments.

    Args:
        student: A `Student`.
        folder: Folder in which `make` has written its run.
        kinds: Kinds of exports: `litert`, `onnx` and `marian`.
        restricted: List of booleans: `True` for an export with a shortlist, `False` without.
        batches: Increasing batch sizes.
    """
    folder = pathlib.Path(folder)
    checked = ["--sentences", str(folder / LINES), "--quantize", "int8", *LENIENT]
    shapes = [
        "--batch-sizes", ",".join(map(str, batches)),
        "--lengths", f"{SOURCE_LENGTH},{student.length}",
    ]  # fmt: skip
    options = {"litert": shapes, "onnx": [], "marian": ["--calibration", str(folder / SHOWN)]}
    chosen = []
    for kind in kinds:
        for choice in restricted:
            lists = ["--shortlist", str(folder / SHORTLIST)] if choice else []
            target = str(path_of(folder, kind, choice))
            chosen.append(
                ["export", kind, str(folder / RUN), target, *checked, *options[kind], *lists]
            )
    return chosen


def path_of(folder, kind, restricted):
    """Returns the path of an export."""
    name = f"{kind}_shortlist" if restricted else kind
    return pathlib.Path(folder, name + ENDINGS.get(kind, ""))


def shipped(folder, kind, restricted):
    """Returns the files of an export that are shipped to users."""
    path = path_of(folder, kind, restricted)
    if kind in ENDINGS:
        return [path]
    return [path / MODEL, path / "vocab.spm", *([path / LEXICON] if restricted else [])]
