"""Validation: metrics of a learner on the validation split."""

from keras_transformer.training.data.shards import cut_batches
from keras_transformer.training.evaluate import read_columns
from keras_transformer.training.loop.moving_average import averaged_weights


class Validator:
    """Validation of a learner, with the moving average of its weights if it keeps one.

    Weights are rounded as in training, if they are.

    Under a strategy all workers validate together. Only the chief generates answers, and sends
    their metrics to the others.

    Args:
        learner: A compiled `Learner`.
        training: The `Training` of its task.
        data: A `Source` with the split `"validation"`.
        corpus: The `Corpus` of that split.
        settings: The `Settings` of the run.
        workers: The `Workers` that train together.

    Call arguments: none.

    Returns: Dictionary of the task's metrics: `loss` and the metrics of the learner over all
        examples of the split (without texts longer than `data.max_length`); and metrics of answers,
        if the task has any, over the examples that `Task.validation_rows` chooses.
    """

    def __init__(self, learner, training, data, corpus, settings, workers):
        self.learner = learner
        size = settings.data.size_of_batch
        buckets = settings.data.widths
        batches = corpus.batches(size, buckets=buckets).cache().repeat()
        self.batches = cut_batches(batches, workers.strategy, training.pad_id)
        self.steps = corpus.steps(size, buckets)
        self.workers = workers
        self.task = settings.task.get()
        of_answers = {name: one for name, one in self.task.metrics.items() if one.of_answers}
        limit = settings.training.validate_sentences
        self.examples = ()
        if of_answers and limit:
            columns = read_columns(data, self.task, "validation", limit)
            self.examples = columns[0], columns[-1]
            tokenizers = () if training.tokenizers is None else (training.tokenizers,)
            pipeline = self.task.pipeline_class()(learner.model, *tokenizers)
            self.pipelines = self.task.validated(pipeline, settings)
            self.of_answers = [
                name for name, one in of_answers.items() if one.answers in self.pipelines
            ]
            self._check_best(settings.training.best_by, of_answers)

    def __call__(self) -> dict[str, float]:
        with averaged_weights(self.learner), self.learner.rounded_weights():
            results = self.learner.evaluate(
                self.batches, steps=self.steps, verbose=0, return_dict=True
            )
            if self.examples:
                results |= self.workers.from_chief(self._measure, self.of_answers)
        return results

    def _check_best(self, best_by, of_answers):
        """Raises a `ValueError` if the model has no answers that `best_by` measures."""
        if best_by in of_answers and best_by not in self.of_answers:
            raise ValueError(
                f"`training.best_by` must be a metric of answers that the model has, one of "
                f"{', '.join(self.of_answers)}. Received: {best_by!r}."
            )

    def _measure(self):
        return {
            f"{begin}{name}": value
            for begin, pipeline in self.pipelines.items()
            for name, value in self.task.measure(pipeline, *self.examples).items()
        }
