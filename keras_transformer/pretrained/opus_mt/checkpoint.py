"""A folder of a Marian model in Hugging Face's format as a `Checkpoint`."""

import pathlib
import re

from keras_transformer.pretrained.checkpoint import Checkpoint
from keras_transformer.pretrained.folder import CheckpointFolder
from keras_transformer.pretrained.opus_mt.configuration import read_architecture
from keras_transformer.pretrained.opus_mt.generation import read_generation
from keras_transformer.pretrained.opus_mt.settings import Settings, as_marian
from keras_transformer.pretrained.opus_mt.vocabulary import read_tokenizers
from keras_transformer.pretrained.opus_mt.weights import read_model
from keras_transformer.pretrained.safetensors_file import SafetensorsFile
from keras_transformer.pretrained.sharded_safetensors import ShardedSafetensors

CONFIG, GENERATION, WEIGHTS = "config.json", "generation_config.json", "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"  # of weights in several files
PICKLED, CARD = "pytorch_model.bin", "README.md"
CONVERSION = (
    'python -c "import sys; from transformers import MarianMTModel as M; '
    'M.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])" {path}'
)


def read_opus_mt(path, license=None, name=None):
    """Returns the `Checkpoint` in a folder.

    Read are `config.json`, `generation_config.json`, `model.safetensors` or the files that
    `model.safetensors.index.json` names, `vocab.json`, where it is there `target_vocab.json`,
    `source.spm`, `target.spm`, and of `README.md` the line `license:`.

    Args:
        path: The folder.
        license: Under which the model may be used. `None`: what `README.md` says.
        name: Name of the model. `None`: what `config.json` says, or that of the folder.

    Raises:
        ValueError: If a file is missing, damaged or holds what cannot be expressed; it is named.
        OSError: If one cannot be read.
    """
    folder = CheckpointFolder(path)
    settings, notes = as_marian(Settings(_require_json(folder, CONFIG), folder.path / CONFIG))
    content = folder.json(GENERATION)
    generation = settings if content is None else Settings(content, folder.path / GENERATION)
    architecture = read_architecture(settings, generation)
    wanted = read_generation(generation)
    model = read_model(_open_weights(folder), architecture)
    tokenizers = read_tokenizers(folder, model.config, architecture.shared)
    origin = {
        "format": "opus-mt",
        "name": name or _name(settings, folder.path),
        "license": license or _license(folder),
    }
    return Checkpoint(model, tokenizers, origin, wanted.search, [*notes, *wanted.notes])


def _require_json(folder, name):
    folder.require(name)
    return folder.json(name)


def _open_weights(folder):
    """The tensors, in one file or several; other forms of them are named with what to do."""
    path = folder.file(WEIGHTS)
    if path is not None:
        return SafetensorsFile(path)
    if folder.file(INDEX) is not None:
        return ShardedSafetensors(folder, INDEX)
    if folder.file(PICKLED) is not None:
        raise ValueError(
            f"{folder.path / PICKLED} is a pickle, which may run any program when it is read, and "
            f"is not read. Convert it where you trust it: {CONVERSION.format(path=folder.path)}"
        )
    folder.require(WEIGHTS)


def _name(settings, path):
    """The name of the model, without the folders of whoever saved it."""
    name = settings.get("_name_or_path")
    parts = pathlib.PurePosixPath(name).parts if isinstance(name, str) else ()
    return "/".join(parts[-2:]) or pathlib.Path(path).resolve().name


def _license(folder):
    """What the head of the model's card says, or `None`."""
    card = folder.file(CARD)
    if card is None:
        return None
    with card.open(encoding="utf-8", errors="replace") as file:
        head = file.read(20_000).split("\n---")[0]
    match = re.search(r"^license:[ \t]*['\"]?([\w.\- ]+)", head, re.MULTILINE)
    return match[1].strip() if match and head.startswith("---") else None
