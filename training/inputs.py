"""Inputs of `train`: the vocabulary, the stores and a survey of the data."""

import functools
import itertools
import pathlib

from keras_transformer.tasks.examples import errors_name
from keras_transformer.tasks.task import Survey
from keras_transformer.text.lists import ListColumn
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.text.tokenizers.sentencepiece import MASK, SentencePieceTokenizer
from keras_transformer.training.data.encoding import BATCH, check_columns
from keras_transformer.training.data.store import Stores
from keras_transformer.training.loop.messages import say
from keras_transformer.training.settings.derived import VOCABULARY
from keras_transformer.training.settings.taken_vocabulary import (
    describe,
    read_rules,
    read_tokenizers,
    refuse_conflicts,
)
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.tasks import training_class
from keras_transformer.training.vocabulary import (
    MAX_SENTENCES,
    UnfitSize,
    learn_vocabulary,
    strings,
)

TEXTS = MAX_SENTENCES  # maximum number of texts from which a vocabulary is learned
ATTEMPTS = 4  # sizes to try: one of two vocabularies may need more tokens than the other can have


def stores_of(run, settings, console=None) -> Stores:
    """Returns the `Stores` of a run.

    Args:
        run: The `Run`.
        settings: The `Settings` of the run.
        console: The console that shows the progress of writing a store.
    """
    shared = settings.data.store
    return Stores(pathlib.Path(shared or run.store), console, shared is not None)


def is_surveyed(stores, task, data) -> bool:
    """Returns `True` if the data were checked and surveyed and have not changed since."""
    return stores.recall(_survey_key(task, data)) is not None


def take_survey(stores, task, data, metadata) -> Survey:
    """Returns the `Survey` of the training split, which is read only on the first call.

    Args:
        stores: The `Stores` of the run, which keep the survey.
        task: The `Task`.
        data: The `Source`.
        metadata: Fields of the model's configuration that the source determines, a dictionary.
    """
    key = _survey_key(task, data)
    known = stores.recall(key)
    if known is None:
        with errors_name(functools.partial(data.place, "train")):
            survey = task.survey(data.rows("train"), metadata)
        _check_labels(task, data, survey.fields.get("labels", ()))
        survey = survey._replace(sentences=(*_left_out(data, task), *survey.sentences))
        stores.remember(key, {"fields": survey.fields, "sentences": survey.sentences})
        return survey
    fields = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in known["fields"].items()
    }
    return Survey(fields, tuple(known["sentences"]))


def _check_labels(task, data, names):
    """Raises a `ValueError` for a label that does not occur in the training data."""
    fields = training_class(task).label_fields(names)
    for split in data.splits if fields else ():
        if split == "train":
            continue
        before, place = 0, functools.partial(data.place, split)
        for batch in data.text_rows(split).batch(BATCH):
            columns = dict(zip(task.columns, batch, strict=True))
            encoded = {name: field.encode(columns[name]) for name, field in fields.items()}
            check_columns(fields, encoded, columns, place, before)
            before += len(batch[0])


def _left_out(data, task):
    """Returns a sentence for each split from which examples with an empty column are left out."""
    columns = [name for name in task.columns if not isinstance(name, ListColumn)]
    sentences = []
    for split in data.splits:
        if empty := data.left_out(split):
            total = empty + (data.count(split) or 0)
            sentences.append(
                f"Left out of the {split} split: {empty:,} of {total:,} examples, in which the "
                f"{' or the '.join(columns)} is empty."
            )
    return sentences


def _survey_key(task, data):
    identities = {split: data.identity(split) for split in data.splits}
    return {"survey": task.name, "columns": list(task.columns), "data": identities}


