"""Messages of a training: the lines that it shows, and the error of one that diverged."""

import math


def diverged(what, last_good):
    """Returns the error of a training that can no longer be saved.

    Args:
        what: What happened at which update.
        last_good: Which checkpoint to go back to, both without a dot at the end.
    """
    return ValueError(
        f"{what}. {last_good}; a lower learning rate or clipping "
        "(schedule.peak, schedule.scale, optimizer.clip_norm) may help."
    )


def duration(seconds):
    """Returns a time as `1:02:03` or `2:03`."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def say(console, text):
    """Prints a line of plain text that is not wrapped."""
    console.print(text, soft_wrap=True, highlight=False, markup=False)


def introduction(session):
    """Returns the line that a `Session` begins with: parameters, examples, updates."""
    corpus, settings = session.corpus, session.settings
    steps = math.ceil(session.epochs.steps / settings.training.accumulate)
    weighted = session.corpus.is_weighted
    seen = "are an epoch, as their weights say" if weighted else "see all of them once"
    left_out = f", {corpus.too_long:,} too long ones left out" if corpus.too_long else ""
    if corpus.cut and session.training.packed:
        left_out += f", {corpus.cut:,} of them cut into pieces"
    elif corpus.cut:
        left_out += f", {corpus.cut:,} sources cut at {settings.data.max_length:,} tokens"
    parameters = session.learner.model.count_params()
    text = f"{parameters:,} parameters; {_examples(session)}{left_out}"
    return f"{text}; {steps:,} updates {seen}."


def _examples(session):
    corpus = session.corpus
    if not session.training.packed:
        return f"{corpus.size:,} examples"
    return f"{corpus.examples:,} examples in {corpus.size:,} rows"


def listed(figures):
    """Returns figures in one line."""
    return ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
