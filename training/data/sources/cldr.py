"""The phrases of `phrases.py` as a TensorFlow Dataset, generated without a download."""

import difflib
import functools

import babel
import tensorflow_datasets as tfds
from babel import localedata

from keras_transformer.training.data.sources.generated import held_out, open_generated
from keras_transformer.training.data.sources.phrases import PhraseBook
from keras_transformer.training.data.sources.tfds import TfdsData


def _locale_name(name, argument):
    """Returns the name of a locale in CLDR's spelling: `pt-br` becomes `pt_BR`."""
    try:
        return str(babel.Locale.parse(name, sep="-" if "-" in name else "_"))
    except (babel.UnknownLocaleError, ValueError, TypeError) as error:
        known = localedata.locale_identifiers()
        close = difflib.get_close_matches(str(name).replace("-", "_"), known, n=3, cutoff=0.4)
        examples = dict.fromkeys([*close, "en", "de", "fr", "es", "pt_BR", "zh_Hant", "ja", "ar"])
        raise ValueError(
            f"`{argument}` must be a locale of CLDR, such as {', '.join(examples)}. "
            f"Received: {argument}={name!r}."
        ) from error


class CldrConfig(tfds.core.BuilderConfig):
    """Choice of phrases: two locales, the number of pairs and the random seed.

    The name contains all of them and the version of Babel, from whose data the phrases are made. So
    different phrases never have the same name.
    """

    def __init__(self, source_language="en", target_language="de", examples=130_000, seed=1):
        self.source_language = _locale_name(source_language, "source_language")
        self.target_language = _locale_name(target_language, "target_language")
        if self.source_language == self.target_language:
            raise ValueError(
                "`source_language` and `target_language` must differ. "
                f"Received: {source_language!r} and {target_language!r}."
            )
        self.examples, self.seed = examples, seed
        super().__init__(
            name=f"{self.source_language}-{self.target_language}-{examples}-seed{seed}"
            f"-babel{babel.__version__}",
            description=f"{self.source_language} to {self.target_language}, {examples} pairs.",
        )


class CldrPhrases(tfds.core.GeneratorBasedBuilder):
    """Dates, times, numbers, money, measures, durations and lists of names, in two languages.

    Babel renders each phrase from Unicode's locale data, CLDR. Every source text has one target and
    is in one split. `validation` and `test` contain 2,000 pairs each, or a tenth of the examples if
    that is less; `train` contains the others.
    """

    VERSION = tfds.core.Version("1.0.0")

    def __init__(self, config=None, **options):
        super().__init__(config=config or CldrConfig(), **options)

    def _info(self):
        config = self.builder_config
        languages = config.source_language, config.target_language
        return tfds.core.DatasetInfo(
            builder=self,
            description=self.__doc__,
            features=tfds.features.Translation(languages=languages),
            supervised_keys=languages,
            homepage="https://cldr.unicode.org",
            disable_shuffling=True,  # they are drawn in random order
        )

    def _split_generators(self, dl_manager):
        config = self.builder_config
        book = PhraseBook(
            babel.Locale.parse(config.source_language), babel.Locale.parse(config.target_language)
        )
        pairs = list(book.phrases(config.examples, config.seed).items())
        splits = held_out(pairs, config.seed + 1)
        return {name: self._generate_examples(split) for name, split in splits.items()}

    def _generate_examples(self, pairs):
        source, target = self.builder_config.source_language, self.builder_config.target_language
        for key, pair in enumerate(pairs):
            yield key, {source: pair[0], target: pair[1]}


def open_cldr(settings) -> TfdsData:
    """Builds the phrases that a `[data]` section describes, unless they have been built before.

    Like any TensorFlow Dataset they are stored in the folder `data_dir` of the settings, otherwise
    in `TFDS_DATA_DIR`, otherwise in `~/tensorflow_datasets`.

    Raises:
        ValueError: If a locale is unknown, the locales have too little in common or the folder
            cannot be written.
    """
    config = CldrConfig(
        settings.source_language, settings.target_language, settings.examples, settings.seed
    )
    languages = config.source_language, config.target_language
    return open_generated(functools.partial(CldrPhrases, config=config), languages, settings)
