"""The vocabulary of a training's run."""

from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.training.data.corpus import strings
from keras_transformer.training.loop.messages import say
from keras_transformer.training.vocabulary import learn_vocabulary


def take_tokenizers(run, settings, data, console, start=None):
    """Returns the run's `Tokenizers`; without a vocabulary, writes one first.

    A task that reads no text has none: `None`.

    Args:
        run: The `Run`.
        settings: Its `Settings`.
        data: The `Source` of its settings, from whose training split a vocabulary is learned.
        console: Where that is announced.
        start: The `Start` whose vocabulary is taken instead, or `None`.
    """
    if not settings.task.get().reads_text:
        return None
    if start is not None:
        run.write_tokenizers(start.tokenizers)
        run.write_origin(start.origin)
        run.write_search(start.search)
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
