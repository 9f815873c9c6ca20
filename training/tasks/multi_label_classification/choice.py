"""Thresholds of a run for classification with several labels, chosen on data with labels."""

import os
from typing import Any

import numpy as np

from keras_transformer.checks import check_choice
from keras_transformer.tasks import open_run
from keras_transformer.tasks.examples import errors_name
from keras_transformer.tasks.multi_label_classification.metrics import as_matrix
from keras_transformer.tasks.multi_label_classification.thresholds import AIMS, best_thresholds
from keras_transformer.tasks.run import Run
from keras_transformer.training.evaluate import (
    columns_of_files,
    columns_of_split,
    places,
    task_of,
)

SHOWN = ("micro_f1", "macro_f1", "subset_accuracy")


def choose_threshold(
    run: str | os.PathLike,
    aim: str = "macro_f1",
    split: str = "validation",
    source: str | os.PathLike | None = None,
    reference: str | os.PathLike | None = None,
) -> dict[str, Any]:
    """Chooses the threshold of a run, or one for each label, and writes it to `threshold.json`.

    The run and its later exports use it in place of the `threshold` of the model's configuration.
    Do not choose it on the texts of the evaluation. The model is not changed.

    Args:
        run: Folder of a run for classification with several labels.
        aim: What is best with it, and whether there is one for each label: see `best_thresholds`.
        split: Split of the run's own data to choose on.
        source: File of texts, one per line, in place of a split; `reference` has their labels.
        reference: File of the labels of each line of `source`.

    Returns:
        Dictionary of `threshold`, a number or a dictionary from labels to numbers; and of `before`
        and `after`, the metrics `micro_f1`, `macro_f1` and `subset_accuracy` on these texts with
        the run's earlier threshold and with the new one.

    Raises:
        ValueError: If the run has another task, there is no text, or a label is unknown.
    """
    check_choice("aim", aim, AIMS)
    task = task_of(run)
    if task.name != "multi_label_classification":
        raise ValueError(
            f"{run} is a run for {task.name}: a threshold needs one for multi_label_classification."
        )
    columns = (
        columns_of_split(Run(run), split)
        if source is None
        else columns_of_files(run, source, reference)
    )
    pipeline = open_run(run)
    with errors_name(places(Run(run), split if source is None else None, reference)):
        before = task.evaluate(pipeline, columns)
    texts, references = columns
    probabilities = np.stack([result.probabilities for result in pipeline.classify(texts)])
    correct = as_matrix(pipeline.codec.sets(references), pipeline.labels)
    threshold = best_thresholds(probabilities, correct, pipeline.labels, aim)
    after = task.evaluate(pipeline.with_settings(threshold=threshold), columns)
    Run(run).write_threshold(threshold)
    shown = {"before": before, "after": after}
    metrics = {name: {key: one[key] for key in SHOWN} for name, one in shown.items()}
    return {"threshold": threshold, **metrics}
