"""Activations of cross-encoders, as `CrossEncoder` of sentence-transformers reads them."""

from typing import Any

from keras_transformer.pretrained.sentence_encoder import ALL
from keras_transformer.pretrained.settings import CheckpointSettings

SECTION, NAME = "sentence_transformers", "activation_fn"
OLDER = "sbert_ce_default_activation_function"  # before version 4
KINDS = {"Sigmoid": "sigmoid", "Identity": "none"}
DEFAULT = "sigmoid"


def read_activation(folder, settings) -> str:
    """Returns the activation after the one logit of a checkpoint, a `score_activation`.

    Files are read in the order of sentence-transformers 6: `config_sentence_transformers.json`,
    then `sentence_transformers.activation_fn` in `config.json`, then the name that versions before
    4 wrote. Without any of them, and for a function outside of PyTorch, which is not executed, it
    is the sigmoid.

    Args:
        folder: A `CheckpointFolder`.
        settings: Its `CheckpointSettings`.

    Raises:
        ValueError: If it is another function of PyTorch; the error names it.
    """
    of_all = CheckpointSettings(folder.json(ALL) or {}, folder.path / ALL)
    section = settings.get(SECTION)
    if isinstance(section, dict) and NAME in section:
        own: Any = CheckpointSettings(section, settings.path), NAME
    else:
        own = settings, OLDER
    for source, name in ((of_all, NAME), own):
        function = source.get(name)
        if function is None:
            continue
        if not isinstance(function, str):
            raise source.wrong(name, "the name of a function")
        if function.startswith("torch."):
            kind = function.rpartition(".")[2]
            if kind not in KINDS:
                raise source.wrong(name, f"one of PyTorch's {', '.join(KINDS)}")
            return KINDS[kind]
    return DEFAULT
