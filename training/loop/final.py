"""The end of a training: which weights become the model of the run."""

import math

from keras_transformer.files import replacing
from keras_transformer.training.loop.checkpoint import read_state
from keras_transformer.training.loop.messages import say
from keras_transformer.training.loop.moving_average import averaged_weights


def write_model(session):
    """Writes `model.keras` and `metrics.json` of a run; returns the figures.

    Figures of the model before, of a run that was made longer, are dropped.

    Args:
        session: A `Session` that has trained.
    """
    learner, run, best = session.learner, session.run, session.best
    seen = int(learner.seen.numpy())
    update, validation = load_final(session)
    with averaged_weights(learner), replacing(run.model) as temporary:
        _in_float32(learner.model).save(temporary)
    figures = {
        "parameters": learner.model.count_params(),
        "updates": session.update,
        "stopped_early": best.exhausted,
        f"{learner.unit}_seen": seen,
        "train_seconds": round(session.seconds, 1),
        "model_update": update,
        "best_update": best.update,
        "validation": validation,
    }
    if session.lineage is not None:
        figures["started_from"] = session.lineage
    if session.vectors is not None:
        figures["vectors"] = session.vectors
    run.write_metrics(figures)
    return figures


def load_final(session):
    """Loads the weights that are to be the model; returns their update and its validation.

    With `final_model = "best"` these are the best ones that can be read: damage to a file must not
    keep a training from its end.

    Args:
        session: A `Session` that has trained.
    """
    best, checkpoints = session.best, session.checkpoints
    last = session.update, session.validation
    if session.settings.training.final_model != "best" or best.update is None:
        return last
    problem, final = None, last
    for candidate in [(best.update, best.figures), *_next_best(session)]:
        try:
            checkpoints.load(checkpoints.path(candidate[0]), session.variables())
        except ValueError as error:
            problem = problem or str(error)
            continue
        final = candidate
        break
    if problem:
        text = f"The best checkpoint cannot be used: {problem} The model is that of update"
        say(session.console, f"{text} {final[0]:,}, the next best.")
    return final


def _next_best(session):
    """The other checkpoints that were validated, the best first: their updates and figures."""
    by, validated = session.best.by, []
    for path in session.checkpoints.paths():
        try:
            state = read_state(path)
        except ValueError:
            continue
        figures = state["validation"] if state.get("validated") == state["update"] else None
        if figures and math.isfinite(figures.get(by, math.nan)):
            validated.append((state["update"], figures))
    others = [validation for validation in validated if validation[0] != session.best.update]
    return sorted(
        others, key=lambda validation: validation[1][by], reverse=session.best.higher_is_better
    )


def _in_float32(model):
    """The model with the policy float32, so that it computes the same everywhere.

    Its weights are float32 in any case; only the arithmetic of the training was in 16 bits.
    """
    copy = type(model)(model.config, dtype="float32")
    copy.set_weights(model.get_weights())
    return copy
