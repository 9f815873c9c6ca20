"""Conversion of another project's checkpoint to a run, for use and training like any other."""

import contextlib
import os
import shutil
from collections.abc import Generator
from typing import Any

from keras_transformer.files import draft_of, remove_stale_drafts, replacing, sync
from keras_transformer.mixers import CrossAttention
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.run import Run
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.settings.toml import save_settings
from keras_transformer.variants import plain, short


def write_converted(checkpoint, path) -> Run:
    """Writes the run of a checkpoint: model, vocabulary, provenance, rules and settings.

    The settings have no data. If anything fails, no run is left.

    Args:
        checkpoint: A `Checkpoint`.
        path: Folder of the run; it must be empty or not exist.

    Returns:
        The `Run`.

    Raises:
        ValueError: If `path` is not free, or the settings cannot express the model.
        OSError: If the run cannot be written.
    """
    path = Run(path).path
    check_place(path)
    settings = settings_of(checkpoint.model.config, checkpoint.tokenizers, checkpoint.task)
    with new_run(path) as draft:
        if checkpoint.tokenizers is not None:
            draft.write_tokenizers(checkpoint.tokenizers)
        draft.write_origin(checkpoint.origin)
        draft.write_generation(checkpoint.generation)
        draft.write_prompts(checkpoint.prompts)
        draft.write_chat(checkpoint.chat)
        with replacing(draft.model) as temporary:
            checkpoint.model.save(temporary)
        save_settings(settings, draft.config)
        draft.update_metrics(parameters=checkpoint.model.count_params())
    return Run(path)


@contextlib.contextmanager
def new_run(path) -> Generator[Run]:
    """Provides a draft to the block, which becomes the run at a path completely or not at all.

    Args:
        path: Folder of the run; it must be empty or not exist.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_stale_drafts(path.parent)
    draft = Run(draft_of(path))
    draft.path.mkdir()
    try:
        yield draft
        for file in draft.path.iterdir():
            sync(file)
        if path.exists():
            path.rmdir()  # Windows does not rename a folder over another, even an empty one
        os.replace(draft.path, path)
    finally:
        shutil.rmtree(draft.path, ignore_errors=True)


def check_place(path) -> None:
    """Checks that a new run can be written to a path.

    Raises:
        ValueError: If the path exists and is not an empty folder.
    """
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists() or path.is_symlink():
        raise ValueError(f"{path} must not exist yet, or be an empty folder.")


def settings_of(config, tokenizers, task="translation") -> Settings:
    """Returns `Settings` whose model has a given configuration.

    Args:
        config: The configuration of the model.
        tokenizers: The `Tokenizers` of the model; `None`: it has no vocabulary.
        task: Name of its task.

    Raises:
        ValueError: If no settings describe the configuration.
    """
    options = config.options()
    special = {name for name in options if options[name].metadata["set_by"] is not None}
    flat = config.to_flat()
    fields = {
        name: _written(value)
        for name, value in flat.items()
        if name not in special | config.follow and value is not None
    }
    sections: dict[str, dict[str, Any]] = {
        "task": {"kind": task},
        "model": {"preset": "base", **fields},
        "data": {"source": "none"},
        "training": dict(TASKS[task].fixed),
    }
    if tokenizers is not None:
        separate = not tokenizers.shared and config.head.tie != "all"
        size = tokenizers.source.vocab_size
        sections["data"]["max_length"] = min(100, config.max_length)
        sections["vocabulary"] = {"size": size, "shared": not separate}
    settings = Settings.model_validate(sections)
    if settings.config(**{name: flat[name] for name in special}) != config:
        raise ValueError(f"training settings cannot describe {config}.")
    return settings


def _written(value):
    """Returns a value of the configuration of a model as TOML has it."""
    if isinstance(value, dict):
        return {key: _written(item) for key, item in value.items()}
    if isinstance(value, CrossAttention):  # what its table lacks is as in self-attention
        options = plain(value)
        return {key: _written(item) for key, item in options.items() if item is not None}
    return list(value) if isinstance(value, tuple) else short(value)
