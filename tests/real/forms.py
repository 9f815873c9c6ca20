"""The run of a checkpoint and its exports, made and asked by the commands that a user types."""

import functools
import pathlib

from click.testing import CliRunner

from keras_transformer.cli.main import cli

FORMS = ("run", "saved_model", "litert", "litert_int8", "onnx", "ctranslate2")


def command(*words, text=None):
    """Runs a command in this process and returns what it writes on stdout."""
    result = CliRunner().invoke(cli, [str(word) for word in words], input=text)
    if result.exit_code:
        raise AssertionError(f"{words} ended with {result.exit_code}: {result.output}")
    return result.stdout


class Forms:
    """A converted checkpoint in every form; each is made when it is first asked.

    Args:
        checkpoint: A folder in Hugging Face's format.
        folder: An empty folder to work in.
        sentences: Lines that the exports are checked with.
        options: Options of every export, such as `--greedy`, which CTranslate2 does not need.
        search: Options of `predict` for a run, such as `--greedy`.
        conversion: Options of `convert hf`.
    """

    def __init__(self, checkpoint, folder, sentences, options=(), search=(), conversion=()):
        self.folder, self.options = pathlib.Path(folder), tuple(options)
        self.search = tuple(search)
        self.sentences = self.folder / "sentences.txt"
        self.sentences.write_text("".join(f"{line}\n" for line in sentences), encoding="utf-8")
        self.run = self.folder / "run"
        command("convert", "hf", checkpoint, self.run, *conversion)

    @functools.cache  # noqa: B019 - lives as long as the tests of a module
    def path(self, form):
        """Returns the path of a form, and makes it the first time."""
        if form == "run":
            return self.run
        kind, path, more = {
            "saved_model": ("saved-model", self.folder / "saved_model", ()),
            "litert": ("litert", self.folder / "model.tflite", ()),
            "litert_int8": ("litert", self.folder / "int8.tflite", ("--quantize", "int8")),
            "onnx": ("onnx", self.folder / "model.onnx", ()),
            "ctranslate2": ("ctranslate2", self.folder / "ctranslate2", ()),
        }[form]
        options = [word for word in self.options if kind != "ctranslate2" or word != "--greedy"]
        command("export", kind, self.run, path, "--sentences", self.sentences, *options, *more)
        return path

    def answers(self, form, lines):
        """Returns the answer to each line."""
        text = "".join(f"{line}\n" for line in lines)
        search = self.search if form == "run" else ()
        return command("predict", self.path(form), *search, text=text).splitlines()
