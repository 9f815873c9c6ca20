"""One call of `train`: from the newest checkpoint to the trained model."""

import fractions
import math
import time
from typing import Any

from keras_transformer.training.changes import describe_changes, describe_derived, describe_rate
from keras_transformer.training.data.shards import cut_batches
from keras_transformer.training.data.stream import endless_batches
from keras_transformer.training.factory import make_learner, model_config
from keras_transformer.training.inputs import stores_of, take_survey, take_tokenizers
from keras_transformer.training.loop.best import Best
from keras_transformer.training.loop.callbacks import (
    Interrupts,
    Logs,
    Saving,
    Validation,
)
from keras_transformer.training.loop.checkpoint import Checkpoints, refuse_infinite
from keras_transformer.training.loop.curve import Curve
from keras_transformer.training.loop.final import write_model
from keras_transformer.training.loop.history import History, columns_of
from keras_transformer.training.loop.messages import (
    duration,
    introduction,
    listed,
    not_learned,
    say,
)
from keras_transformer.training.loop.progress import Progress, Stopwatch
from keras_transformer.training.loop.start import Start
from keras_transformer.training.loop.vectors import described, give_vectors
from keras_transformer.training.settings.derived import derive
from keras_transformer.training.tasks import training_class
from keras_transformer.training.validator import Validator


