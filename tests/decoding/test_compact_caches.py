"""Beam searches whose cache drops the entries that no hypothesis attends to any more."""

import dataclasses
import functools
import types
import typing

import numpy as np
import pytest
import tensorflow as tf
from litert_searches import assert_same_in_litert
from marks import slow
from searching import by_beam
from support import randomise, small_config
from uncertain_models import PAD, sources, talkative

from keras_transformer import Transformer
from keras_transformer.decoding import EncoderDecoder, Ensemble, Predictor, compact_caches
from keras_transformer.decoding.compact_caches import CompactGrowing, CompactStaged, compacted
from keras_transformer.decoding.entries import Entries
from keras_transformer.decoding.loop import Appended, Growing, Staged
from keras_transformer.export.litert import searches
from keras_transformer.export.litert.packed import FixedSignature
from keras_transformer.layers import MultiHeadSelfAttention

ENDS = (2, 4, 8, 16)


class Remembered(typing.NamedTuple):
    """A cache whose entries are the numbers of the steps and hypotheses that wrote them."""

    cache: tuple
    entries: Entries


class Remembering(Predictor):
    """Predictor with the cache of a layer, whose heads are such numbers."""

    compacts = True

    def __init__(self, batch, width):
        self.layer = MultiHeadSelfAttention(1, causal=True)
        self.layer.build((None, None, 1))
        self.batch, self.width = batch, width

    def begin(self, inputs, length, width=1):
        entries = Entries.none_yet(self.batch, length, width)
        return Remembered(self.layer.empty_cache(self.batch, length, width), entries)

    def step(self, tokens, state, index):
        slot = state.entries.slot(index)
        start = 0 if len(state.cache) == 2 else state.cache[2].shape[2] // self.width
        place = (index if slot is None else slot) - start
        new = tf.reshape(tf.cast(tokens, tf.float32), [self.batch, 1, self.width, 1])
        recent = (self.layer.kernels.write(old, new, place) for old in state.cache[:2])
        entries = state.entries.with_position(index)
        return state._replace(cache=(*recent, *state.cache[2:]), entries=entries)

    def count_used(self, state):
        return tf.reduce_sum(tf.cast(state.entries.used, tf.int32), axis=1)

    def compact(self, state, past, length, index):
        entries, chosen = state.entries.compacted(past, length, index)
        cache = self.layer.compacted_cache(state.cache, chosen, length, self.width)
        return Remembered(cache, entries)


class SearchState(typing.NamedTuple):
    index: tf.Tensor
    last: tf.Tensor
    done: tf.Tensor
    predictor_state: Remembered


def remembered(state, sentence, hypothesis):
    """Returns the numbers of the entries that a hypothesis attends to, the keys and the values."""
    seen = state.entries.visible[sentence, hypothesis].numpy()
    parts = [state.cache[2:], state.cache[:2]] if len(state.cache) > 2 else [state.cache]
    keys, values = (
        np.concatenate([part[which].numpy()[sentence, 0, :, 0] for part in parts])
        for which in (0, 1)
    )
    np.testing.assert_array_equal(keys[seen], values[seen])
    return sorted(keys[seen].astype(int).tolist())


def apart(random, index, shape):
    """Hypotheses that never have a common ancestor: all entries stay in use."""
    return np.broadcast_to(np.arange(shape[1]), shape)


def any_parents(random, index, shape):
    return random.integers(0, shape[1], shape)


def apart_for_long(random, index, shape):
    return any_parents(random, index, shape) if index % 7 == 6 else apart(random, index, shape)


