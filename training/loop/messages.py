"""Messages of `train`, and the error after training has diverged."""

import math

from keras_transformer.training.tuning.frozen import trained_parameters

REMEDIES = "schedule.peak, schedule.scale, optimizer.clip_norm"


def diverged(what, last_good) -> ValueError:
    """Returns the error after training has diverged.

    Args:
        what: Description of the problem and its update, without full stop.
        last_good: Sentence that names the checkpoint to resume from, without full stop.
    """
    return ValueError(
        f"{what}. {last_good}; a lower learning rate or clipping ({REMEDIES}) may help."
    )


def not_learned(logs) -> str:
    """Returns a warning if the loss has risen in training, otherwise an empty string.

    Args:
        logs: The `Logs` of a training that has ended.
    """
    first, last = logs.first_loss, logs.last_loss
    if None in (first, last) or last <= first:
        return ""
    return (
        f"Warning: the training loss ended at {last:.4g}, above that of the first update, "
        f"{first:.4g}: the model has not learned. A lower learning rate or clipping "
        f"({REMEDIES}) may help."
    )


def duration(seconds) -> str:
    """Formats a time in seconds as `1:02:03` or `2:03`."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def say(console, text) -> None:
    """Prints a line of plain text without wrapping it."""
    console.print(text, soft_wrap=True, highlight=False, markup=False)


def introduction(session) -> str:
    """Returns the first line of a `Session`: parameters, examples and updates of an epoch."""
    corpus, settings = session.corpus, session.settings
    steps = math.ceil(session.epochs.steps / settings.training.accumulate)
    weighted = session.corpus.is_weighted
    epoch = "an epoch of the weighted examples" if weighted else "an epoch"
    left_out = f", {corpus.too_long:,} longer ones left out" if corpus.too_long else ""
    left_out += f", {corpus.empty:,} empty ones left out" if corpus.empty else ""
    if corpus.truncated and session.training.packed:
        left_out += f", {corpus.truncated:,} of them cut into parts"
    elif corpus.truncated:
        left_out += (
            f", {corpus.truncated:,} sources truncated to {settings.data.max_length:,} tokens"
        )
    text = f"{_parameters(session.learner)}; {_examples(session)}{left_out}"
    return f"{text}; {steps:,} updates are {epoch}."


def _parameters(learner):
    parameters, trained = learner.model.count_params(), trained_parameters(learner.model)
    text = f"{parameters:,} parameters"
    if trained != parameters:
        text = f"{text}, {trained:,} of them trained"
    rounding = learner.rounding
    return text if rounding is None else f"{text}, {rounding.count:,} rounded to {rounding.kind}"


def _examples(session):
    corpus = session.corpus
    if not session.training.packed:
        return f"{corpus.size:,} examples"
    return f"{corpus.examples:,} examples in {corpus.size:,} rows"


def listed(results) -> str:
    """Formats the results of a validation as one line."""
    return ", ".join(f"{name} {value:.4g}" for name, value in results.items())
