"""The judgement of an export: its translations against those of the model in memory."""

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Greedy
from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.near_ties import Comparison
from keras_transformer.export.parity import compare, shortened
from keras_transformer.export.place import silent
from keras_transformer.export.processor import describe_processor
from keras_transformer.export.reference import best_of
from keras_transformer.export.teacher import Teacher
from keras_transformer.tasks.generator import Generator
from keras_transformer.tasks.strings import encode
from keras_transformer.text.quality import score

# Share of a beam's hypotheses that may be other ones than those in memory, with their right scores:
# where two are tied at its edge, one of them is dropped, and whatever would have come of it.
OTHERS_OF_BEAM = 0.01
# What a quantised model may lose, in nats per token. Seen in LiteRT, for the small model of the
# tests: float16 0.0001, int8 0.002, int8_static 0.003.
MAX_SCORE_LOSS = {"none": 0.0, "float16": 0.01, "int8": 0.1, "int8_static": 0.1}


@dataclasses.dataclass
class Agreement:
    """How an export must agree with the model in memory before it is kept.

    In float32 every hypothesis must be the same, or differ by rounding alone: see `near_ties`. The
    kernels of a processor change nothing about that. Every score must be right; of the hypotheses
    of beams, one in a hundred may be another one.

    A quantised model is another model, and its tokens are those of one processor: in int8
    CTranslate2 gave 98 % of the float model's tokens with the kernels of one and 87 % with those of
    another. What is limited are losses, in nats per token by the model in memory: how much less
    probable it finds the export's translations than its own (`score_loss`), and how far from its
    own the scores are that the export reports (`score_error`, the mean of the hypotheses). With
    references, so is the loss of BLEU and of chrF. The share of equal tokens is reported, and is a
    limit where one is asked for.

    Args:
        pipeline: A `Generator` whose model computes in float32.
        samples: List of strings.
        limits: The `Limits`, with the right translations as references; for `max_score_loss`, the
            largest `score_loss` and `score_error`, the default is `MAX_SCORE_LOSS`.
        progress: See `export_saved_model`.
        left_out: Samples that are not compared, because they would take too long: see
            `affordable`. The figures say so.
    """

    pipeline: Generator
    samples: list
    limits: Limits = Limits()
    progress: Callable = silent
    left_out: int = 0

    def __post_init__(self):
        self.limits.check(MAX_SCORE_LOSS)
        self.limits.check_references(self.samples)
        self._teacher = Teacher(self.pipeline)
        self._sources = None

    def judge(self, search, expected, exported, what):
        """Returns the figures of how the outputs of an export agree.

        Args:
            search: The `Search`, or a list, that of each sentence.
            expected: Outputs of the model in memory for the sentences.
            exported: Those of the export, in lists of the same length, with tokens.
            what: Name of what was exported, for the error.

        Returns:
            Dictionary of the figures of a `Parity`, those of the best hypotheses; `hypotheses`,
            how many were compared; `processor`; in float32 `near_ties`, how many of them differ by
            rounding, and `other_hypotheses`, see `OTHERS_OF_BEAM`; of a quantised model
            `score_loss` and `score_error`, and with references BLEU and chrF.

        Raises:
            ExportError: If they do not agree.
        """
        comparisons = self._comparisons(search, expected, exported)
        tokenizer = self.pipeline.target_tokenizer
        parity = compare(self.samples, best_of(expected), best_of(exported), tokenizer)
        report = {
            **parity.to_dict(),
            "hypotheses": len(comparisons),
            "processor": describe_processor(),
        }
        if self.left_out:
            report["sentences_left_out"] = self.left_out
        limits = self.limits
        if limits.is_exact:
            others = _require_same(comparisons, what)
            near_ties = sum(not comparison.same for comparison in comparisons) - others
            return {**report, "near_ties": near_ties, "other_hypotheses": others}
        report.update(_losses(comparisons))
        limits.require_agreement(parity.token_agreement, "tokens", what)
        _require_losses(report, limits.score_loss(MAX_SCORE_LOSS), what)
        if limits.references is not None:
            ours, theirs = (
                score([best.text for best in best_of(side)], limits.references)
                for side in (expected, exported)
            )
            metrics = ({name: side[name] for name in ("bleu", "chrf")} for side in (ours, theirs))
            report.update(limits.compare_quality(*metrics, what))
        return report

    def _comparisons(self, search, expected, exported):
        """A `Comparison` of each hypothesis of each sentence."""
        searches = search if isinstance(search, list) else [search] * len(self.samples)
        longest = self.pipeline.max_length
        columns = searches, self.samples, self._read_sources(), expected, exported
        rows = [
            ((search, rank, sentence, int(search.limit(len(source), longest))), source, pair)
            for search, sentence, source, *both in zip(*columns, strict=True)
            for rank, pair in enumerate(zip(*both, strict=True))
        ]
        sources, limits = [source for _, source, _ in rows], [what[-1] for what, *_ in rows]
        readings = [
            self._teacher.read(sources, [pair[side].tokens for *_, pair in rows], limits)
            for side in (0, 1)
        ]
        return [
            Comparison(*what, self.pipeline.target_tokenizer.eos_id, *pair, *read)
            for (what, _, pair), *read in zip(rows, *readings, strict=True)
        ]

    def _read_sources(self):
        if self._sources is None:
            pipeline = self.pipeline
            ids, *_ = encode(
                pipeline.source_tokenizer, tf.constant(self.samples), pipeline.max_length
            )
            self._sources = ids.to_list()
        return self._sources


