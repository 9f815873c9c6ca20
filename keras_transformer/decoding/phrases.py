"""Phrases in the outputs of a search: sequences of tokens, matched as the outputs grow."""

import typing

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


class Phrases:
    """Sequences of tokens that outputs are compared with, one more token at a time.

    A state is a boolean tensor `[B, N, P, Q]`: whether the last q + 1 tokens of an output are the
    first q + 1 tokens of the phrase. It holds every match at once, so that overlapping ones are
    found.

    Args:
        tokens: Token ids `[B, P, Q]`, or `[P, Q]` for all sentences, int32; `pad_id` follows the
            last token of a shorter phrase. A phrase of padding alone is no phrase.
        pad_id: The id of the padding.

    Reference: Baeza-Yates and Gonnet (1992), "A New Approach to Text Searching".
    """

    def __init__(self, tokens, pad_id):
        tokens = tokens if tokens.shape.rank == 3 else tf.expand_dims(tokens, 0)  # [B or 1, P, Q]
        self.tokens = tokens
        self.real = tf.not_equal(tokens, pad_id)  # [B or 1, P, Q]
        counts = tf.cast(self.real, tf.int32)
        self.lengths = tf.reduce_sum(counts, axis=2)  # [B or 1, P]
        self.ends = self.real & tf.equal(  # [B or 1, P, Q], the last token of each
            tf.cumsum(counts, axis=2), tf.expand_dims(self.lengths, 2)
        )
        self.last = tf.reduce_sum(tf.where(self.ends, tokens, 0), axis=2)  # [B or 1, P]

    def start(self, batch, width) -> Tensor:
        """Returns the state before the first token, for B sentences of N hypotheses."""
        shape = tf.shape(self.tokens)
        return tf.zeros([batch, width, shape[1], shape[2]], tf.bool)

    def ready(self, state) -> Tensor:
        """Returns which tokens of the phrases would continue a match, `[..., P, Q]`.

        Args:
            state: `[..., P, Q]`.
        """
        first = tf.ones_like(state[..., :1])
        return tf.concat([first, state[..., :-1]], axis=-1)

    def follow(self, state, new, begun=True) -> Tensor:
        """Returns the state `[B, ..., P, Q]` after the tokens `new`, `[B, ...]`.

        Args:
            state: The state before, in the same order.
            new: Token ids.
            begun: Whether the tokens are part of an output: `[]` or `[B, 1]`. Those of a prompt
                are not.
        """
        axes = [1] * (len(new.shape) - 1)
        batch, count, length = tf.unstack(tf.shape(self.tokens))
        shape = [batch, *axes, count, length]
        tokens, real = (tf.reshape(value, shape) for value in (self.tokens, self.real))
        same = tf.equal(tokens, tf.reshape(new, tf.concat([tf.shape(new), [1, 1]], 0))) & real
        begun = tf.reshape(begun, [-1, *axes, 1, 1])
        return self.ready(state) & same & begun

    def complete(self, state) -> Tensor:
        """Returns which phrases end at the last token, `[B, N, P]`."""
        return tf.reduce_any(state & tf.expand_dims(self.ends, 1), axis=3)

    def would_end(self, state) -> Tensor:
        """Returns which phrases end if their last token comes next, `[B, N, P]`."""
        return tf.reduce_any(self.ready(state) & tf.expand_dims(self.ends, 1), axis=3)

    def matched(self, state) -> Tensor:
        """Returns the longest match of each phrase that could continue, in tokens, `[B, N, P]`."""
        places = tf.range(tf.shape(self.tokens)[2])  # [Q]
        here = self.ready(state) & tf.expand_dims(self.real, 1)  # [B, N, P, Q]
        return tf.reduce_max(tf.where(here, places, 0), axis=3)

    def token_at(self, places) -> Tensor:
        """Returns the token at a place of each phrase, `[B, N, P]` from `[B, N, P]`."""
        here = tf.equal(tf.expand_dims(places, 3), tf.range(tf.shape(self.tokens)[2]))
        return tf.reduce_sum(tf.where(here, tf.expand_dims(self.tokens, 1), 0), axis=3)


class TermState(typing.NamedTuple):
    """Progress of hypotheses `[B, N]`, or of their K continuations `[B, N, K]`."""

    matches: "tf.Tensor"  # [B, N, (K), C * A, Q], see `Phrases`
    met: "tf.Tensor"  # [B, N, (K), C], boolean: whether the output has a spelling as whole words