def take_tokenizers(run, settings, data, console, start=None) -> Tokenizers | None:
    """Returns the run's `Tokenizers`; learns or copies a vocabulary if the run has none.

    Args:
        run: The `Run`.
        settings: The `Settings` of the run.
        data: The `Source`, from whose training split a vocabulary is learned.
        console: The console that shows what is learned or copied.
        start: The `Start` whose vocabulary is used instead, or `None`.

    Returns:
        The `Tokenizers`. `None` for a task without text.

    Raises:
        ValueError: If no vocabulary can be learned or copied, or the tokenizers do not suit the
            data.
    """
    if not settings.task.get().texts:
        return None
    if start is not None:
        _check_directions(settings, start.tokenizers)
        run.write_tokenizers(start.tokenizers)
        run.inherit(start.run)
        if start.task == settings.task.kind:
            run.write_prompts(start.run.read_prompts())
    elif not run.vocabulary():
        places = settings.vocabulary.places
        make = _learn_tokenizers if places is None else _copy_tokenizers
        tokenizers = make(settings, data, console)
        _check_directions(settings, tokenizers)
        run.write_tokenizers(tokenizers)
        run.write_generation(None if places is None else read_rules(places))
    return run.load_tokenizers()


def _check_directions(settings, tokenizers):
    """Raises a `ValueError` if pairs cannot be exchanged because the sides differ in their tokens.

    A multilingual model has one vocabulary, but puts tokens of languages in front of its texts.
    """
    if getattr(settings.data, "bidirectional", False) and not tokenizers.shared:
        raise ValueError(
            "`data.bidirectional` needs the same tokens for source and target: those of this "
            "vocabulary differ, as in a multilingual model, which puts the tokens of its two "
            "languages in front of a source. Exchanged pairs would have the wrong ones."
        )


def _copy_tokenizers(settings, data, console):
    """Reads the tokenizers that `vocabulary.from` names, and checks them against the settings."""
    places = settings.vocabulary.places
    tokenizers = read_tokenizers(places)
    refuse_conflicts(settings.vocabulary.description(), describe(places, load_settings))
    sizes = " and ".join(f"{side.vocab_size:,}" for side in dict.fromkeys(tokenizers))
    say(console, f"Using the vocabulary of {' and '.join(places)}: {sizes} tokens.")
    return tokenizers


def _learn_tokenizers(settings, data, console):
    """Learns vocabularies of the configured size, or of a size that the text allows."""
    task, settings = settings.task.get(), settings.vocabulary
    sides = list(task.texts.values())
    if settings.shared:
        sides = [dict.fromkeys(itertools.chain(*sides))]

    def learn(columns, size):
        places = sorted(task.columns.index(name) for name in columns)
        most = max(1, TEXTS // len(places))
        texts = strings(data.text_rows("train"), places, data.count("train"), most)
        section = settings.model_copy(update={"size": size})
        return SentencePieceTokenizer(
            learn_vocabulary(texts, section, MASK if task.needs_mask else None)
        )

    size = settings.size or VOCABULARY
    what = "a vocabulary" if settings.shared else "two vocabularies"
    say(console, f"Learning {what} of {size:,} tokens{_sample(data, sides)}.")
    for _ in range(ATTEMPTS):
        try:
            tokenizers = [learn(columns, size) for columns in sides]
        except UnfitSize as error:
            if settings.size is not None:
                raise
            change = "many" if error.better < size else "few"
            say(
                console,
                f"{size:,} tokens are too {change} for this text: learning {error.better:,} "
                "instead.",
            )
            size, problem = error.better, error
            continue
        return Tokenizers.of(tokenizers if len(tokenizers) == 2 else tokenizers[0])
    raise ValueError(
        "no vocabulary size fits both source and target of the training data. Set "
        "`vocabulary.shared = true` or lower `vocabulary.character_coverage`. The last error: "
        f"{problem}"
    )


def _sample(data, sides):
    """Returns the end of a message that names the size of the sample, if not all texts are used."""
    total = data.count("train")
    most = min(max(1, TEXTS // len(columns)) for columns in sides)
    if total is None or total <= most:
        return ""
    return f" from a sample of {most:,} of {total:,} examples"
