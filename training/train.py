"""From a configuration to a trained model, in one call that can be repeated until it is done."""

import json
import time
import zlib

import keras
import rich.console
import tensorflow as tf

from keras_transformer import Transformer
from keras_transformer.atomic import replacing, write_bytes
from keras_transformer.run import Run
from keras_transformer.tokenizer import Tokenizer
from keras_transformer.translator import Translator

from .callbacks import Interrupts, Logs, Progress, Saving, Validation, duration
from .checkpoint import Checkpoints
from .data import TokenizedCorpus, parallel_data, sentences
from .evaluate import read_pairs, score
from .learner import Learner
from .loss import LabelSmoothedCrossEntropy
from .pieces import cut_batches
from .precision import dtype_policy
from .schedule import make_schedule
from .settings import SettingsError, differences, load_settings, save_settings
from .stream import endless_batches
from .vocabulary import learn_vocabulary
from .workers import Workers


def train(settings, run_dir, *, strategy=None, console=None, callbacks=()):
    """Trains a model, or goes on where an earlier call stopped.

    What belongs to the run is kept in its folder: the settings, the vocabulary, checkpoints,
    TensorBoard logs and at the end the model and `metrics.json`. A call that is interrupted, by
    Ctrl-C or by a power cut, is repeated; on a CPU with the same number of threads it ends with the
    very weights that an uninterrupted call would have given.

    Under a strategy every replica gets its rows of each batch, so `batch_tokens` is what one device
    would see, and an update is the same but for rounding and for dropout, whose masks the replicas
    share. A run may be continued under another strategy. Several workers share the folder of the
    run; worker 0, the chief, writes it and speaks for all. If one is lost, all of them end with an
    error; started again, all of them go on from the newest checkpoint.

    Args:
        settings: A `Settings`.
        run_dir: Folder of the run; created if missing.
        strategy: A strategy from `make_strategy`. Default: one device.
        console: The `rich.console.Console` that progress is shown on. Default: stderr.
        callbacks: More Keras callbacks for `fit`.

    Returns:
        The content of `metrics.json`: `parameters`, `updates`, `tokens_seen` (real target tokens),
        `train_seconds` (of all calls together) and `validation`.

    Raises:
        SettingsError: If the folder holds a run with other settings.
        ValueError: If the settings do not fit the strategy, or the workers' data differ.
        ConnectionError: If another worker is lost. Leave the process with `os._exit` then: in an
            orderly shutdown TensorFlow may wait for that worker for ever.
        KeyboardInterrupt: After Ctrl-C, on any worker, when the update is finished and saved.
    """
    run = Run(run_dir)
    workers = Workers(strategy or tf.distribute.get_strategy())
    console = console or rich.console.Console(stderr=True)
    if not workers.is_chief:
        console = rich.console.Console(quiet=True)
    with workers.watch():
        workers.require_same(settings=zlib.crc32(settings.model_dump_json().encode()))
        workers.chief_first(lambda: _claim(run, settings))
        metrics = _finished(run, settings)
        if metrics is not None:
            total = settings.training.updates
            _say(console, f"{run.path} is finished: all {total:,} updates are done.")
            return metrics
        session = Session(run, settings, console, workers)
        session.restore()
        session.fit(callbacks)
        session.validate()
        # What the chief has written the others find.
        return workers.chief_first(lambda: _finished(run, settings) or session.finish())


