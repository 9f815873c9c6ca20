"""Texts that are generated in batches, which they join and leave between two tokens."""

import functools
import itertools
import random

import pytest
from support import randomise

from keras_transformer import LanguageModel
from keras_transformer.decoding import Greedy, Sample
from keras_transformer.models import LanguageModelConfig
from keras_transformer.positions import Alibi, Rotary
from keras_transformer.tasks.language_modelling import rows as rows_of_texts
from keras_transformer.tasks.language_modelling.continued import Continued
from keras_transformer.tasks.language_modelling.rows import (
    ContinuedRows,
    RowBatch,
    of_like_lengths,
)
from keras_transformer.tasks.streams.turns import END, Turns

SIZES = {"vocab_size": 31, "d_model": 12, "d_ff": 17, "num_layers": 2, "num_heads": 2}
LENGTH = 130
KINDS = {
    "learned": {"position": "learned"},
    "sinusoidal": {"position": "sinusoidal"},
    "rotary": {"position": Rotary(base=100.0)},
    "alibi": {"position": Alibi()},
    "none": {"position": "none"},
    "window": {"position": Rotary(), "decoder": {"window": 5}},
    "groups": {"position": Rotary(), "decoder": {"num_key_value_heads": 1}},
    "no start": {"position": Rotary(), "decoder": {"attends_to_start": False}},
}


def model_of(kind="rotary", **more):
    config = LanguageModelConfig(**SIZES, max_length=LENGTH, tie="none", **KINDS.get(kind, more))
    return randomise(LanguageModel(config))


def jobs_of(rng, count):
    """Returns prompts, searches, numbers, and the turns after which texts begin and are left."""
    for place in range(count):
        prompt = [rng.randint(4, 30) for _ in range(rng.choice([0, 1, 3, 40]))]
        search = rng.choice(
            [
                Greedy(rng.randint(1, 80)),
                Greedy(60, repetition_penalty=1.7),
                Sample(2.0, seed=rng.randint(0, 9), max_length=70),
                Sample(3.0, top_k=4, top_p=0.9, min_p=0.05, seed=3, max_length=50),
            ]
        )
        leaves = rng.choice([None, None, rng.randint(1, 60)])
        yield prompt, search, place % 3, rng.randint(0, 90), leaves


def together(text, jobs):
    """Returns the tokens of each job, from rows that begin and leave at their turns."""
    group, rows, left = text.group(), {}, {*range(len(jobs))}
    tokens, texts = [[] for _ in jobs], [text.another() for _ in jobs]
    for turn in range(10_000):
        for place in sorted(left - {*rows}):
            prompt, search, number, begins, _ = jobs[place]
            if begins <= turn:
                rows[place] = group.begin(texts[place], prompt, search, number)
        active = [place for place in rows if place in left and turn % 7 or not place % 2]
        active = [place for place in active if place in left]  # others wait now and then
        for place, token in zip(active, group.advance([rows[p] for p in active]), strict=True):
            if token is not END and token is not None:
                tokens[place].append(token)
            if token is END or len(tokens[place]) == jobs[place][4]:
                group.end(rows[place])
                left.remove(place)
        if not left:
            return tokens, texts
    raise AssertionError(left)


def alone(text, jobs):
    for prompt, search, number, _, leaves in jobs:
        tokens = text.another().generate(prompt, search, number)
        yield [token for _, token in zip(range(leaves or LENGTH), tokens, strict=False)]


QUICK = {"learned", "rotary"}
MARKED = [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]


@pytest.mark.parametrize("kind", MARKED)
def test_texts_in_changing_batches_have_the_tokens_that_they_have_alone(kind, monkeypatch):
    monkeypatch.setattr(rows_of_texts, "SPREAD", 20)  # several batches
    monkeypatch.setattr(rows_of_texts, "CHUNK", 16)
    text, jobs = Continued(model_of(kind), LENGTH), [*jobs_of(random.Random(kind), 6)]
    assert isinstance(text.group(), ContinuedRows)
    tokens, texts = together(text, jobs)
    assert tokens == [*alone(text, jobs)]
    # What is kept is the text: the next turn of a conversation reads it no more.
    for kept, (prompt, *_), new in zip(texts, jobs, tokens, strict=True):
        assert kept.kept == len(prompt) + len(new)
        more = [*prompt, *new, 5, 6, 7][: LENGTH - 1]
        assert [*kept.generate(more, Greedy(2))] == [*text.another().generate(more, Greedy(2))]


def test_positions_without_a_form_for_several_texts_take_their_steps_alone():
    model = model_of("", position="relative")
    text, jobs = Continued(model, LENGTH), [*jobs_of(random.Random(1), 3)]
    assert type(text.group()) is Turns
    assert together(text, jobs)[0] == [*alone(text, jobs)]
    with pytest.raises(ValueError, match="has no form for several"):
        ContinuedRows(model, LENGTH)._graphs.step.get_concrete_function()


def failing(function, when):
    def call(*arguments):
        if when(*arguments):
            raise RuntimeError("no memory")
        return function(*arguments)

    return call


