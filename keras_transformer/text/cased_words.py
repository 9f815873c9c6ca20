r"""Words of Tekken, Mistral Nemo's pattern, in the graph: a word of letters ends before capitals.

Whether a code point begins a word depends on all of the text before it, as a slash belongs to a
newline that belongs to punctuation. Each code point is therefore a function from the state before
it to the state after it, one of seven. Functions of neighbours are composed, then those of
neighbours of neighbours, so that a text of N code points needs log2(N) steps.
"""

import functools

import numpy as np

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.code_points import CODE_POINTS, CodePointTable, latest, members, shifted
from keras_transformer.text.letter_ranges import (
    COMBINING,
    LETTERS,
    LOWERCASE_LETTERS,
    UPPERCASE_LETTERS,
)

NO_CASE, UPPER, LOWER, BOTH, MARK = range(5)  # of a code point; marks are of both cases as well
BLANK, SLASH = map(ord, " /")
# What the word that contains the code point before consists of. DONE: the word is complete.
# CAPITALS: letters, none of them lower-case. SMALL: letters, and the last one with a case is
# lower-case. JOINED: a character that belongs to the letters after it. LINES: newlines and slashes
# after punctuation.
STATES = 7
DONE, CAPITALS, SMALL, JOINED, PUNCTUATION, LINES, SPACES = range(STATES)
IN_WORD = (CAPITALS, SMALL, JOINED)


class CodePoints:
    """Classes of the code points of texts, each a boolean `[N]`.

    Args:
        points: Code points of all texts, int32 `[N]`; negative ones end each text.
        space, number: Classes of the pattern.
        newline: Whether a code point is a newline or carriage return.
    """

    def __init__(self, points, space, number, newline):
        case = tf.where(points < 0, NO_CASE, _cases()(tf.maximum(points, 0)))
        self.edge, self.number, self.newline = points < 0, number, newline
        self.blank, self.slash = tf.equal(points, BLANK), tf.equal(points, SLASH)
        self.space = space & ~newline
        self.upper, self.lower = tf.equal(case, UPPER), tf.equal(case, LOWER)
        self.mark = tf.equal(case, MARK)
        self.both = tf.equal(case, BOTH) | self.mark
        self.in_word = self.upper | self.lower | self.both
        self.other = ~(self.in_word | number | space | self.edge)
        before_space = shifted(space | self.edge, -1, True)
        self.last_space = self.space & ~before_space
        self.before_word = shifted(self.in_word, -1, False)
        self.before_other = shifted(self.other, -1, False)
        # The capitals at and after a code point end their run of letters, in which a letter of
        # both cases stands before them.
        ends = _next_is(~self.upper, ~self.in_word)
        self.remaining = self.upper & ends & shifted(self.both, 1, False)
        # The first space after the last newline of a run of white space.
        no_newline = ~_next_is(~self.space, newline)
        self.after_lines = self.space & shifted(newline, 1, False) & no_newline


def word_starts(classes) -> Tensor:
    """Returns whether each code point begins a word, boolean `[N]`.

    Args:
        classes: The `CodePoints`.
    """
    after = [_state_after(classes, state) for state in range(STATES)]
    begins = tf.stack([_begins(classes, state) for state in range(STATES)], axis=1)  # [N, 7]
    before = shifted(_states(tf.stack(after, axis=1), classes.edge), 1, DONE)  # [N]
    return tf.gather(begins, before, batch_dims=1)


def _begins(c, state):
    """Returns whether each code point begins a word if the state before it is `state`, `[N]`."""
    begins = c.number | c.edge
    if state != JOINED:
        begins |= c.remaining if state == CAPITALS else c.upper
    if state not in IN_WORD:
        begins |= c.lower | (c.both if state != PUNCTUATION else c.both & ~c.mark)
    if state != PUNCTUATION:
        begins |= c.other & ~c.slash if state == LINES else c.other
    if state not in (PUNCTUATION, LINES, SPACES):
        begins |= c.newline
    return begins | (c.last_space | c.after_lines if state == SPACES else c.space)


def _state_after(c, state):
    """Returns the state after each code point if the state before it is `state`, int32 `[N]`."""
    both = SMALL if state == SMALL else CAPITALS
    found = tf.where(c.upper, CAPITALS, tf.where(c.lower, SMALL, DONE))
    found = tf.where(c.both, both, found)
    found = tf.where(c.other, tf.where(c.before_word, JOINED, PUNCTUATION), found)
    if state == PUNCTUATION:
        found = tf.where(c.other | c.mark, PUNCTUATION, found)
    if state == LINES:
        found = tf.where(c.slash, LINES, found)
    found = tf.where(c.newline, LINES if state in (PUNCTUATION, LINES) else SPACES, found)
    last = tf.where(c.before_word, JOINED, tf.where(c.blank & c.before_other, PUNCTUATION, DONE))
    return tf.where(c.space, tf.where(c.last_space, last, SPACES), found)


def _states(after, edge):
    """Returns the state after each code point, int32 `[N]`.

    Args:
        after: The state after each code point for each state before it, int32 `[N, 7]`.
        edge: Where texts end, boolean `[N]`; there the state is `DONE` whatever was before.
    """
    count, same = tf.shape(after)[0], tf.range(STATES)[None]
    longest = tf.reduce_max(tf.concat([[0], tf.range(count) - latest(edge)], 0))

    def compose(distance, functions):
        """Functions of `distance` code points each become those of twice as many."""
        first = tf.concat([tf.tile(same, [distance, 1]), functions], 0)[:count]
        return 2 * distance, tf.gather(functions, first, batch_dims=1)

    _, functions = tf.while_loop(
        lambda distance, _: distance < longest,
        compose,
        (tf.constant(1), after),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, STATES])),
    )
    return functions[:, DONE]


def _next_is(flags, other):
    """Returns whether `other` holds at the first place at or after each where `flags` do, `[N]`."""
    last = tf.size(flags) - 1
    place = last - tf.reverse(latest(tf.reverse(flags, [0])), [0])  # N without one
    return tf.gather(tf.concat([other, [False]], 0), place)


@functools.cache
def _cases():
    cases = np.full(CODE_POINTS, NO_CASE, np.int32)
    classes = {BOTH: LETTERS, UPPER: UPPERCASE_LETTERS, LOWER: LOWERCASE_LETTERS, MARK: COMBINING}
    for case, ranges in classes.items():
        cases[[*members(ranges)]] = case
    return CodePointTable(cases)