class Session:
    """One call of `train`: everything that is made for it, and how far the training is."""

    def __init__(self, run, settings, console, workers):
        self.workers = workers
        self.run = run
        self.settings = settings
        self.console = console
        self.data = workers.chief_first(lambda: parallel_data(settings.data))
        self.tokenizer = workers.chief_first(lambda: _tokenizer(run, settings, self.data, console))
        self.corpus = self._tokenized("train")
        with workers.strategy.scope():
            self.learner = make_learner(settings, self.tokenizer)
        self.checkpoints = Checkpoints(run.checkpoints, settings.training.keep_checkpoints)
        self.update, self.seconds = 0, 0.0
        self.logs = None
        self.validation = None
        _say(console, _introduction(self))

    def restore(self):
        """Goes back to the newest checkpoint that is whole, if there is one."""

        def damaged(path, reason):
            _say(self.console, f"{path} is damaged ({reason}) and left out.")

        state = self.checkpoints.restore(self._variables(), damaged)
        self.workers.require_same(
            training_data=int(self.corpus.fingerprint, 16),
            checkpoint=state["update"] if state else 0,
        )
        if state is None:
            return
        if state["corpus"] != self._corpus_size():
            raise ValueError(
                f"the training data of {self.run.path} has changed since the training began: "
                f"{state['corpus']} then, {self._corpus_size()} now (pairs, source and target "
                "tokens). Restore it or choose another folder."
            )
        self.update, self.seconds = state["update"], state["seconds"]
        total = self.settings.training.updates
        _say(self.console, f"Continuing after update {self.update:,} of {total:,}.")

    def fit(self, callbacks=()):
        """Trains until the last update, or until Ctrl-C."""
        options = self.settings.training
        start, total = self.update, options.updates
        if start == total:  # stopped between the last checkpoint and `finish`
            return
        batches = endless_batches(
            self.corpus, self.settings.data.batch_tokens, seed=options.seed, skip=start
        )
        batches = self._distributed(batches)
        progress = Progress(start, total, self.console, options.progress_seconds)
        directory = self.run.logs if self.workers.is_chief else None
        self.logs = Logs(start, total, directory, options.log_every)
        validation = Validation(start, total, options.validate_every, self._validator())
        interrupts = Interrupts(start, total, self.workers.any)
        saving = Saving(start, total, options.checkpoint_every, self._saver())
        try:
            with interrupts:
                self.learner.fit(
                    batches,
                    steps_per_epoch=total - start,
                    shuffle=False,
                    verbose=0,
                    callbacks=[progress, self.logs, validation, *callbacks, interrupts, saving],
                )
        finally:
            progress.close()
        if self.update < total:
            _say(
                self.console,
                f"Stopped after update {self.update:,} of {total:,}; everything is saved. "
                "The same command continues from here.",
            )
            raise KeyboardInterrupt

    def validate(self):
        """Measures the model on the validation split, unless `fit` did after the last update."""
        if self.validation is None:
            self._validator()(self.update)

    def finish(self):
        """Writes the model and the figures of the training; returns the figures."""
        with replacing(self.run.model) as temporary:
            _in_float32(self.learner.transformer).save(temporary)
        figures = {
            "parameters": self.learner.transformer.count_params(),
            "updates": self.update,
            "tokens_seen": int(self.learner.tokens_seen.numpy()),
            "train_seconds": round(self.seconds, 1),
            "validation": self.validation,
        }
        self.run.update_metrics(**figures)
        _say(self.console, f"Trained in {duration(self.seconds)}. The model is {self.run.model}.")
        return figures

    def _tokenized(self, split):
        pairs = self.data.pairs(split)
        return TokenizedCorpus.from_pairs(pairs, self.tokenizer, self.settings.data.max_length)

    def _distributed(self, batches):
        return cut_batches(batches, self.workers.strategy, self.tokenizer.pad_id)

    def _corpus_size(self):
        return [self.corpus.size, self.corpus.source_tokens, self.corpus.target_tokens]

    def _variables(self):
        """All that training changes: weights, tokens seen, state of the dropout, optimizer."""
        return [*self.learner.variables, *self.learner.optimizer.variables]

    def _saver(self):
        """A function that saves a checkpoint; the clock of this call starts here."""
        begin, earlier = time.monotonic(), self.seconds

        def save(update):
            self.update, self.seconds = update, earlier + time.monotonic() - begin
            state = {"update": update, "seconds": self.seconds, "corpus": self._corpus_size()}
            if self.workers.is_chief:
                self.checkpoints.save(update, self._variables(), state)

        return save

    def _validator(self):
        """A function that measures the model on the validation split: all workers in step.

        Only the chief translates, meanwhile the others wait.
        """
        corpus, size = self._tokenized("validation"), self.settings.data.batch_tokens
        batches, steps = (
            self._distributed(corpus.batches(size).cache().repeat()),
            corpus.steps(size),
        )
        limit = self.settings.training.validate_sentences
        sources, references = read_pairs(self.data, "validation", limit)
        translator = Translator(self.learner.transformer, self.tokenizer)

        def look(update):
            figures = self.learner.evaluate(batches, steps=steps, verbose=0, return_dict=True)
            if sources and self.workers.is_chief:
                scores = score(translator(sources), references)
                figures |= {name: scores[name] for name in ("bleu", "exact_match")}
            _say(self.console, f"validation after update {update:,}: {_listed(figures)}")
            if self.logs is not None:
                self.logs.write(update, figures, prefix="validation")
            self.validation = figures

        return look


