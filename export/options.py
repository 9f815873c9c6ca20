"""Options that several export formats share: defaults, limits and help texts, declared once.

The options of a format are a value, which checks itself. Python passes it to the exporter, and the
options of the command line are derived from its fields. The module does not import TensorFlow.
"""

import dataclasses
from typing import Any, ClassVar

from keras_transformer.search_settings import CheckedSettings, setting, settings_of

CHECK = "Check of the export"
CONTENTS = "Contents of the file"
QUANTIZATION = "Quantisation"
QUALITY = "Quality limits of a quantised model"
# Models that an option has an effect on: all that generate text, from a source, or with a beam.
GENERATION, SOURCE, BEAM = "generation", "source", "beam"
CONTINUATION = "continuation"  # of prompts, without a source
ATTENTION = (-1, None)  # the mean over the heads of the last layer
# Maximum loss of a quantised model, in nats per token. Measured in LiteRT for the small model of
# the tests: float16 0.0001, int8 0.002, int8_static 0.003; int4 0.02 for a model of Multi30K.
MAX_SCORE_LOSS = {"none": 0.0, "float16": 0.01, "int8": 0.1, "int8_static": 0.1, "int4": 0.2}
STORED = {
    "int8_static": "; int8_static also quantises the activations",
    "int4": "; int4 stores 4 bits for each weight",
}


def stored_as(*formats: str) -> Any:
    """Returns the field with the number format of the stored weights."""
    more = "".join(text for name, text in STORED.items() if name in formats)
    help = f"Number format of the stored weights{more}."
    return setting("none", help, kind=str, choices=("none", *formats), group=QUANTIZATION)


def lengths(needs: str | None = None, requires: str | None = None) -> Any:
    """Returns the field with the source lengths for which graphs of fixed shape are built."""
    return setting(
        None,
        "Source lengths, in tokens. A graph of fixed shape is built for each length. A source "
        "is padded to the next larger length. The last length is the maximum.",
        kind=tuple,
        is_optional=True,
        metavar="N,N,...",
        default_help="16,64,... up to the maximum",
        group="Shapes",
        needs=needs,
        requires=requires,
    )


def batch_sizes(
    default: Any, shown: str, needs: str | None = None, requires: str | None = None
) -> Any:
    """Returns the field with the batch sizes for which graphs of fixed shape are built."""
    return setting(
        default,
        "Batch sizes. A graph of fixed shape is built for each size. Other batches are padded "
        "to the next larger size, or split.",
        kind=tuple,
        is_optional=default is None,
        metavar="N,N,...",
        default_help=shown,
        group="Shapes",
        needs=needs,
        requires=requires,
    )


def n_best(help: str, shown: str, needs: str = GENERATION) -> Any:
    """Returns the field with the number of outputs of a beam."""
    return setting(
        None,
        help,
        least=1,
        is_optional=True,
        metavar="M",
        default_help=shown,
        group="Search",
        needs=needs,
    )


def alignment(help: str, group: str, excludes: str | None = None) -> Any:
    """Returns the field with the layer and head whose attention is returned."""
    return setting(
        None, help, kind=None, given=ATTENTION, group=group, needs=SOURCE, excludes=excludes
    )


def tokenizer(help: str, excludes: str) -> Any:
    """Returns the field with which an export takes and returns strings."""
    return setting(False, help, kind=bool, group=CONTENTS, needs=GENERATION, excludes=excludes)


def streaming(help: str, excludes: str) -> Any:
    """Returns the field with which a call of an export returns one token of a text."""
    return setting(False, help, kind=bool, group=CONTENTS, needs=CONTINUATION, excludes=excludes)


def takes_words(what: str, excludes: str | None = None) -> Any:
    """Returns the field with which each call names words that outputs must or must not contain.

    Args:
        what: What takes them, the beginning of the help text.
        excludes: See `setting`.
    """
    return setting(
        False,
        f"{what} further inputs: a prefix, banned phrases and, with --beam, terms of a glossary. "
        "With a beam of 10, terms fit well into the outputs.",
        kind=bool,
        group="Search",
        needs=SOURCE,
        excludes=excludes,
    )


def token_scores(what: str, excludes: str | None = None) -> Any:
    """Returns the field with which an export returns the log-probability of each token.

    Args:
        what: What returns them, the beginning of the help text.
        excludes: See `setting`.
    """
    return setting(
        False,
        f"{what} the log-probability of each token of an output, for translate --token-scores.",
        kind=bool,
        group=CONTENTS,
        needs=SOURCE,
        excludes=excludes,
    )


def search() -> Any:
    """Returns the field with the search, which options of its own describe on the command line."""
    return setting(None, "", kind=None, needs=GENERATION)


def _usual_losses(options):
    """Returns the default of `max_score_loss` for each quantisation of a class of options."""
    kinds = [kind for kind in settings_of(options)["quantize"].choices if kind != "none"]
    losses = options.score_losses
    return ", ".join(f"{losses[kind]:g} for {kind}" for kind in kinds if kind in losses)


@dataclasses.dataclass(frozen=True)
class QuantizedOptions(CheckedSettings):
    """Quantisation of an export, and the loss of quality that it may cause.

    Args:
        quantize: Storage of the weights. `"none"` is float32, which loses nothing.
        min_agreement: Minimum share of equal tokens, or of equal answers, for a quantised model.
            `None`: no limit.
        max_loss: Maximum loss of a quantised model, in points of a metric from 0 to 100, such as
            BLEU, chrF or accuracy.
        max_score_loss: Maximum loss of the scores, and maximum error of the reported scores, in
            nats. `None`: the default for the kind of model and the quantisation.

    Raises:
        ValueError: If an option is out of range.
    """

    score_losses: ClassVar[dict[str, float]] = MAX_SCORE_LOSS  # defaults for generated text

    quantize: str = setting("none", "", kind=str)
    min_agreement: float | None = setting(
        None,
        "Minimum share of tokens that are equal to those of the run, on this processor.",
        kind=float,
        least=0,
        most=1,
        is_optional=True,
        is_percentage=True,
        metavar="PERCENT",
        default_help="no minimum, because the losses are limited",
        group=QUALITY,
        requires="quantize",
    )
    max_loss: float = setting(
        1.0,
        "Maximum loss in BLEU and in chrF, or in accuracy.",
        kind=float,
        least=0,
        metavar="POINTS",
        group=QUALITY,
        requires="quantize",
    )
    max_score_loss: float | None = setting(
        None,
        "Maximum loss in nats per token. The loss is how much less probable the outputs are than "
        "the run's own, both scored by the run. The same limit applies to the error of scores and "
        "of log-probabilities of labels.",
        kind=float,
        least=0,
        is_optional=True,
        metavar="NATS",
        default_help=_usual_losses,
        group=QUALITY,
        requires="quantize",
    )


@dataclasses.dataclass(frozen=True)
class FileOptions(QuantizedOptions):
    """Options of an export that is one file, with what its metadata say about the model.

    Args:
        license: License of the model, a string. `None`: the license in the provenance.
        source_language: Code of the source language, a string.
        target_language: Code of the target language.

    Raises:
        ValueError: If an option is out of range.
    """

    license: str | None = setting(
        None,
        "Licence of the model, for the metadata of the file.",
        kind=str,
        is_optional=True,
        metavar="TEXT",
        group=CONTENTS,
    )
    source_language: str | None = setting(None, "", kind=str, is_optional=True, needs=GENERATION)
    target_language: str | None = setting(None, "", kind=str, is_optional=True, needs=GENERATION)
