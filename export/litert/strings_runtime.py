"""Loaded .tflite files, run by the signatures that take and return strings."""

import numpy as np

from keras_transformer.export.litert.engines import INTERPRETED_WITH_TEXT
from keras_transformer.export.litert.packed import STRINGS, FixedSignature
from keras_transformer.export.litert.runtime import LiteRTGenerator
from keras_transformer.tasks.answering import Answering
from keras_transformer.tasks.results import COMPLETE, Translation
from keras_transformer.tasks.strings import check_sentences


class LiteRTStringTranslator(LiteRTGenerator):
    """A loaded .tflite file that `export_litert` has written with `tokenizer=True`.

    Sentences are passed to the model as strings, as an app on a phone would do. The same file can
    be loaded as a `LiteRTTranslator`, which uses the signatures of token ids and needs no operators
    but LiteRT's own.

    Args:
        path, search, num_threads, num_parallel_calls, engines: See `LiteRTFile`.

    Raises:
        TypeError: See `LiteRTFile`.
        ValueError: See `LiteRTFile`; also raised if the file has no signatures that take strings.
    """

    kind, custom = STRINGS, INTERPRETED_WITH_TEXT
    has_languages = False  # they are part of the graph
    max_outputs = 1  # a signature returns the best output

    def n_best_batch(self, inputs: list[str], n: int) -> list[list]:  # noqa: D102
        return Answering.n_best_batch(self, inputs, n)

    def answer_batch(
        self, inputs: list[str], signature: FixedSignature | None = None
    ) -> list[Translation]:
        """Returns a `Translation` for each of a list of strings.

        Args:
            inputs: List of strings.
            signature: The signature to run, one of `signatures`. `None`: for each sentence the
                shortest that fits it.
        """
        inputs, signatures = check_sentences(inputs), self._choices(signature)
        return [self._translate(sentence, signatures) for sentence in inputs]

    def _translate(self, sentence, signatures):
        for signature in sorted(signatures, key=lambda choice: choice.source_length):
            translation = self._run_string(signature, sentence)
            if not translation.truncated:
                break  # otherwise a longer signature may fit
        return translation

    def _run_string(self, signature, sentence):
        controls = {}
        if signature.beam_size is not None:
            longest, extra = self.max_length, self.search.extra_length
            extra = longest if extra is None else min(extra, longest)
            controls["extra_length"] = np.array([extra], np.int32)
            controls["length_penalty"] = np.array([self.search.length_penalty], np.float32)
        sentence = sentence if isinstance(sentence, bytes) else sentence.encode()
        sentence = np.array([sentence], object)
        outputs = self.run_signature(signature.name, sentence=sentence, **controls)
        text, score, truncated, complete = (
            outputs[name].item() for name in (self.output, "score", "truncated", COMPLETE)
        )
        return self.result(text.decode("utf-8", "replace"), score, truncated, complete=complete)
