"""Contents of an export that is one file, as far as they do not depend on its format."""

from typing import Any

import tensorflow as tf

import keras_transformer
from keras_transformer.export.shortlists import shortlist_metadata
from keras_transformer.export.source_ids import FRONT, RULE
from keras_transformer.options import LANGUAGES


class Contents:
    """Contents of a file, and its agreement with the model in memory before it is kept.

    A kind of model defines `convert`, which returns the model in the format of the file; `about`,
    its metadata; `check`, which returns the results of a draft or raises an `ExportError`; and
    `open`, which runs the finished file once as a user does.

    Args:
        pipeline: A `Pipeline` in float32.
        samples: List of inputs to check the file with.
        limits: The `Limits`.
        progress: See `export_litert`.
    """

    def __init__(self, pipeline, samples, limits, progress):
        self.pipeline, self.samples, self.limits = pipeline, samples, limits
        self.quantize, self.progress = limits.quantize, progress

    def about(self) -> dict[str, Any]:
        """Returns the metadata of the kind of model."""
        raise NotImplementedError

    def metadata(self, content) -> dict[str, Any]:
        """Returns the metadata that a program needs to use the file.

        Args:
            content: Result of `convert`.
        """
        return {
            "task": self.pipeline.task,
            **self.about(),
            "parameters": self.pipeline.model.count_params(),
            "quantize": self.quantize,
            "made_with": {
                "keras_transformer": keras_transformer.__version__,
                "tensorflow": tf.__version__,
            },
        }

    def results(self) -> dict[str, Any]:
        """Returns further results for the report, a dictionary."""
        return {}


def provenance(license, origin) -> dict[str, Any]:
    """Returns the metadata about the licence and the origin of the weights.

    Args:
        license: License of the model, a string. `None`: the license in `origin`.
        origin: Provenance of the original checkpoint, a dictionary, or `None`.
    """
    known = {"origin": origin} if origin else {}
    return {"license": license or (origin or {}).get("license"), **known}


def about_generation(pipeline) -> dict[str, Any]:
    """Returns the metadata of a `Generator` about the token ids that it reads."""
    tokenizer = pipeline.source_tokenizer
    languages = tokenizer.languages
    about = {}
    if languages is not None:
        about = {"languages": languages.ids, "source": RULE + FRONT.format(languages.front_rule)}
    return {
        "tokens": {name: getattr(tokenizer, f"{name}_id") for name in ("pad", "unk", "bos", "eos")},
        "vocab_size": tokenizer.vocab_size,
        "source": RULE,
        "max_length": pipeline.max_length,
        **shortlist_metadata(pipeline.shortlist),
        **about,
    }


def default_languages(pipeline, options) -> dict[str, Any]:
    """Returns the languages of a `Generator`: those of a multilingual model, or of the options."""
    languages = pipeline.source_tokenizer.languages
    if languages is None:
        return {name: getattr(options, name) for name in LANGUAGES}
    return {"source_language": languages.source, "target_language": languages.target}
