"""Inputs of a training: the vocabulary of its run, and the batches of its epochs."""

from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.training.data.corpus import strings
from keras_transformer.training.data.sampling import SubwordSampler
from keras_transformer.training.loop.messages import say
from keras_transformer.training.vocabulary import learn_vocabulary


def take_tokenizers(run, settings, data, console, start=None):
    """Returns the run's `Tokenizers`; without a vocabulary, writes one first.

    Args:
        run: The `Run`.
        settings: Its `Settings`.
        data: The `Source` of its settings, from whose training split a vocabulary is learned.
        console: Where that is announced.
        start: The `Start` whose vocabulary is taken instead, or `None`.
    """
    if start is not None:
        run.write_tokenizers(start.tokenizers)
    elif not run.vocabulary():
        run.write_tokenizers(_learn_tokenizers(settings, data, console))
    return run.load_tokenizers()


def _learn_tokenizers(settings, data, console):
    task, settings = settings.task.get(), settings.vocabulary

    def learn(columns):
        texts = strings(data.rows("train"), sorted(columns))
        return Tokenizer(learn_vocabulary(texts, settings))

    if settings.shared:
        say(console, f"Learning a vocabulary of {settings.size:,} pieces.")
        return Tokenizers.of(learn({*task.source_columns, *task.target_columns}))
    say(console, f"Learning two vocabularies of {settings.size:,} pieces.")
    return Tokenizers.of([learn(task.source_columns), learn(task.target_columns)])


def make_epochs(corpus, settings, data, training):
    """Returns the `Epochs` of a training: of the usual pieces, or of others in each epoch.

    Args:
        corpus: The `TokenizedCorpus`.
        settings: The `Settings` of the run.
        data: The `Source` that the corpus is of.
        training: The `Training` of its task.
    """
    options, size = settings.training, settings.data.batch_tokens
    if not options.subword_sampling:
        return corpus.epochs(size, options.seed)
    sampler = SubwordSampler(
        corpus,
        data.rows("train"),
        training,
        settings.data.max_length,
        options.subword_sampling,
        options.seed,
        settings.data.cut_source,
    )
    return sampler.epochs(size)
