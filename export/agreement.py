"""Agreement of an exported model that generates text with the model in memory."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.checks import check_choice
from keras_transformer.decoding import Greedy, Sample
from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.near_ties import Comparison
from keras_transformer.export.options import MAX_SCORE_LOSS
from keras_transformer.export.parity import compare, shortened
from keras_transformer.export.place import silent
from keras_transformer.export.processor import describe_processor
from keras_transformer.export.reference import Reference, best_of, outputs_of
from keras_transformer.export.scorer import Scorer
from keras_transformer.tasks.generator import Generator
from keras_transformer.tasks.strings import encode
from keras_transformer.text.quality import score

# Share of a beam's hypotheses that may differ from those in memory if their scores are right. Where
# two hypotheses are tied for the last rank of the beam, either may be dropped with all that would
# have followed from it. The same share of samples, but at least one, may differ: a random number
# may lie so close to the limit between two tokens that rounding decides.
OTHERS = 0.01


@dataclasses.dataclass
class Agreement:
    """Required agreement of an export with the model in memory.

    In float32 every hypothesis must be the same, or differ by rounding alone: see `near_ties`. This
    holds for the kernels of every processor. Every score must be right. One in a hundred hypotheses
    of a beam, or outputs of sampling, may be another one.

    A quantised model is a different model, and its tokens depend on the processor. In int8,
    CTranslate2 generated 98 % of the float model's tokens with the kernels of one processor and
    87 % with the kernels of another. Two losses are therefore limited, in nats per token as scored
    by the model in memory. `score_loss` tells how much less probable the export's outputs are than
    the model's own; `score_error` is the mean error of the scores that the export reports. With
    references, the loss of BLEU and of chrF is limited as well. The share of equal tokens is
    reported; `min_agreement` limits it.

    Args:
        pipeline: A `Generator` whose model computes in float32.
        samples: List of strings.
        limits: The `Limits`, with correct outputs as references. `max_score_loss` limits both
            `score_loss` and `score_error`; its default is `MAX_SCORE_LOSS`.
        progress: See `export_saved_model`.
        left_out: Number of inputs that are not compared because they would take too long: see
            `affordable`. It is part of the metrics.
    """

    pipeline: Generator
    samples: list
    limits: Limits = Limits()
    progress: Callable = silent
    left_out: int = 0

    def __post_init__(self) -> None:
        check_choice("quantize", self.limits.quantize, MAX_SCORE_LOSS)
        self.limits.check_references(self.samples)
        self.scorer = Scorer(self.pipeline)
        self._sources = None

    def expected(self, search=None, n_best=1) -> list:
        """Returns the model in memory's `Output`s for the samples: see `Reference.outputs`."""
        reference = Reference(self.pipeline, search, n_best, self.progress)
        return reference.outputs(self.samples)

    def exported(self, loaded, what, decode=None) -> list:
        """Returns the `Output`s of an export for the samples.

        Args:
            loaded: The loaded export.
            what: Name of the stage, for `progress`.
            decode: Function from lists of token ids to token ids and scores. `None`: the export's
                own `decode`.
        """
        decode = decode or loaded.decode
        return outputs_of(
            lambda ids: decode(ids.to_list()), loaded, self.samples, self.progress, what
        )

    def judge(self, search, expected, exported, what) -> dict[str, Any]:
        """Compares the outputs of an export with those of the model in memory.

        Args:
            search: The `Search`, or a list with the search of each sentence.
            expected: Outputs of the model in memory: for each sentence a list of `Output`s.
            exported: Outputs of the export, in lists of the same lengths, with tokens.
            what: Name of the export, for errors.

        Returns:
            Dictionary of the results of `compare` for the best hypotheses; `hypotheses`, the number
            of compared hypotheses; and `processor`. In float32 also `near_ties`, the number of
            hypotheses that differ by rounding, and `other_hypotheses`, see `OTHERS`. For a
            quantised model also `score_loss` and `score_error`, and with references `bleu` and
            `chrf`.

        Raises:
            ExportError: If they do not agree.
        """
        comparisons = self.comparisons(search, expected, exported)
        tokenizer = self.pipeline.target_tokenizer
        parity = compare(self.samples, best_of(expected), best_of(exported), tokenizer)
        report = {**parity, "hypotheses": len(comparisons), "processor": describe_processor()}
        if self.left_out:
            report["sentences_left_out"] = self.left_out
        limits = self.limits
        if limits.is_exact:
            others = _require_same(comparisons, what)
            near_ties = sum(not comparison.same for comparison in comparisons) - others
            return {**report, "near_ties": near_ties, "other_hypotheses": others}
        report.update(score_losses(comparisons))
        limits.require_agreement(parity["token_agreement"], "tokens", what)
        _require_losses(report, limits.score_loss(MAX_SCORE_LOSS), what)
        if limits.references is not None:
            ours, theirs = (
                score([best.text for best in best_of(side)], limits.references)
                for side in (expected, exported)
            )
            metrics = ({name: side[name] for name in ("bleu", "chrf")} for side in (ours, theirs))
            report.update(limits.compare_quality(*metrics, what))
        return report

    def comparisons(self, search, expected, exported):
        """Returns a list with a `Comparison` for each hypothesis of each sentence."""
        searches = search if isinstance(search, list) else [search] * len(self.samples)
        columns = searches, self.samples, self.read_sources(), expected, exported
        rows = [
            ((search, rank, sentence, self.pipeline.limit(search, len(source))), source, pair)
            for search, sentence, source, *both in zip(*columns, strict=True)
            for rank, pair in enumerate(zip(*both, strict=True))
        ]
        sources, limits = [source for _, source, _ in rows], [what[-1] for what, *_ in rows]
        kinds = [what[0] for what, *_ in rows]
        readings = [
            self.scorer.read(sources, [pair[side].tokens for *_, pair in rows], limits, kinds)
            for side in (0, 1)
        ]
        return [
            Comparison(*what, self.pipeline.target_tokenizer.eos_id, *pair, *read)
            for (what, _, pair), *read in zip(rows, *readings, strict=True)
        ]

    def read_sources(self) -> list:
        """Returns the token ids of the samples, a list of lists that end in `eos_id`."""
        if self._sources is None:
            pipeline = self.pipeline
            ids, *_ = encode(
                pipeline.source_tokenizer, tf.constant(self.samples), pipeline.max_length
            )
            self._sources = ids.to_list()
        return self._sources