def _require_same(comparisons, what):
    """Returns how many hypotheses of a beam are other ones, but as probable as they should be."""
    mistakes, others = (
        [
            (comparison, clause)
            for comparison in comparisons
            if (clause := check(comparison)) is not None
        ]
        for check in (Comparison.mistake, Comparison.other_choice)
    )
    greedy = any(isinstance(comparison.search, Greedy) for comparison, _ in others)
    if greedy or len(others) > OTHERS_OF_BEAM * len(comparisons):
        mistakes += others
    for comparison, _ in mistakes:
        if comparison.is_padded:
            raise ExportError(
                f"{what}: the model in memory emits `pad_id` for "
                f"{shortened(comparison.sentence)!r}, as a model without training may: where such "
                "an output ends is not known. The export was not kept."
            )
    if mistakes:
        first, clause = mistakes[0]
        became = repr(shortened(first.exported.text))
        if not first.same:
            became += f", not {shortened(first.expected.text)!r}"
        count = len({id(comparison) for comparison, _ in mistakes})
        raise ExportError(
            f"{what}: {count} of {len(comparisons)} translations differ from those of the model in "
            f"memory by more than rounding. First: {shortened(first.sentence)!r} became "
            f"{became}: {clause}. The export was not kept."
        )
    return len(others)


def _losses(comparisons):
    """What a quantised model loses, in nats per token."""
    best = [comparison for comparison in comparisons if comparison.rank == 0]
    ours, theirs = (
        sum(reading.score for reading in side) / max(1, sum(reading.tokens for reading in side))
        for side in (
            [comparison.read_expected for comparison in best],
            [comparison.read_exported for comparison in best],
        )
    )
    errors = [comparison.score_error for comparison in comparisons if comparison.exported.tokens]
    return {"score_loss": ours - theirs, "score_error": float(np.mean(errors)) if errors else 0.0}


def _require_losses(report, limit, what):
    for name, meaning in (
        ("score_loss", "the translations are less probable than its own, by"),
        ("score_error", "the scores are wrong, on average by"),
    ):
        if not report[name] <= limit:  # not a number is none
            raise ExportError(
                f"{what}: for the model in memory {meaning} {report[name]:.2g} nats per token, "
                f"{limit:g} are allowed; {100 * report['token_agreement']:.1f} % of the tokens are "
                "the same. The export was not kept."
            )
