"""Options of `predict` that depend on the model: what it supports, and refusals of the rest."""

from typing import Any

from keras_transformer.cli.command import refuse, warn
from keras_transformer.cli.search_options import SEARCHES

MODEL_KINDS = "a run, a SavedModel, a .tflite file or a folder for CTranslate2"
LANGUAGES = ("source_language", "target_language")
# Settings of answers, see `TextPass.with_settings`.
# See `Silence`.
SILENCE = ("no_speech_threshold", "log_probability_threshold", "compression_ratio_threshold")
ANSWERS = ("no_answer", "dimensions", "prompt", "timestamps", "spans", *SILENCE)
TIMES = ("timestamps", "subtitles")  # options that need timestamps
# Options that a run supports, depending on its task.
ALL = {*SEARCHES, "max_length", "alignments", "shortlist", *LANGUAGES, *ANSWERS, *TIMES}


def check_choice(name, choices, options, path) -> None:
    """Refuses options for something that a model of speech does not choose."""
    if name not in choices.names:
        what = "languages are" if name == "language" else f"{name} are"
        refuse(options, f"has no effect on {path}, whose {what} fixed.")


def with_answers(pipeline, answers, path, what="model") -> Any:
    """Returns a pipeline with the settings of answers that the options have, or refuses them."""
    if not answers:
        return pipeline
    check_silence(getattr(pipeline, "codec", None), path)
    others = [name for name in answers if name not in getattr(pipeline, "settings", ())]
    if "timestamps" in others:
        others += TIMES
    refuse(others, f"has no effect on {path}, a {what} for {pipeline.task}.")
    return pipeline.with_settings(**answers)


def check_silence(codec, path) -> None:
    """Refuses thresholds of silence for a model of speech that does not compute its probability."""
    if getattr(codec, "silence", codec) is None and codec is not None:
        rule = "whose model does not compute the probability of silence, as Whisper does"
        refuse(SILENCE, f"has no effect on {path}, {rule}.")


def check_languages(tokenizers, path) -> None:
    """Refuses languages for a model that has none to choose from."""
    if tokenizers.languages is None:
        refuse(LANGUAGES, f"has no effect on {path}, whose languages are fixed.")


def answered(model, path) -> Any:
    """Returns a function that answers lines in one pass, independently or as one series."""
    from keras_transformer.cli.line_searches import Answered

    codec = model.codec
    if not hasattr(codec, "lines"):
        return Answered(model)
    refuse(["scores", "batch_size", "shard"], f"has no effect on {path}: its lines are one series.")
    return codec.lines(model.run, warn)
