"""The end of training: the choice of the final weights and the model of the run."""

import math
from typing import Any

from keras_transformer.files import finite, replacing
from keras_transformer.training.loop.checkpoint import read_state
from keras_transformer.training.loop.messages import say
from keras_transformer.training.loop.moving_average import averaged_weights
from keras_transformer.training.tuning.adapters import merged_weights


def write_model(session) -> dict[str, Any]:
    """Writes `model.keras` and `metrics.json` of a run; returns the content of the latter.

    A metric that is NaN or infinite is `None`.
    Metrics of an earlier model, of a run that was made longer, are dropped.

    Args:
        session: A `Session` that has trained.
    """
    learner, run, best = session.learner, session.run, session.best
    seen = int(learner.seen.numpy())
    update, validation = load_final(session)
    with averaged_weights(learner), learner.rounded_weights(), replacing(run.model) as temporary:
        model = _ordinary(learner.model)
        model.save(temporary)
    metrics = {
        "parameters": model.count_params(),
        "updates": session.update,
        "stopped_early": best.exhausted,
        f"{learner.unit}_seen": seen,
        "train_seconds": round(session.seconds, 1),
        "model_update": update,
        "best_update": best.update,
        "validation": validation,
    }
    if session.lineage is not None:
        metrics["started_from"] = session.lineage
    if session.vectors is not None:
        metrics["vectors"] = session.vectors
    run.write_metrics(metrics)
    return finite(metrics)


def load_final(session) -> tuple:
    """Loads the weights of the final model.

    With `final_model = "best"` they are from the best checkpoint that can be read, so that
    training can end even if a file is damaged.

    Args:
        session: A `Session` that has trained.

    Returns:
        The update of the weights, and the results of its validation.
    """
    best, checkpoints = session.best, session.checkpoints
    last = session.update, session.validation
    if session.settings.training.final_model != "best" or best.update is None:
        return last
    problem, final = None, last
    for candidate in [(best.update, best.results), *_next_best(session)]:
        try:
            checkpoints.load(checkpoints.path(candidate[0]), session.variables())
        except ValueError as error:
            problem = problem or str(error)
            continue
        final = candidate
        break
    if problem:
        text = f"The best checkpoint cannot be used: {problem} The model is from update"
        say(session.console, f"{text} {final[0]:,}, the next best.")
    return final


def _next_best(session):
    """Returns update and results of the other checkpoints with a validation, the best first."""
    by, validated = session.best.by, []
    for path in session.checkpoints.paths():
        try:
            state = read_state(path)
        except ValueError:
            continue
        results = state["validation"] if state.get("validated") == state["update"] else None
        if results and math.isfinite(results.get(by, math.nan)):
            validated.append((state["update"], results))
    others = [validation for validation in validated if validation[0] != session.best.update]
    return sorted(
        others, key=lambda validation: validation[1][by], reverse=session.best.higher_is_better
    )


def _ordinary(model):
    """Returns a copy of the model with the policy float32, into whose weights adapters are merged.

    So it computes the same everywhere. Weights are always float32; only the arithmetic of training
    may use 16 bits.
    """
    copy = type(model)(model.config, dtype="float32")
    copy.set_weights(merged_weights(model))
    return copy
