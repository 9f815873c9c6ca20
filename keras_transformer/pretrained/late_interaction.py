"""Folders of ColBERT models: those of PyLate, sentence-transformers 6 and Stanford's ColBERT."""

import typing
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_transformer.pretrained.files.joined_tensors import JoinedTensors
from keras_transformer.pretrained.files.weights import open_tensors
from keras_transformer.pretrained.interaction_settings import (
    PYLATE,
    HeadOptions,
    of_pylate,
    of_sentence_transformers,
    of_stanford,
)
from keras_transformer.pretrained.names import TRANSPOSED, Weight
from keras_transformer.pretrained.sentence_encoder import (
    ALL,
    FIRST,
    MODULES,
    NORMALIZE,
    kinds_of,
)
from keras_transformer.pretrained.settings import CheckpointSettings

STANFORD = "HF_ColBERT"  # class of the model in its `config.json`
METADATA = "artifact.metadata"  # the settings of Stanford's ColBERT
TYPES = ("MultiVectorEncoder", "ColBERT")  # `model_type` of sentence-transformers and PyLate
TRANSFORMER, DENSE, MASK = "Transformer", "Dense", "MultiVectorMask"
PROJECTION = "linear.weight", "linear.bias"
IDENTITY = ("torch.nn.modules.linear.Identity", "torch.nn.Identity")


class Projection(typing.NamedTuple):
    """A linear layer of the folder.

    Attributes:
        place: Beginning of the names of its tensors, such as `"1_Dense/"`.
        settings: The `CheckpointSettings` of the layer, or `None`: it is in the main file.
        tensors: Its tensors, or `None`.
    """

    place: str
    settings: Any = None
    tensors: Any = None


class LateInteraction(typing.NamedTuple):
    """The parts of a ColBERT model around its encoder.

    Attributes:
        projections: The `Projection`s, which become one linear map.
        options: Function from a `Tokenizer` and the maximum length of the encoder to the options of
            the head of a `MultiVectorEncoder`.
        settings: The `CheckpointSettings` of the first module.
    """

    projections: tuple
    options: Any
    settings: CheckpointSettings

    def join(self, tensors) -> Any:
        """Returns the tensors of an encoder and, under the names of their folders, of the map."""
        others = {p.place.rstrip("/"): p.tensors for p in self.projections if p.tensors is not None}
        return JoinedTensors(tensors, others) if others else tensors

    @property
    def markers(self) -> tuple[str, ...]:
        """The texts of the markers of queries and passages, a tuple without empty ones."""
        stated = self.options.stated
        return tuple(filter(None, (stated.query_prefix, stated.document_prefix)))

    def names(self, tensors) -> Iterator[Weight]:
        """Yields the `Weight`s of the linear map.

        Args:
            tensors: The `Reader` of the tensors, after `size`.
        """
        if not self.projections:
            return
        width = tensors.shapes[self.projections[0].place + PROJECTION[0]][1]
        kernel, bias = self._joined(tensors, width)
        yield Weight((), "token_projection.kernel", TRANSPOSED, default=kernel.astype("float32"))
        yield Weight((), "token_projection.bias", default=bias.astype("float32"))

    def size(self, tensors, width) -> tuple[int | None, bool]:
        """Returns the number of features of a vector, `None` for `width`, and if there is a bias.

        Raises:
            ValueError: If a tensor is missing, or the widths of two successive layers do not fit.
        """
        if not self.projections:
            return None, False
        kernel, bias = self._joined(tensors, width)
        return len(kernel), bool(bias.any())

    def _joined(self, tensors, width):
        """Returns the product of all layers, `[N, D]`, and its bias, `[N]`, in float64."""
        kernel, bias = np.eye(width), np.zeros(width)
        for projection in self.projections:
            weight, offset = (projection.place + name for name in PROJECTION)
            rows = tensors.shapes.get(weight, (0,))[0]
            if projection.settings is not None:
                rows = projection.settings.count("out_features")
            layer = tensors.read(weight, (rows, len(kernel))).astype("float64")
            added = projection.place + "residual.weight"
            if projection.settings is not None and projection.settings.flag("use_residual"):
                same = rows == len(kernel)
                layer += np.eye(rows) if same else tensors.read(added, layer.shape)
            kernel, bias = layer @ kernel, layer @ bias
            if offset in tensors.shapes:
                bias = bias + tensors.read(offset, (rows,))
        return kernel, bias

    def check_tokenizer(self, tokenizer) -> None:
        """Refuses texts that are converted to lower case before a tokenizer that does not do so."""
        normalizer = getattr(tokenizer, "normalizer", None)
        if self.settings.flag("do_lower_case") and not getattr(normalizer, "lowercase", False):
            raise self.settings.wrong("do_lower_case", "false, or the tokenizer must do the same")


