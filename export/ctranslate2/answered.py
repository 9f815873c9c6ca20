"""Contents of a folder for CTranslate2 whose model answers in one pass."""

import dataclasses
from typing import Any

from keras_transformer.export.answer_agreement import AnswerAgreement
from keras_transformer.export.ctranslate2.head import write_head
from keras_transformer.export.ctranslate2.opened import open_ctranslate2
from keras_transformer.export.ctranslate2.spec import make_encoder_spec
from keras_transformer.export.limits import ANY_LOSS

# Factor of the codec's limit for quantised weights that applies to the kernels of a processor,
# which lose much more without VNNI: see `generated.py`.
KERNELS = 10


class CTranslate2Answers:
    """An encoder and its head, with the check of its answers.

    Args:
        pipeline: A `TextPass` in float32.
        samples: List of examples.
        limits: The `Limits`.
        progress: See `export_ctranslate2`.
        left_out: Not used: all samples are compared.
    """

    def __init__(self, pipeline, samples, limits, progress, left_out=0):
        self._pipeline, self._samples, self._progress = pipeline, samples, progress
        self._limits = limits
        expected = pipeline.answer(samples)
        self._agreement = AnswerAgreement(pipeline.codec, samples, expected, limits)

    def spec(self) -> Any:
        """Returns CTranslate2's specification of the encoder."""
        return make_encoder_spec(self._pipeline)

    def write_more(self, draft) -> None:
        """Writes the head into a folder."""
        write_head(draft, self._pipeline.model)

    def check(self, draft, name) -> dict[str, Any]:
        """Returns the results of the answers; for a quantised model also those in float32.

        Args:
            draft: The folder.
            name: Name of the export, for errors.

        Raises:
            ExportError: If the answers differ.
        """
        self._progress(f"answering {len(self._samples)} examples")
        if self._limits.is_exact:
            return self._judge(draft, name, self._limits, "default")
        limit = self._limits.score_loss(self._pipeline.codec.max_score_loss)
        weights = dataclasses.replace(self._limits, min_agreement=None)
        kernels = dataclasses.replace(
            self._limits, max_loss=ANY_LOSS, max_score_loss=KERNELS * limit
        )
        in_float32 = self._judge(draft, name, weights, "float32")
        report = self._judge(draft, name, kernels, "default")
        shown = {key: in_float32[key] for key in ("agreement", "score_error")}
        return {**report, "in_float32": shown}

    def _judge(self, draft, name, limits, compute_type):
        loaded = open_ctranslate2(draft, compute_type=compute_type)
        agreement = dataclasses.replace(self._agreement, limits=limits)
        return agreement.judge(loaded.answer(self._samples), name)