@pytest.mark.parametrize("parents_of", [apart, any_parents, apart_for_long])
@pytest.mark.parametrize("length", [3, 5, 8, 9, 15, 16, 17, 29, 40])
@pytest.mark.parametrize("fixed", [True, False])
def test_each_hypothesis_keeps_all_its_ancestors_and_nothing_else(
    parents_of, length, fixed, monkeypatch
):
    """Also of a sentence beside one that is done, whose entries may be dropped."""
    monkeypatch.setattr(compact_caches, "GROWTH", 3)
    batch, width, random = 3, 4, np.random.default_rng(length)
    predictor = Remembering(batch, width)
    ends = [end for end in ENDS if 4 * end <= 3 * length]
    cache = CompactStaged.of([*ends, length]) if fixed and ends else CompactGrowing(length)
    histories = [[[] for _ in range(width)] for _ in range(batch)]
    sizes, stops = [], [length, length // 2, length]

    def step(state):
        nonlocal histories
        index = int(state.index)
        inner = predictor.step(state.last, state.predictor_state, state.index)
        numbers = state.last.numpy()
        parents = parents_of(random, index, (batch, width))
        after = []
        for sentence in range(batch):
            written = [
                sorted([*histories[sentence][n], int(numbers[sentence, n])]) for n in range(width)
            ]
            if index < stops[sentence]:
                for n in range(width):
                    assert remembered(inner, sentence, n) == written[n]
            after.append([written[parent] for parent in parents[sentence]])
        histories = after
        sizes.append(inner.entries.visible.shape[2])
        inner = inner._replace(entries=inner.entries.of_parents(tf.constant(parents)))
        index += 1
        done = tf.constant([index >= stop for stop in stops])
        last = tf.reshape(tf.range(batch * width), [batch, width]) + 100 * index
        return (SearchState(tf.constant(index), last, done, inner),)

    first = tf.reshape(tf.range(batch * width), [batch, width])
    begun = predictor.begin(None, cache.first(None), width)
    state = SearchState(tf.constant(0), first, tf.zeros([batch], tf.bool), begun)
    state = cache.run(predictor, lambda state: ~tf.reduce_all(state.done), step, state)
    assert int(state.index) == length
    if parents_of is any_parents and length == 40:
        assert max(sizes) < length * width / 2, "the entries in use are a fraction of all"


@pytest.mark.parametrize(
    ("ends", "sizes"),
    [
        ([16, 64], [(16, 16), (48, 16)]),
        ([16, 64, 128, 256], [(16, 16), (64, 16), (128, 16), (240, 16)]),
        ([8, 16, 32, 64], [(8, 8), (16, 8), (32, 8), (56, 8)]),
        ([16, 22], [(16, 6)]),
        ([2, 3], [(2, 1)]),
    ],
)
def test_the_last_stage_has_room_for_all_entries(ends, sizes):
    cache = CompactStaged.of(ends)
    assert cache.sizes == sizes and sum(cache.sizes[-1]) == ends[-1]
    before = cache.start
    for past, new in cache.sizes:
        assert past >= before, "whatever the stage before held"
        before = past + new


def test_only_caches_with_several_entries_for_a_position_are_compacted():
    assert compacted(Growing(64)) == CompactGrowing(64)
    assert compacted(Staged([16, 64])) == CompactStaged.of([16, 64])
    for cache in (Staged([64]), Appended(64)):
        assert compacted(cache) is cache


def test_attention_that_depends_on_places_keeps_all_entries():
    """The place of an entry no longer tells its position."""

    def model(**changes):
        return Transformer(small_config(**changes))

    assert EncoderDecoder(model()).compacts
    assert EncoderDecoder(model(position="rotary", d_k=4)).compacts, "rotated before it is cached"
    for position in ("alibi", "t5", "relative"):
        assert not EncoderDecoder(model(position=position)).compacts
    assert not EncoderDecoder(model(decoder="ssru")).compacts
    assert not EncoderDecoder(model(window=3)).compacts
    assert not Ensemble([model(), model(position="t5")]).compacts


@pytest.mark.parametrize("stages", [None, (3, 6, 12)])
def test_an_empty_batch_has_no_outputs(stages):
    found = by_beam(talkative(), sources()[:0], max_length=26, cache_stages=stages)
    assert found[0].shape == (0, 1, 26)


class Counting(EncoderDecoder):
    """A predictor with a state of its own, which grows with the cache."""

    def begin(self, inputs, length, width=1):
        own = tf.zeros([tf.shape(inputs)[0], width, length], tf.int32)
        return super().begin(inputs, length, width), own

    def step(self, tokens, state, index):
        state, own = state
        step = super().step(tokens, state, index)
        own = tf.where(tf.range(own.shape[2]) == index, tf.expand_dims(tokens, 2), own)
        repeated = tf.reduce_any(tf.expand_dims(tf.range(step.logits.shape[2]), 1) ==
                                 tf.expand_dims(own, 2), axis=3)  # fmt: skip
        return step._replace(logits=tf.where(repeated, step.logits - 1, step.logits),
                             state=(step.state, own))  # fmt: skip

    def extend(self, state, length):
        state, own = state
        return super().extend(state, length), tf.pad(own, [[0, 0], [0, 0], [0, length]])

    def follow(self, state, parents):
        state, own = state
        return super().follow(state, parents), tf.gather(own, parents, batch_dims=1)


def test_a_predictor_that_extends_its_own_state_keeps_all_entries():
    predictor, source = Counting(talkative()), sources()
    assert not predictor.compacts
    found, expected = (
        by_beam(predictor, source, max_length=26, cache_stages=stages) for stages in ((3, 6), ())
    )
    np.testing.assert_array_equal(found[0], expected[0])


def test_a_position_in_a_compacted_cache_attends_to_the_entries_before_its_slot():
    """With a single hypothesis, which needs no mask."""
    layer, random = MultiHeadSelfAttention(2, causal=True), np.random.default_rng(1)
    layer.build((None, None, 6))
    x = tf.constant(random.normal(size=(1, 4, 6)), tf.float32)
    cache = layer.empty_cache(1, 3)
    for index in range(3):
        _, cache = layer.step(x[:, index : index + 1], cache, tf.constant(index))
    whole = layer.compacted_cache(cache, tf.constant([[0, 1, 2]]), 4, 1)
    output, _ = layer.step(x[:, 3:], whole, tf.constant(9), slot=tf.constant(3))
    np.testing.assert_allclose(output[:, 0], layer(x)[:, 3], rtol=0, atol=1e-5)


LIMIT = 26
BY_BEAM = functools.partial(
    by_beam, size=4, n_best=4, max_length=LIMIT, token_scores=True, alignment=(1, 0)
)


@pytest.mark.parametrize(
    ("kind", "stages", "jit_compile"),
    [
        ("model", None, False),
        ("ensemble", (3, 6, 12), False),
        ("rotary", (3, 6, 12), False),
        slow("model", (3, 6, 12), True),
        slow("model", (3, 6, 12), False),
    ],
)
def test_all_results_of_a_beam_are_the_same(kind, stages, jit_compile, monkeypatch):
    monkeypatch.setattr(compact_caches, "GROWTH", 4)
    model, source = talkative(), tf.constant(sources())
    if kind == "ensemble":
        model = Ensemble([model, talkative("post")])
    elif kind == "rotary":
        model = randomise(Transformer(small_config(position="rotary", d_k=4)))
    counts = []
    compact_ = EncoderDecoder.compact
    monkeypatch.setattr(
        EncoderDecoder, "compact", lambda *given: counts.append(given) or compact_(*given)
    )
    found, expected = (
        tf.function(
            lambda source, stages=stages: BY_BEAM(model, source, cache_stages=stages),
            jit_compile=jit_compile,
        )(source)
        for stages in (stages, ())
    )
    assert counts, "the first search drops entries"
    lengths = np.count_nonzero(expected["tokens"] != PAD, axis=-1)
    assert lengths.max() > 12
    np.testing.assert_array_equal(found["tokens"], expected["tokens"])
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-4, err_msg=name)


def test_a_search_can_keep_all_entries(monkeypatch):
    monkeypatch.setattr(EncoderDecoder, "compact", None)
    by_beam(talkative(), sources(), max_length=26, cache_stages=(3, 6), compact=False)
    with pytest.raises(TypeError):
        by_beam(talkative(), sources(), max_length=26, cache_stages=(3, 6))


def test_a_large_cache_of_a_tflite_file_keeps_all_entries():
    """Loops inside loops would hold it several times."""
    pipeline = types.SimpleNamespace(model=Transformer(small_config()))
    one = FixedSignature("beam4_1x5", 1, 5, 20, 4)
    many = dataclasses.replace(one, batch_size=100_000)
    assert searches._compacts(pipeline, one) and not searches._compacts(pipeline, many)


@pytest.mark.slow
def test_litert_finds_the_same():
    """Its loops repeat inside loops."""

    def search(source, **options):
        return by_beam(talkative(), source, size=4, max_length=LIMIT, **options)[0]

    assert_same_in_litert(talkative(), sources(), search, (3, 6, 12))
