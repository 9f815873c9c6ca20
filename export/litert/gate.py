"""The searches of a .tflite file, all of which must agree before it is kept."""

import dataclasses
import itertools

import tensorflow as tf

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.export.agreement import Agreement
from keras_transformer.export.litert.batch_rows import require_rows_as_alone
from keras_transformer.export.litert.fast_tokenizer import UNKNOWN
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.litert.strings_runtime import LiteRTStringTranslator
from keras_transformer.export.parity import compare, require_identical
from keras_transformer.export.reference import Output, Reference, outputs_of, with_tokens
from keras_transformer.tasks.strings import encode


@dataclasses.dataclass
class Gate:
    """What a file must do before it is kept.

    Args:
        agreement: How a search must agree.
        greedy: The greedy search in the file.
        beam: The beam in the file. `None`: it has none.
        n_best: Hypotheses that the beam returns.
    """

    agreement: Agreement
    greedy: Greedy = Greedy()
    beam: Beam | None = None
    n_best: int = 1

    def check(self, draft, name, strings=False):
        """Returns how every search in a file agrees with that of the model in memory: figures.

        Args:
            draft: The file.
            name: What to call it in an error.
            strings: Whether the file takes strings as well.

        Raises:
            ExportError: If it does not agree.
        """
        reference = self._reference(self.greedy)
        report, by_strings = self._check(draft, name, reference, strings)
        if self.beam is not None:
            reference = self._reference(self.beam, self.n_best)
            report["beam"], beam_by_strings = self._check(draft, name, reference, strings)
        if strings:
            report["strings"] = by_strings
            if self.beam is not None:
                by_strings["beam"] = beam_by_strings
            for search in {self.greedy, self.beam or self.greedy}:
                self._check_edges(draft, name, search)
        return report

    @property
    def _pipeline(self):
        return self.agreement.pipeline

    def _reference(self, *search):
        return Reference(self._pipeline, *search, progress=self.agreement.progress)

    def _check(self, draft, name, reference, strings):
        """The figures of a search by ids, and by strings if the file takes them."""
        sentences = self.agreement.samples
        loaded = LiteRTTranslator(draft, reference.search)

        def translate(batch, signature):
            def decode(ids):
                return loaded.decode(ids.to_list(), signature)

            what = f"translating with {signature.name if signature else 'the longer signatures'}"
            return outputs_of(decode, loaded, batch, self.agreement.progress, what)

        expected = reference.outputs(sentences)
        by_ids = _by_every_signature(loaded, translate, sentences)
        report = self.agreement.judge(reference.search, expected, by_ids, name)
        require_rows_as_alone(loaded, sentences, name)
        if not strings:
            return report, None
        loaded = LiteRTStringTranslator(draft, reference.search)

        def translate_strings(batch, signature):
            results = loaded.translate_batch(batch, signature)
            return [[Output(result.text, result.score, result.truncated)] for result in results]

        by_strings = _by_every_signature(loaded, translate_strings, sentences)
        expected = [row[:1] for row in expected]
        by_strings = with_tokens(loaded.tokenizers.target, by_strings, by_ids, expected)
        return report, self.agreement.judge(reference.search, expected, by_strings, name)

    def _check_edges(self, draft, name, search):
        """What is rarely among real sentences is translated as by token ids, quantised or not."""
        sentence = next(filter(str.strip, self.agreement.samples))
        edges = ["", f"{sentence} " * self._pipeline.max_length, f"{sentence} {UNKNOWN}"]
        by_ids, by_strings = (
            load(draft, search).translate_batch(edges)
            for load in (LiteRTTranslator, LiteRTStringTranslator)
        )
        tokenizer = self._pipeline.target_tokenizer
        require_identical(compare(edges, by_ids, by_strings, tokenizer), name)


def _by_every_signature(loaded, translate, sentences):
    """Translates with the signatures taking turns, so that no part of the file goes unseen."""
    ids, _, _ = encode(loaded.tokenizers.source, tf.constant(sentences), loaded.max_length)
    lengths = ids.row_lengths().numpy()
    turns = zip(lengths, itertools.cycle(loaded.signatures))  # noqa: B905  (one is endless)
    chosen = [
        signature if length <= signature.source_length else None for length, signature in turns
    ]
    outputs = [None] * len(sentences)
    for signature in dict.fromkeys(chosen):
        numbers = [number for number, other in enumerate(chosen) if other == signature]
        results = translate([sentences[number] for number in numbers], signature)
        for number, result in zip(numbers, results, strict=True):
            outputs[number] = result
    return outputs
