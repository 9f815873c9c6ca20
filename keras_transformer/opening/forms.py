"""Forms in which a trained model is stored, and `open`, which opens any of them."""

import abc
import importlib
import importlib.util
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from keras_transformer.checkpoint_hints import TEXT, WRITTEN, hint
from keras_transformer.options import OptionError
from keras_transformer.tasks.answering import Answering

# The package that adds the forms of exports; a run can be opened without it.
EXPORT = "keras_transformer.export"
MISSING = f"exports are opened by {EXPORT}, which is not installed"


class Form(abc.ABC):
    """A form in which a trained model is stored.

    Attributes:
        name: Name of the form.
        title: The form as messages call it, such as `"a SavedModel"`.
        arguments: Names of the arguments of `open` that apply when it is opened.
        attends: Whether it may have attention weights.
        is_opened: Whether `open` opens it, instead of naming the program that does.
    """

    name: str = ""
    title: str = ""
    arguments: tuple[str, ...] = ()
    attends = False
    is_opened = True

    @classmethod
    @abc.abstractmethod
    def fits(cls, path: pathlib.Path) -> bool:
        """Returns whether a path that exists holds this form, by the names of its files."""

    @classmethod
    @abc.abstractmethod
    def open(cls, path: Any, **arguments: Any) -> Answering:
        """Returns what a path holds.

        Args:
            path: The path.
            **arguments: Values of some of the `arguments`, by name.

        Raises:
            ValueError: If a file is missing or damaged.
        """


class RunForm(Form):
    """A run, or a list of runs, whose models form an ensemble."""

    name, title, arguments = "run", "a run", ("max_length",)

    @classmethod
    def fits(cls, path: pathlib.Path) -> bool:  # noqa: D102
        return any((path / name).exists() for name in ("config.toml", "model.keras", "checkpoints"))

    @classmethod
    def open(cls, path: Any, **arguments: Any) -> Answering:  # noqa: D102
        from keras_transformer.tasks import open_run

        return open_run(path, **arguments)


def exported_forms() -> list[type[Form]]:
    """Returns the forms of exports; none if the package that adds them is not installed."""
    if importlib.util.find_spec(EXPORT) is None:
        return []
    return importlib.import_module(f"{EXPORT}.formats").forms()


def model_kinds() -> str:
    """Returns what can be opened, as the end of a sentence: `"a run, a SavedModel or ..."`."""
    *titles, last = [form.title for form in (RunForm, *exported_forms()) if form.is_opened]
    return f"{', '.join(titles)} or {last}" if titles else f"{last}; {MISSING}"


def form_of(path: Any) -> type[Form]:
    """Returns the form that a path holds.

    Args:
        path: A path, or a list of the paths of runs.

    Raises:
        TypeError: If `path` is something else.
        ValueError: If the path does not exist, holds no form of a model, or one of several is not
            a run.
    """
    paths = path if isinstance(path, list | tuple) else [path]
    if not all(isinstance(path, str | os.PathLike) for path in paths):
        raise TypeError(f"`path` must be a path or a list of paths. Received: {path!r}.")
    paths = [*map(pathlib.Path, paths)]
    for path in paths:
        if not path.exists():
            remedy = hint(path) or (TEXT if " " in path.name else WRITTEN)
            raise ValueError(f"{path} does not exist: a model is a run or an export.{remedy}")
        if RunForm.fits(path):
            continue
        exported = next((form for form in exported_forms() if form.fits(path)), None)
        if exported is None:
            raise ValueError(_no_model(path))
        if len(paths) > 1:
            raise ValueError(f"{path} is not a run: only runs form an ensemble.")
        return exported
    return RunForm


def _no_model(path):
    """Returns the message about a path that holds no form of a model."""
    if not path.is_file() or not exported_forms():
        return f"{path} holds no model: a model is {model_kinds()}.{hint(path)}"
    if path.suffix == ".keras":
        folder = path.resolve().parent
        if (folder / "config.toml").exists():
            return f"{path} holds only the weights of a run: name the run's folder, {folder}."
        return (
            f"{path} is a model of Keras without a tokenizer and a task: open it with "
            f"`keras.saving.load_model`. A model is {model_kinds()}."
        )
    if path.suffix in (".h5", ".hdf5"):
        return (
            f"{path} is in Keras's older format, HDF5, which holds no vocabulary and no search. "
            f"A model is {model_kinds()}."
        )
    return f"{path} is not a model: a model is {model_kinds()}.{hint(path)}"


def open(
    path: str | os.PathLike | Sequence[str | os.PathLike],
    *,
    search: Any = None,
    source_language: str | None = None,
    target_language: str | None = None,
    max_length: int | None = None,
    shortlist: Any = None,
    num_threads: int | None = None,
    num_parallel_calls: int | None = None,
    compute_type: str | None = None,
    **settings: Any,
) -> Answering:
    """Opens a run or an export.

    Args:
        path: A run, a SavedModel, a .tflite file, an .onnx file or a folder for CTranslate2; or a
            list of runs, whose models form an ensemble.
        search: A search to use instead of the model's own; see `Answering.with_search`.
        source_language, target_language: See `Answering.with_languages`.
        max_length: Maximum length of inputs and outputs in tokens, only for runs.
        shortlist: A `Shortlist`, only for runs that generate a text for a text.
        num_threads, num_parallel_calls: See `LiteRTFile`, `CTranslate2Generator` and `OnnxModel`.
        compute_type: See `CTranslate2Generator`.
        **settings: See `Answering.with_settings`.

    Returns:
        An `Answering`: the pipeline of a run, such as a `Translator`, or an opened export with the
        same interface.

    Raises:
        TypeError: If an argument has a wrong type.
        ValueError: If there is no model at `path`, it is damaged, or an argument has no effect on
            it; the message names the argument.
    """
    form = form_of(path)
    arguments = {
        "max_length": max_length,
        "num_threads": num_threads,
        "num_parallel_calls": num_parallel_calls,
        "compute_type": compute_type,
    }
    arguments = {name: value for name, value in arguments.items() if value is not None}
    for name, value in arguments.items():
        if name not in form.arguments:
            reason = f"has no effect on {path}, {form.title}. Received: {name}={value!r}."
            raise OptionError(name, reason)
    opened = form.open(path, **arguments)
    if shortlist is not None:
        opened = opened.with_shortlist(shortlist)
    if search is not None:
        opened = opened.with_search(search)
    opened = opened.with_languages(source_language, target_language)
    return opened.with_settings(**settings) if settings else opened
