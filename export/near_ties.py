"""Near ties: differences between an export and the model in memory that rounding explains.

Two programs add the same numbers in different orders, and so does one program on two processors.
Their scores therefore differ in the last digits. Where two tokens or two hypotheses are nearly
tied, a search may choose either. To tell a near tie from a mistake, the model in memory scores the
tokens of the export's output (teacher forcing). Within the limits of rounding,

- their log-probability must be the score that the export reports,
- in greedy search, no other token may be more probable than the chosen one, at any position,
- in beam search, the hypothesis must be as probable as the model's own of the same rank,
- in sampling, nearly all outputs must be the same: see `OTHERS` in `agreement`.
"""

import dataclasses

from keras_transformer.decoding import Greedy, Sample
from keras_transformer.decoding.hypotheses import exists
from keras_transformer.decoding.search import Search
from keras_transformer.export.reference import Output
from keras_transformer.export.scorer import Reading


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two outputs for the same sentence: by the model in memory and by an export.

    Args:
        search: The `Search`.
        rank: Rank of the hypothesis, from 0.
        sentence: The sentence.
        limit: Maximum number of tokens of an output.
        eos_id: Id of the end of an output.
        expected: `Output` of the model in memory.
        exported: `Output` of the export, with tokens.
        read_expected: `Reading` of `expected`.
        read_exported: `Reading` of `exported`.
    """

    search: Search
    rank: int
    sentence: str
    limit: int
    eos_id: int
    expected: Output
    exported: Output
    read_expected: Reading
    read_exported: Reading

    @property
    def same(self) -> bool:
        """`True` if both outputs are the same."""
        return (self.expected.text, self.expected.truncated) == (
            self.exported.text,
            self.exported.truncated,
        )

    @property
    def is_padded(self) -> bool:
        """`True` if the model in memory generated `pad_id`, so that its output has no end."""
        tokens, score = self.expected.tokens, self.expected.score
        if self.expected.guessed:
            return False
        if not tokens:
            return exists(score) and score != 0
        return tokens[-1] != self.eos_id and len(tokens) < self.limit

    @property
    def score_error(self) -> float:
        """Error of the score that the export reports, in nats per token."""
        penalty = self.search.penalty(self.read_exported.tokens)
        return (
            abs(self.exported.score * penalty - self.read_exported.score)
            / self.read_exported.tokens
        )

    def mistake(self) -> str | None:
        """Returns an error of the export's output as a clause, `None` if there is none."""
        if self.expected.truncated != self.exported.truncated:
            return "only one of the two models read the whole source"
        if bool(self.expected.tokens) != bool(self.exported.tokens):
            return "only one of the two models has such a hypothesis"
        guessed = self.expected.guessed or self.exported.guessed
        if self.expected.tokens == self.exported.tokens and not self.same and not guessed:
            return "the same tokens are decoded to another text"
        if not self.exported.tokens:
            same = self.expected.score == self.exported.score
            return None if same else f"its score is {self.exported.score:.7g}"
        reading = self.read_exported
        bound = _bound(reading, self.search)
        if self.same and guessed:  # the tokens are not certain
            expected = self.expected.score
            return self._wrong_score(expected, 2 * bound, f"not {expected:.7g}")
        scored = reading.score / self.search.penalty(reading.tokens)
        same_tokens = f"but that of the same tokens in memory is {scored:.7g}"
        return self._wrong_score(scored, bound, same_tokens) or self._wrong_end()

    def other_choice(self) -> str | None:
        """Returns a clause if the export chose another output without a near tie, else `None`."""
        guessed = self.expected.guessed or self.exported.guessed
        if self.exported.tokens == self.expected.tokens or self.same and guessed:
            return None
        ours, theirs = self.read_expected, self.read_exported
        if isinstance(self.search, Sample):
            return "other tokens were drawn for the same seed"
        if isinstance(self.search, Greedy):
            gap, bound = theirs.gap, 2 * theirs.rounding
        else:
            pair = [
                reading.score / self.search.penalty(reading.tokens) for reading in (ours, theirs)
            ]
            gap, bound = (
                abs(pair[0] - pair[1]),
                _bound(ours, self.search) + _bound(theirs, self.search),
            )
        if gap <= bound:
            return None
        return f"the model in memory prefers its own by {gap:.2g}; rounding explains {bound:.1g}"

    def _wrong_score(self, right, bound, rather):
        """Compares the score that the export reports with the right one."""
        score = self.exported.score
        if abs(score - right) <= bound:
            return None
        return f"its score is {score:.7g}, {rather}; rounding explains {bound:.1g}"

    def _wrong_end(self):
        tokens, limit = list(self.exported.tokens), self.limit
        ended = tokens[-1] == self.eos_id
        if len(tokens) > limit or not ended and len(tokens) < limit:
            return f"it stops after {len(tokens)} tokens, but the limit is {limit}"
        return None


def _bound(reading, search):
    """Returns how much rounding can change a score; every token contributes to it."""
    return reading.tokens * reading.rounding / search.penalty(reading.tokens)
