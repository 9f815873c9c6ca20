"""Validation: the figures of a learner on the validation split."""

from keras_transformer.training.data.shards import cut_batches
from keras_transformer.training.evaluate import read_columns
from keras_transformer.training.loop.moving_average import averaged_weights


class Validator:
    """Measures a learner, with the average of its weights if it keeps one.

    Under a strategy all workers measure in step; only the chief answers inputs, and sends
    the figures to the others.

    Args:
        learner: A compiled `Learner`.
        training: The `Training` of its task.
        data: A `Source` with the split `"validation"`.
        corpus: The `Corpus` of that split.
        settings: The `Settings` of the run.
        workers: The `Workers` that train together.

    Call arguments: none.

    Returns:
        Dictionary of the task's figures: of `loss` and the learner's metrics over all examples of
        the split (of texts, those no longer than `data.max_length`), and of what is measured of
        answers over the first `validate_sentences`, if there are any.
    """

    def __init__(self, learner, training, data, corpus, settings, workers):
        self.learner = learner
        size = settings.data.size_of_batch
        batches = corpus.batches(size).cache().repeat()
        self.batches = cut_batches(batches, workers.strategy, training.pad_id)
        self.steps = corpus.steps(size)
        self.workers = workers
        self.task = settings.task.get()
        self.of_texts = [name for name, figure in self.task.metrics.items() if figure.of_texts]
        limit = settings.training.validate_sentences
        self.examples = ()
        if self.of_texts and limit:
            columns = read_columns(data, self.task, "validation", limit)
            self.examples = columns[0], columns[-1]
            self.pipeline = self.task.pipeline_class()(learner.model, training.tokenizers)

    def __call__(self):
        with averaged_weights(self.learner):
            figures = self.learner.evaluate(
                self.batches, steps=self.steps, verbose=0, return_dict=True
            )
            if self.examples:
                figures |= self.workers.from_chief(self._measure, self.of_texts)
        return figures

    def _measure(self):
        return self.task.measure(self.pipeline, *self.examples)