def test_a_batch_that_fails_is_computed_row_by_row_and_a_bad_row_fails_alone():
    text = Continued(model_of(), LENGTH)
    jobs = [([5, 6], Greedy(30), 0, 0, None), ([7], Greedy(30), 0, 0, None)]
    expected = [*alone(text, jobs)]
    group = text.group()
    group._graphs.step = failing(group._graphs.step, lambda tokens, *_: tokens.shape[0] > 1)
    text.group = lambda: group
    assert together(text, jobs)[0] == expected
    rows = [group.begin(text.another(), prompt, search) for prompt, search, *_ in jobs]
    rows[0].choose = failing(rows[0].choose, lambda *_: True)
    first, second = group.advance(rows)
    assert isinstance(first, RuntimeError) and second == expected[1][0]
    assert group.advance(rows) == [END, expected[1][1]]
    group._graphs.step = failing(group._graphs.step, lambda *_: True)
    assert isinstance(group.advance(rows)[1], RuntimeError)
    assert group.advance(rows) == [END, END]


def test_padding_is_bounded():
    class Text:
        def __init__(self, length):
            self.inputs = [0] * length

    rng = random.Random(3)
    for _ in range(200):
        rows = [Text(rng.choice([1, 30, 300, 3000, 8000])) for _ in range(rng.randint(1, 9))]
        groups = of_like_lengths(rows)
        assert sorted(map(id, rows)) == sorted(id(row) for group in groups for row in group)
        for group in groups:
            sizes = [len(row.inputs) for row in group]
            assert max(sizes) <= 2 * min(sizes) + rows_of_texts.SPREAD


def test_prompts_are_read_in_chunks_by_turns_while_others_go_on(monkeypatch):
    monkeypatch.setattr(rows_of_texts, "CHUNK", 8)
    text = Continued(model_of(), LENGTH)
    read, group = [], text.group()
    texts = [text.another() for _ in range(4)]
    for number, one in enumerate(texts):
        one.read = functools.partial(lambda n, f, *a: read.append(n) or f(*a), number, one.read)
    prompts = [[5], [6] * 30, [7] * 20, [8] * 7]
    rows = [group.begin(*pair, Greedy(40)) for pair in zip(texts, prompts, strict=True)]
    waits = [[token is None for token in group.advance(rows)] for _ in range(9)]
    assert read == [0, 1, 2, 3, 1, 2, 1, 2, 1]
    ends = [[row[place] for row in waits].index(False) for place in range(4)]
    assert ends == [0, 5, 5, 2]
    assert all(not late for place in range(4) for late in [w[place] for w in waits][ends[place] :])


def test_a_text_whose_heads_were_lost_is_read_again():
    text = Continued(model_of(), LENGTH)
    jobs = [([*range(4, 24)], Greedy(40), 0, 0, None), ([7] * 6, Greedy(40), 0, 0, None)]
    expected, _ = alone(text, jobs)
    group = text.group()
    paused, other = (group.begin(text.another(), prompt, search) for prompt, search, *_ in jobs)
    tokens = [group.advance([paused, other])[0] for _ in range(5)]
    taken = group._graphs.row
    group._graphs.row = failing(taken, lambda cache, count, *_: int(count) == 20)
    with pytest.raises(RuntimeError, match="no memory"):
        group.advance([other])  # the client of the first text is slow
    assert paused.text.kept == 0
    group._graphs.row = taken
    group.end(other)
    turns = itertools.takewhile(
        lambda turn: turn is not END, iter(lambda: group.advance([paused])[0], 0)
    )
    assert [*tokens, *(turn for turn in turns if turn is not None)] == expected


def test_a_batch_has_only_rows_that_have_been_read():
    text = Continued(model_of(), LENGTH)
    group = text.group()
    rows = [group.begin(text.another(), [5] * size, Greedy(9)) for size in (3, 2)]
    rows[0].text.read(rows[0].inputs, LENGTH)
    with pytest.raises(RuntimeError, match="0 of 2 tokens of a text have been read"):
        RowBatch(rows, group._graphs)


def test_the_cache_of_a_batch_is_dropped_with_its_last_row(monkeypatch):
    text = Continued(model_of(), LENGTH)
    group = text.group()
    rows = [group.begin(text.another(), [5] * size, Greedy(60)) for size in (3, 2)]
    group.advance(rows)
    (batch,) = group._batches
    held, make = [], rows_of_texts.RowBatch
    monkeypatch.setattr(
        rows_of_texts, "RowBatch", lambda *given: held.append(batch._cache) or make(*given)
    )
    group.advance(rows[:1])
    assert held == [None]  # before there was a new one
    group.end(rows[0])
    assert group._batches == [] and rows[0].text.kept == 3 + 2


def test_texts_that_take_their_steps_alone_begin_one_by_one():
    begun = []

    def tokens(number):
        begun.append(number)
        yield number
        yield number

    group, rows = Turns(), [tokens(number) for number in range(3)]
    assert group.advance(rows[:2]) == [0, None]
    assert group.advance(rows) == [0, 1, None] and begun == [0, 1]
    assert group.advance(rows) == [END, 1, 2]
    assert group.advance(rows[1:]) == [END, 2]
