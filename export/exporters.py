"""The exporters: a table of which function writes what in which form."""

import importlib

from keras_transformer.export.parity import ExportError
from keras_transformer.tasks.conditional_generator import ConditionalGenerator
from keras_transformer.tasks.generator import Generator
from keras_transformer.tasks.single_pass.pipeline import SinglePass

# For each form, in order of preference: the class of what is exported, and its exporter. Imported
# when they are needed: each form has requirements of its own.
EXPORTERS = {
    "saved-model": (
        (Generator, "saved_model.export:export_saved_model"),
        (SinglePass, "saved_model.single_pass:export_single_pass"),
    ),
    "litert": (
        (Generator, "litert.export:export_litert"),
        (SinglePass, "litert.single_pass:export_single_pass"),
    ),
    "marian": ((ConditionalGenerator, "marian.export:export_marian"),),
    "ctranslate2": ((ConditionalGenerator, "ctranslate2.export:export_ctranslate2"),),
}


# What refuses a run in a form that cannot have every model: a function of its configuration, its
# tokenizers, the quantisation and its origin. The weights need not be read.
CHECKS = {
    "marian": "marian.arrays:check_run",
    "ctranslate2": "ctranslate2.spec:check_run",
    "litert": "litert.strings:check_run",  # where the file is to take strings
}


def check_run(form, run, quantize):
    """Raises if it is known without the weights of a run that there is no export of it.

    Args:
        form: A key of `EXPORTERS`.
        run: The `Run`.
        quantize: See the exporter.

    Raises:
        ExportError: With what the form cannot express.
        ValueError: If a file of the run is missing or damaged.
    """
    config = run.read_model_config()
    if config is not None and form in CHECKS:
        check = _imported(CHECKS[form])
        check(config, run.load_tokenizers(), quantize, run.read_origin())


def exporter_of(form, pipeline):
    """Returns the function that exports a pipeline.

    Args:
        form: A key of `EXPORTERS`.
        pipeline: What a run's model is used by, such as a `Translator`.

    Raises:
        ExportError: If there is none.
    """
    for kind, place in EXPORTERS[form]:
        if isinstance(pipeline, kind):
            return _imported(place)
    raise ExportError(f"There is no export to {form} of a model for {pipeline.task}.")


def _imported(place):
    module, name = place.split(":")
    return getattr(importlib.import_module(f"keras_transformer.export.{module}"), name)