class Session:
    """State of one call of `train`: its objects and its progress.

    Args:
        run: The `Run` to train.
        settings: The `Settings` of the run. The attribute `settings` also has the values that
            depend on the data.
        data: The `Source` of the settings.
        console: The console for the progress.
        workers: The `Workers` that train together.
        start: The `Start` whose vocabulary and weights a new run starts from, or `None`.
        check: Function that is called before anything is saved, and raises if another process has
            taken over the run.
        make_model: See `make_learner`. Such a model cannot be written by `finish`; `load_final`
            gives it its final weights.
    """

    def __init__(
        self, run, settings, data, console, workers, start=None, check=lambda: None, make_model=None
    ):
        self.workers = workers
        self.run = run
        self.settings = settings
        self.console = console
        self.data = data
        self.task = settings.task.get()
        metadata = data.metadata()
        stores = stores_of(run, settings, console)
        survey = workers.chief_first(lambda: take_survey(stores, self.task, data, metadata))
        for sentence in survey.sentences:  # typing errors show before anything is learned
            say(console, sentence)
        self.fields = {**metadata, **survey.fields}
        vocabulary_of = start if workers.is_chief else None  # the others read the chief's files
        tokenizers = workers.chief_first(
            lambda: take_tokenizers(run, settings, data, console, vocabulary_of)
        )
        config = run.configure(model_config(settings, tokenizers, **self.fields))
        packing = {"packed": True} if getattr(settings.data, "packed", False) else {}
        self.training = training_class(self.task)(tokenizers, config, **packing)
        sampled = bool(settings.training.subword_sampling)
        of_train_split = self.training.of_train_split(settings.data)
        self.corpus = workers.chief_first(
            lambda: of_train_split.corpus(data, "train", settings.data, stores, sampled)
        )
        self.epochs = of_train_split.epochs(self.corpus, settings)
        self.settings = settings = self._derive(settings, config.d_model)
        with workers.strategy.scope():
            self.learner = make_learner(settings, self.training, make_model)
        validation = workers.chief_first(
            lambda: self.training.corpus(data, "validation", settings.data, stores)
        )
        self.validator = Validator(self.learner, self.training, data, validation, settings, workers)
        options = settings.training
        self.checkpoints = Checkpoints(run.checkpoints, options.keep_checkpoints)
        self.best = Best(self.task.metrics, options.best_by, options.patience)
        columns = columns_of(self.task, options)
        self.history = History(run.history if workers.is_chief else None, columns)
        self.start, self.check = start, check
        self.update, self.seconds = 0, 0.0
        self.logs: Any = None
        self.validation, self.validated = None, 0  # results of the last validation, and its update
        self.first_loss = None  # of the first update
        self.lineage = None  # the run whose weights this one started from
        self.vectors = None  # metadata of word vectors
        self.curve = Curve(run, self.history, self.task, console, draws=workers.is_chief)
        say(console, introduction(self))
        if self.validator.examples and (doubt := self.task.doubt(self.validator.examples[-1])):
            say(console, f"Warning: {doubt}.")

    def _derive(self, settings, d_model):
        """Fills in the settings that depend on the data, shows their values and returns all."""
        tokenizers = self.training.tokenizers
        size = tokenizers.source.vocab_size if tokenizers else None
        steps = math.ceil(self.epochs.steps / settings.training.accumulate)
        derived = derive(settings, steps, d_model, size)
        if chosen := describe_derived(settings, derived):
            say(self.console, chosen)
        say(self.console, describe_rate(derived, d_model))
        return derived

    def restore(self, before=None) -> None:
        """Restores the newest checkpoint that is not damaged, if there is one.

        Args:
            before: The previous `Settings` of the run, if it was trained.
        """

        def damaged(path, reason):
            say(self.console, f"{path} is damaged ({reason}) and ignored.")

        state = self.checkpoints.restore(self.variables(), damaged)
        self.workers.require_same(
            training_data=int(self.corpus.fingerprint, 16),
            checkpoint=state["update"] if state else 0,
        )
        if state is None:
            self._begin()
            return
        if state["corpus"] != self._corpus_metadata():
            raise ValueError(
                f"the training data of {self.run.path} have changed since training began: "
                f"{state['corpus']} then, {self._corpus_metadata()} now (examples, tokens of each "
                "text, checksum). Restore them or choose another folder."
            )
        self.update, self.seconds = state["update"], state["seconds"]
        self.validation = state["validation"]
        self.validated = state.get("validated", self.update)
        self.lineage, self.vectors = state.get("lineage"), state.get("vectors")
        self.first_loss = state.get("first_loss")
        self._restore_best(state)
        self.history.restore(self.update)
        for line in describe_changes(before, self.settings, self.update) if before else ():
            say(self.console, line)
        total = self.settings.training.updates
        say(self.console, f"Resuming after update {self.update:,} of {total:,}.")

    def _begin(self):
        """Loads initial weights from a file of vectors or from another run, if one is named."""
        if self.run.model.exists():
            raise ValueError(
                f"{self.run.path} has a model, but no checkpoint from which training could "
                f'resume. Start another run from its weights, [model] start_from = "{self.run.path}'
                f'", or remove {self.run.model} to train from the beginning.'
            )
        self.history.restore(0)
        if self.settings.model.vectors is not None:
            self.vectors = give_vectors(self.learner, self.training.tokenizers, self.settings.model)
            say(self.console, described(self.vectors))
        if self.settings.model.start_from is None:
            return
        start = self.start or Start(self.settings)
        copied = start.give_weights(self.learner.model)
        self.lineage, self.start = start.metadata, None
        for line in start.describe(copied):
            say(self.console, line)

    def _restore_best(self, state):
        """Restores the best validation, if it is still measured in the same way."""
        if state.get("measure", self._criterion()) != self._criterion():
            if self.best.by is not None:
                text = "The search for the best validation starts again: its metric has changed."
                say(self.console, text)
            return
        self.best.restore(state["best"])
        if self.best.update is not None and not self.checkpoints.path(self.best.update).exists():
            self.best.forget()  # it was removed for a better one, which is damaged now

    def _criterion(self):
        """Returns the metric of the best validation, and the number of answers it depends on."""
        options = self.settings.training
        by = options.best_by
        of_answers = by is not None and self.task.metrics[by].of_answers
        return [by, options.validate_sentences if of_answers else None]

    def fit(self, callbacks=()) -> None:
        """Trains until the last update, early stopping or Ctrl-C."""
        options = self.settings.training
        start, total = self.update, options.updates
        if start == total or self.best.exhausted:  # interrupted before `finish` was done
            if self.validated != start:  # `updates` was lowered, to end here
                self._measure(start)
            return
        batches = endless_batches(self.epochs, skip=start, accumulate=options.accumulate)
        batches = cut_batches(batches, self.workers.strategy, self.training.pad_id)
        stopwatch = Stopwatch()
        directory = self.run.logs if self.workers.is_chief else None
        self.logs = Logs(
            start, total, directory, options.log_every, self.history, stopwatch, self.first_loss
        )
        validation = Validation(start, total, options.validate_every, self._validate)
        interrupts = Interrupts(start, total, self.workers.any)
        saving = self._saving(start)
        pauses = [validation, saving]
        progress = Progress(start, total, self.console, stopwatch, pauses, options.progress_seconds)
        shown = [stopwatch, progress, self.logs]
        try:
            with interrupts:
                self.learner.fit(
                    batches,
                    steps_per_epoch=total - start,
                    shuffle=False,
                    verbose=0,
                    callbacks=[*shown, validation, *callbacks, interrupts, saving],
                )
        finally:
            progress.close()
        self._explain_stop(total, interrupts.received)

    def finish(self) -> dict[str, Any]:
        """Writes the model and the metrics of the run; returns the metrics."""
        self.check()
        metrics = write_model(self)
        self.curve.draw()
        if self.logs is not None and (warning := not_learned(self.logs)):
            say(self.console, warning)
        text = f"Trained in {duration(self.seconds)}. The model is {self.run.model}"
        say(self.console, f"{text}, from update {metrics['model_update']:,}.")
        return metrics

    def _explain_stop(self, total, signal):
        """Shows why `fit` ended before the last update, if it did."""
        if self.best.exhausted and self.update < total:
            text = f"Stopped early after update {self.update:,} of {total:,}"
            say(self.console, f"{text}: {self.best.reason()}.")
        elif self.update < total:
            self.curve.draw()
            say(
                self.console,
                f"Stopped after update {self.update:,} of {total:,}; everything is saved. "
                "The same command resumes from here.",
            )
            raise KeyboardInterrupt(*[signal] if signal else [])

    def _corpus_metadata(self):
        corpus = self.corpus
        return [corpus.size, *corpus.tokens, corpus.fingerprint]

    def variables(self) -> list:
        """Returns all variables of the run: weights, labels seen, dropout seeds, optimizer."""
        return [*self.learner.variables, *self.learner.optimizer.variables]

    def _saving(self, start):
        options = self.settings.training
        return Saving(
            start,
            options.updates,
            self._checkpoint_interval(),
            self._saver(),
            last_good=self.checkpoints.last_good,
            wanted=lambda update: update == self.best.update,
        )

    def _checkpoint_interval(self):
        """Returns the number of updates between two checkpoints, a fraction if epochs have one."""
        options = self.settings.training
        if options.checkpoint_epochs is None:
            return options.checkpoint_every
        batches = self.epochs.steps * options.checkpoint_epochs
        return fractions.Fraction(batches, options.accumulate)

    def _saver(self):
        """Returns a function that saves a checkpoint; starts measuring the time of this call."""
        begin, earlier = time.monotonic(), self.seconds

        def save(update):
            variables = self.variables()
            refuse_infinite(variables, update, self.checkpoints.last_good)
            self.history.flush()
            seconds = earlier + time.monotonic() - begin
            state = {
                "update": update,
                "seconds": seconds,
                "corpus": self._corpus_metadata(),
                "validation": self.validation,
                "validated": self.validated,
                "best": self.best.state(),
                "measure": self._criterion(),
                "lineage": self.lineage,
                "first_loss": self.logs.first_loss,
                "vectors": self.vectors,
                "fields": self.fields,
            }
            if self.workers.is_chief:
                self.check()
                self.checkpoints.save(update, variables, state, best=self.best.update)
            self.update, self.seconds = update, seconds

        return save

    def _validate(self, update):
        """Validates the model, for the logs, the history and the best validation."""
        results = self._measure(update)
        self.logs.write(update, results, prefix="validation")
        self.curve.follow()
        self.best.see(update, results)
        if self.best.exhausted:
            self.learner.stop_training = True

    def _measure(self, update):
        """Validates the model and shows the results."""
        results = self.validator()
        say(self.console, f"validation after update {update:,}: {listed(results)}")
        self.validation, self.validated = results, update
        return results