class Terms:
    """Terms that an output must contain, each in one of several spellings.

    Args:
        terms, word_starts: See `Constraints`.
        pad_id: The id of the padding.
    """

    def __init__(self, terms, word_starts, pad_id):
        batch, self._terms, self._spellings, length = tf.unstack(tf.shape(terms))
        flat = tf.reshape(terms, tf.stack([batch, self._terms * self._spellings, length]))
        self.phrases = Phrases(flat, pad_id)
        self._word_starts = word_starts
        self._weights = self._most(self.phrases.lengths)  # [B or 1, C]

    def start(self, batch, width) -> TermState:
        """Returns the state before the first token, for B sentences of N hypotheses."""
        met = tf.zeros([batch, width, self._terms], tf.bool)
        return TermState(self.phrases.start(batch, width), met)

    def follow(self, state, new, begun=True) -> TermState:
        """Returns the state after the tokens `new`; see `Phrases.follow`.

        A spelling counts once the next token begins a word, so that "cat" is not met by "cats".
        """
        met = state.met
        if self._word_starts is not None:
            starts = tf.gather(self._word_starts, new)
            met |= self._ended(state.matches) & tf.expand_dims(starts, -1)
        matches = self.phrases.follow(state.matches, new, begun)
        if self._word_starts is None:
            met |= self._ended(matches)
        return TermState(matches, met)

    def continued(self, state, new, begun=True) -> TermState:
        """Returns the state `[B, N, K]` of K continuations of each hypothesis.

        Args:
            state: The `TermState` of the hypotheses.
            new: Tokens `[B, N, K]`.
            begun: See `Phrases.follow`.
        """
        wide = TermState(tf.expand_dims(state.matches, 2), tf.expand_dims(state.met, 2))
        return self.follow(wide, new, begun)

    def satisfied(self, state) -> Tensor:
        """Returns whether an output that ends here contains all terms, `[B, N]` or `[B, N, K]`."""
        return tf.reduce_all(self._fulfilled(state), axis=-1)

    def progress(self, state) -> Tensor:
        """Returns the number of tokens of terms that outputs contain, `[B, N]` or `[B, N, K]`.

        It is the number of the bank of Post and Vilar (2018). Any spelling of a term that is met
        counts as the longest one.
        """
        places = tf.range(1, tf.shape(self.phrases.tokens)[2] + 1)  # [Q]
        partial = self._most(tf.reduce_max(tf.where(state.matches, places, 0), axis=-1))
        weights = _like(self._weights, partial)
        unfinished = tf.minimum(partial, weights - 1)
        counts = tf.where(self._fulfilled(state), weights, unfinished)
        return tf.reduce_sum(counts, axis=-1)

    def next_tokens(self, state) -> tuple[Tensor, Tensor]:
        """Returns the tokens that continue or begin each spelling, and which of them to try.

        Returns:
            Tokens `[B, N, C * A]`, int32, and a mask of the same shape.
        """
        tokens = self.phrases.token_at(self.phrases.matched(state.matches))
        open_terms = tf.repeat(~self._fulfilled(state), self._spellings, axis=-1)
        return tokens, open_terms & (tf.expand_dims(self.phrases.lengths, 1) > 0)

    def _fulfilled(self, state):
        """Returns which terms an output that ends here contains, `[B, N, (K), C]`."""
        return state.met | self._ended(state.matches) | _like(self._weights <= 0, state.met)

    def _ended(self, matches):
        """Returns for which terms a spelling ends at the last token, `[B, N, (K), C]`."""
        ends = tf.reduce_any(matches & _like(self.phrases.ends, matches, 2), axis=-1)
        return tf.reduce_any(self._by_term(ends), axis=-1)

    def _most(self, values):
        """Returns the maximum over the spellings of each term, `[..., C]` of `[..., C * A]`."""
        return tf.reduce_max(self._by_term(values), axis=-1)

    def _by_term(self, values):
        shape = tf.concat([tf.shape(values)[:-1], [self._terms, self._spellings]], 0)
        return tf.reshape(values, shape)


def _like(values, other, axes=1):
    """Returns `[B, ...]`, whose last `axes` are those of `other`, with axes between of size 1."""
    for _ in range(len(other.shape) - axes - 1):
        values = tf.expand_dims(values, 1)
    return values
