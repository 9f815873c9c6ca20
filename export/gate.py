"""What a .tflite file must do before it is kept."""

import dataclasses
import itertools

import tensorflow as tf

from keras_transformer.beam_translator import BeamTranslator
from keras_transformer.translation import encode, translate_sorted
from keras_transformer.translator import Translator

from .batch_rows import require_rows_as_alone
from .fast_tokenizer import UNKNOWN
from .loaded import LiteRTTranslator
from .parity import (
    compare,
    measure_quality,
    require_agreement,
    require_identical,
    require_quality,
)
from .strings_loaded import LiteRTStringTranslator


@dataclasses.dataclass
class Gate:
    """What a file must do before it is kept."""

    translator: Translator
    sentences: list
    references: list | None
    min_agreement: float
    max_loss: float

    def __post_init__(self):
        if self.references is not None and len(self.references) != len(self.sentences):
            raise ValueError(
                "`references` must have one translation for each of `sentences`. Received: "
                f"{len(self.sentences)} sentences, {len(self.references)} references."
            )
        if not 0 <= self.min_agreement <= 1:
            raise ValueError(
                f"`min_agreement` must be between 0 and 1. Received: {self.min_agreement}."
            )
        if not self.max_loss >= 0:
            raise ValueError(f"`max_loss` must be at least 0. Received: {self.max_loss}.")

    def check(self, draft, name, beam_size=None, strings=False):
        """Returns how every search in a file agrees with that of the model in memory: figures.

        Args:
            draft: The file.
            name: What to call it in an error.
            beam_size: That of the beam in the file.
            strings: Whether the file takes strings, too.

        Raises:
            ExportError: If it does not agree.
        """
        report = self._check(LiteRTTranslator, draft, name, beam_size)
        if strings:
            report["strings"] = self._check(LiteRTStringTranslator, draft, name, beam_size)
            for size in {None, beam_size}:
                self._check_edges(draft, name, size)
        return report

    def _check(self, load, draft, name, beam_size):
        report = self._agreement(load(draft), name, self.translator)
        if beam_size is not None:
            beam = BeamTranslator(self.translator, beam_size)
            report["beam"] = self._agreement(load(draft, beam_size=beam_size), name, beam)
        return report

    def _check_edges(self, draft, name, beam_size):
        """What is rarely among real sentences is translated as by token ids, quantised or not."""
        sentence = next(filter(str.strip, self.sentences))
        edges = ["", f"{sentence} " * self.translator.max_length, f"{sentence} {UNKNOWN}"]
        by_ids, by_strings = (
            load(draft, beam_size=beam_size).translate_batch(edges)
            for load in (LiteRTTranslator, LiteRTStringTranslator)
        )
        require_identical(compare(edges, by_ids, by_strings, self.translator.tokenizer), name)

    def _agreement(self, loaded, name, search):
        expected = translate_sorted(search, self.sentences)
        found = _translate_by_every_signature(loaded, self.sentences)
        if isinstance(loaded, LiteRTTranslator):
            require_rows_as_alone(loaded, self.sentences, name)
        parity = compare(self.sentences, expected, found, self.translator.tokenizer)
        if loaded.facts["quantize"] == "none":
            return require_identical(parity, name).to_dict()
        report = require_agreement(parity, self.min_agreement, name).to_dict()
        if self.references is not None:
            quality = measure_quality(expected, found, self.references)
            report.update(require_quality(quality, self.max_loss, name))
        return report


def _translate_by_every_signature(loaded, sentences):
    """Translates with the signatures taking turns, so that no part of the file goes unseen."""
    ids, _, _ = encode(loaded.tokenizer, tf.constant(sentences), loaded.max_length)
    lengths = ids.row_lengths().numpy()
    turns = zip(lengths, itertools.cycle(loaded.signatures))  # noqa: B905  (one is endless)
    chosen = [each if length <= each.source_length else None for length, each in turns]
    found = [None] * len(sentences)
    for signature in dict.fromkeys(chosen):
        numbers = [number for number, each in enumerate(chosen) if each == signature]
        results = loaded.translate_batch([sentences[number] for number in numbers], signature)
        for number, result in zip(numbers, results, strict=True):
            found[number] = result
    return found
