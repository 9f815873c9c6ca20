"""SavedModels as an export format, and its options."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from keras_transformer.export import options
from keras_transformer.export.formats import Beams, Format
from keras_transformer.search_settings import CheckedSettings, setting


@dataclasses.dataclass(frozen=True)
class SavedModelOptions(CheckedSettings):
    """Options of `export_saved_model`.

    Those but `check_seconds` are for models that generate text.

    Args:
        search: The search of `serving_default`. A `Beam` is also used by all signatures with a
            beam; with a `Greedy` these use `Beam(4)`, or a beam of `n_best` if that is more.
            `None`: the pipeline's own `search`.
        n_best: Number M of outputs. `None`: 4, or the size of the beam if that is less.
        jit: Whether XLA compiles the searches for each of `batch_sizes` and `lengths` when the
            model is loaded. On CPUs, TensorFlow Serving needs an option for this: see the
            `README.md` of the export.
        batch_sizes: Numbers of sentences to compile for, increasing. Other batches are padded or
            split. `None`: 1, 4 and 16.
        lengths: Source lengths in tokens to compile for, increasing; the last one must be the
            pipeline's `max_length`. Other sources are padded. `None`: 16, 64 and so on.
        alignment: Layer and head of the decoder whose attention the signature `alignment` returns,
            a pair of integers; a head of `None` is the mean of the layer's heads. `None`: there is
            no such signature.
        takes_words: Whether there is a signature `words`, which takes a prefix, banned phrases and,
            if `search` is a `Beam`, terms of each sentence: see `SentencesAndWords`. Only for
            models with a source.
        token_scores: Whether there is a signature `token_scores`, which also returns the tokens and
            the log-probability of each: see `TokenScores`. Only for models with a source.
        check_seconds: Time in seconds after which the check calls no further signature. A call that
            has begun is not interrupted, and one signature is always called as TensorFlow Serving
            loads it. The time also limits how many samples are compared.

    Raises:
        ValueError: If an option is out of range, or `batch_sizes` or `lengths` are given without
            `jit`.
    """

    search: Any = options.search()
    n_best: int | None = options.n_best(
        "Number of outputs that the signatures with several outputs return.",
        "4, or the beam's N if that is less",
    )
    alignment: tuple[int, int | None] | None = options.alignment(
        "Add a signature named alignment, which also returns attention weights: the mean over the "
        "heads of the decoder's last layer.",
        "Graph",
    )
    takes_words: bool = options.takes_words("Add a signature named words, which takes")
    token_scores: bool = options.token_scores(
        "Add a signature named token_scores, which also returns"
    )
    jit: bool = setting(
        False,
        "Let XLA compile the searches when a server loads the model. On a CPU, TensorFlow "
        "Serving then needs --xla_cpu_compilation_enabled=true.",
        kind=bool,
        group="Graph",
        needs=options.GENERATION,
    )
    batch_sizes: Sequence[int] | None = options.batch_sizes(
        None, "1,4,16 with --jit", options.GENERATION, "jit"
    )
    lengths: Sequence[int] | None = options.lengths(options.GENERATION, "jit")
    check_seconds: float | None = setting(
        None,
        "Time limit for the check of a model that generates text. After this time, the check calls "
        "no further signature. The report names the signatures that were left out.",
        kind=float,
        above=0,
        is_optional=True,
        metavar="SECONDS",
        default_help="600",
        group=options.CHECK,
        needs=options.GENERATION,
    )


HELP = """Write a SavedModel for TensorFlow Serving.

Writes DIRECTORY/1/, or the next version if there is one. Its README.md explains how to start
the server and send requests. A Python program must import tensorflow_text before it loads the
SavedModel.

A model that generates text has these signatures:

\b
serving_default  strings to texts, by greedy search or the beam of --beam
n_best           strings to the best M outputs of a beam
tokens           as serving_default, with token ids
beam_tokens      as n_best, with token ids
search           as n_best; beam size (1 to N), length penalty and
                 maximum output length are inputs of each sentence
alignment        as serving_default, with tokens and attention weights
                 (with --alignment)
words            as serving_default; a prefix, banned phrases and terms are
                 inputs of each sentence (with --takes-words)
token_scores     as serving_default, with tokens and their scores
                 (with --token-scores)
languages        as serving_default; source and target language are inputs
                 of each sentence (of multilingual models)

The options of beam search apply to every signature with a beam. A classifier has the signatures
serving_default and tokens, which return labels. Speech recognition has the signatures
serving_default and samples. If calls can choose the language, the task and timestamps, there is
also a signature named options, which takes these choices as inputs.
"""

FORMAT = Format(
    "saved-model",
    HELP,
    """# Beam search, for TensorFlow Serving:
keras-transformer export saved-model runs/base serving/base --beam 4
# Compiled by XLA for fixed shapes:
keras-transformer export saved-model runs/base serving/xla --jit --lengths 64""",
    SavedModelOptions,
    "keras_transformer.export.saved_model.export:export_saved_model",
    "keras_transformer.export.place_checks:check_place_of_versions",
    "keras_transformer.export.saved_model.form:SavedModelForm",
    of_answers=("references",),
    of_pipeline=("max_length", "shortlist", "banned", "prefix"),
    beams=Beams("a SavedModel"),
    opened_with=(
        *("beam", "length_penalty", "n_best", "source_language", "target_language"),
        "alignments",
    ),
)