def read_late_interaction(folder, settings) -> LateInteraction | None:
    """Returns the `LateInteraction` in a folder; `None` if the folder does not describe one.

    Args:
        folder: A `CheckpointFolder`.
        settings: The `CheckpointSettings` of its encoder.

    Raises:
        ValueError: If a file is missing or damaged, or a module or a setting has no place here; the
            error names it.
    """
    of_all = CheckpointSettings(folder.json(ALL) or {}, folder.path / ALL)
    first = CheckpointSettings(folder.json(FIRST) or {}, folder.path / FIRST)
    modules = folder.json(MODULES, list)
    has_pylate = any(key in of_all.content for key in PYLATE)
    if settings.get("architectures") == [STANFORD]:
        stated = of_all if has_pylate else _metadata(folder)
        options = HeadOptions(of_pylate(of_all) if has_pylate else of_stanford(stated), stated)
        return LateInteraction((Projection(""),), options, first)
    if modules is None:
        return None
    path = folder.path / MODULES
    kinds, places = kinds_of(modules, path)
    is_plain = kinds[1:2] == [DENSE] and not any(kind.endswith("Pooling") for kind in kinds)
    if of_all.get("model_type") not in TYPES and not is_plain and MASK not in kinds:
        return None
    known = (DENSE, MASK, NORMALIZE)
    if kinds[:1] != [TRANSFORMER] or not {*kinds[1:]} <= {*known}:
        raise ValueError(
            f"{path}: the modules of a model with vectors of tokens must be {TRANSFORMER} and "
            f"{', '.join(known)}. Received: {', '.join(kinds)}."
        )
    if places[0] not in ("", "."):
        raise ValueError(
            f"{path}: the {TRANSFORMER} must be in the folder itself. Received: path={places[0]!r}."
        )
    if NORMALIZE in kinds and DENSE in kinds[kinds.index(NORMALIZE) :]:
        raise ValueError(f"{path}: no {DENSE} may come after {NORMALIZE}.")
    projections = tuple(
        _projection(folder, place)
        for kind, place in zip(kinds, places, strict=True)
        if kind == DENSE
    )
    if MASK not in kinds:  # PyLate, whose files do not list what comes after the layers
        return LateInteraction(projections, HeadOptions(of_pylate(of_all), of_all), first)
    if NORMALIZE not in kinds:
        raise ValueError(f"{path}: {NORMALIZE} is missing from the modules.")
    mask = f"{places[kinds.index(MASK)]}/config.json"
    mask_settings = CheckpointSettings(folder.require_json(mask), folder.path / mask)
    stated = of_sentence_transformers(of_all, first, mask_settings)
    return LateInteraction(projections, HeadOptions(stated, of_all), first)


def _projection(folder, place):
    files = folder.subfolder(place)
    settings = CheckpointSettings(files.require_json("config.json"), files.path / "config.json")
    settings.check(
        {
            "module_input_name": ("token_embeddings", "sentence_embedding", None),
            "module_output_name": ("token_embeddings", "sentence_embedding", None),
        }
    )
    if settings.get("activation_function") not in IDENTITY:  # without the setting, it is tanh
        raise settings.wrong("activation_function", " or ".join(IDENTITY))
    tensors = open_tensors(files)
    return Projection(f"{place}/", settings, tensors)


def _metadata(folder):
    return CheckpointSettings(folder.json(METADATA) or {}, folder.path / METADATA)