def _in_float32(model):
    """The model with the policy float32, so that it says the same on every machine and exported.

    Its weights are float32 in any case; only the arithmetic of the training was in 16 bits.
    """
    copy = Transformer(model.config, dtype="float32")
    copy.set_weights(model.get_weights())
    return copy


def make_learner(settings, tokenizer):
    """Returns the model to train, compiled, with the optimizer's variables made.

    The same settings and vocabulary give the same weights every time.
    """
    keras.utils.set_random_seed(settings.training.seed)
    config = settings.model.config(
        vocab_size=tokenizer.vocab_size,
        pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
    )
    options, adam = settings.training, settings.optimizer
    policy = dtype_policy(options.precision)
    transformer = Transformer(config, dtype=policy)
    learner = Learner(transformer, config.pad_id, dtype=policy)
    learner.compile(
        keras.optimizers.Adam(
            make_schedule(settings.schedule, config.d_model, options.updates),
            beta_1=adam.beta_1,
            beta_2=adam.beta_2,
            epsilon=adam.epsilon,
            global_clipnorm=adam.clip_norm,
        ),
        LabelSmoothedCrossEntropy(options.label_smoothing, config.pad_id),
        jit_compile=_jit_compile(options),
    )
    learner.optimizer.build(learner.trainable_variables)
    return learner


def _jit_compile(options):
    """Whether XLA is to compile the update; on a TPU it does so in any case."""
    strategy = tf.distribute.get_strategy()
    if not options.jit_compile or isinstance(strategy, tf.distribute.TPUStrategy):
        return False
    if tf.distribute.has_strategy():
        raise ValueError(
            "`training.jit_compile` works on one device or on a TPU: XLA cannot compile what "
            f"several replicas do together. Received: {type(strategy).__name__}; set it to false."
        )
    return True


def _claim(run, settings):
    """Keeps the settings in the run, or refuses a run that was trained with others."""
    changed = differences(load_settings(run.config), settings) if run.config.exists() else None
    if changed == []:
        return
    if changed and (run.model.exists() or Checkpoints(run.checkpoints).paths()):
        raise SettingsError(
            f"{run.path} was begun with other settings: {', '.join(changed)} changed. "
            f"{run.config} has those it was begun with; or choose another folder."
        )
    run.path.mkdir(parents=True, exist_ok=True)
    run.tokenizer.unlink(missing_ok=True)  # of settings under which nothing was trained yet
    with replacing(run.config) as temporary:
        save_settings(settings, temporary)


def _finished(run, settings):
    """The figures of a training that is done, or `None`."""
    if not (run.model.exists() and run.metrics.exists()):
        return None
    metrics = json.loads(run.metrics.read_text(encoding="utf-8"))
    return metrics if metrics.get("updates") == settings.training.updates else None


def _tokenizer(run, settings, data, console):
    """The run's vocabulary, learned from the training split if the run has none yet."""
    if not run.tokenizer.exists():
        _say(console, f"Learning a vocabulary of {settings.vocabulary.size:,} pieces.")
        model = learn_vocabulary(sentences(data.pairs("train")), settings.vocabulary)
        write_bytes(run.tokenizer, model)
    return Tokenizer.load(run.tokenizer)


def _introduction(session):
    corpus = session.corpus
    steps = corpus.steps(session.settings.data.batch_tokens)
    left_out = f", {corpus.too_long:,} too long ones left out" if corpus.too_long else ""
    return (
        f"{session.learner.transformer.count_params():,} parameters; {corpus.size:,} pairs"
        f"{left_out}; {steps:,} updates see all of them once."
    )


def _listed(figures):
    return ", ".join(f"{name} {value:.4g}" for name, value in figures.items())


def _say(console, text):
    console.print(text, soft_wrap=True, highlight=False, markup=False)