def _require_same(comparisons, what):
    """Requires equality up to rounding; returns how many hypotheses of a beam are other ones.

    Raises:
        ExportError: If an output is wrong, or too many hypotheses are other ones.
    """
    mistakes, others = (
        [
            (comparison, clause)
            for comparison in comparisons
            if (clause := check(comparison)) is not None
        ]
        for check in (Comparison.mistake, Comparison.other_choice)
    )
    searches = {type(comparison.search) for comparison, _ in others}
    allowed = max(Sample in searches, OTHERS * len(comparisons))
    if Greedy in searches or len(others) > allowed:
        mistakes += others
    for comparison, _ in mistakes:
        if comparison.is_padded:
            raise ExportError(
                f"{what}: the model in memory generates `pad_id` for "
                f"{shortened(comparison.sentence)!r}, as an untrained model may. The end of such "
                "an output is unknown, so it cannot be compared. The export was not kept."
            )
    if mistakes:
        first, clause = mistakes[0]
        became = repr(shortened(first.exported.text))
        if not first.same:
            became += f", not {shortened(first.expected.text)!r}"
        count = len({id(comparison) for comparison, _ in mistakes})
        raise ExportError(
            f"{what}: {count} of {len(comparisons)} outputs differ from those of the model in "
            f"memory by more than rounding. First: {shortened(first.sentence)!r} became "
            f"{became}: {clause}. The export was not kept."
        )
    return len(others)


def score_losses(comparisons):
    """Returns the losses of a quantised model, in nats per token."""
    best = [comparison for comparison in comparisons if comparison.rank == 0]
    ours, theirs = (
        sum(reading.score for reading in side) / max(1, sum(reading.tokens for reading in side))
        for side in zip(*((pair.read_expected, pair.read_exported) for pair in best), strict=True)
    )
    errors = [comparison.score_error for comparison in comparisons if comparison.exported.tokens]
    return {"score_loss": ours - theirs, "score_error": float(np.mean(errors)) if errors else 0.0}


def _require_losses(report, limit, what):
    for name, meaning in (
        ("score_loss", "the outputs are less probable than its own by"),
        ("score_error", "the reported scores are wrong by a mean of"),
    ):
        if not report[name] <= limit:  # also true for NaN
            raise ExportError(
                f"{what}: as scored by the model in memory, {meaning} {report[name]:.2g} nats per "
                f"token, but at most {limit:g} is allowed (`--max-score-loss`); "
                f"{100 * report['token_agreement']:.1f} % of the tokens are the same. The export "
                "was not kept."
            )
