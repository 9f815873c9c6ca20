"""Masks over tokens: how many there are, where, what they become, and what they depend on."""

import numpy as np
import pytest
import tensorflow as tf
from pipelines import SIZES, tokenizer

from keras_transformer.models import MaskedLanguageModelConfig
from keras_transformer.tasks.masked_language_modelling.masking import (
    hide_tokens,
    require_mask,
    seeds_from,
)

PAD, UNKNOWN, BEGIN, END, MASK = range(5)
KNOWN = tokenizer(control=("<mask>",))


def config(**options):
    return MaskedLanguageModelConfig(vocab_size=30, **SIZES, **options)


def rows(count, length, seed=0):
    """Texts of random tokens, some of them special, that end at different places."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(5, 30, (count, length)).astype("int32")
    tokens[:, 2], tokens[:, 0], tokens[:, 5] = UNKNOWN, BEGIN, MASK
    for row in tokens:
        end = rng.integers(7, length)
        row[end], row[end + 1 :] = END, PAD
    return tokens


def seeds(count, seed=1):
    return seeds_from(tf.constant(np.random.default_rng(seed).random((count, 2)), tf.float32))


def hidden(tokens, *arguments, **options):
    masked = hide_tokens(tf.constant(tokens), KNOWN, config(**options), *arguments)
    return [tensor.numpy() for tensor in masked]


@pytest.mark.parametrize("rate", [0.15, 0.5, 0.01])
def test_the_number_of_hidden_tokens_is_the_rounded_rate_and_none_is_special(rate):
    tokens = rows(500, 41)
    changed, labels = hidden(tokens, seeds(500), masking_rate=rate)
    ordinary = tokens > MASK
    counts = ordinary.sum(axis=1)
    expected = np.maximum(1, np.floor(rate * counts + 0.5))
    chosen = labels != PAD
    np.testing.assert_array_equal(chosen.sum(axis=1), expected)
    assert not chosen[~ordinary].any()
    np.testing.assert_array_equal(labels[chosen], tokens[chosen])
    np.testing.assert_array_equal(changed[~chosen], tokens[~chosen])


def test_of_ten_hidden_tokens_eight_are_masks_and_one_is_another_token():
    tokens = rows(3000, 41)
    changed, labels = hidden(tokens, seeds(3000), masking_rate=0.3)
    chosen = labels != PAD
    now, before = changed[chosen], labels[chosen]
    shares = [np.mean(now == MASK), np.mean(now == before)]
    count = chosen.sum()
    # A token drawn at random is the same one as before in one of 25 cases.
    for share, expected in zip(shares, (0.8, 0.1 + 0.1 / 25), strict=True):
        assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / count)
    drawn = now[(now != MASK) & (now != before)]
    assert drawn.min() > MASK and {*drawn} == {*range(5, 30)}
    # Every place is equally likely.
    places = np.where(tokens > MASK, chosen, np.nan)[:, 6:20]
    means = np.nanmean(places, axis=0)
    assert means.std() < 0.03 and abs(means.mean() - 0.3) < 0.02


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"mask_share": 1.0, "random_share": 0.0}, "masks"),
        ({"mask_share": 0.0, "random_share": 0.0}, "tokens"),
        ({"mask_share": 0.0, "random_share": 1.0}, "others"),
    ],
)
def test_the_shares_are_settings(options, kept):
    changed, labels = hidden(rows(50, 41), seeds(50), **options)
    now, before = changed[labels != PAD], labels[labels != PAD]
    if kept == "masks":
        assert (now == MASK).all()
    elif kept == "tokens":
        assert (now == before).all()
    else:
        assert (now > MASK).all() and np.mean(now == before) < 0.2


def test_masks_depend_on_the_seed_of_each_text():
    tokens = rows(60, 30)
    ours, again = hidden(tokens, seeds(60)), hidden(tokens, seeds(60))
    np.testing.assert_array_equal(ours[0], again[0])
    others = hidden(tokens, seeds(60, seed=2))
    assert np.mean((ours[1] != others[1]).any(axis=1)) > 0.7
    longest = tokens[np.argmax((tokens != PAD).sum(axis=1))]
    copies = np.repeat(longest[None], 60, axis=0)  # equal texts with different seeds
    assert len({row.tobytes() for row in hidden(copies, seeds(60))[1]}) > 10


@pytest.mark.parametrize("given", [False, True], ids=["of the tokens", "given"])
def test_padding_and_neighbours_change_nothing(given):
    tokens = rows(20, 30)
    numbers = seeds(20)
    whole = hidden(tokens, *([numbers] if given else []))
    for number in (0, 7, 19):
        length = int((tokens[number] != PAD).sum())
        own = [numbers[number : number + 1]] if given else []
        for width in (length, 30, 44):
            row = np.zeros((1, width), "int32")
            row[0, :length] = tokens[number, :length]
            for one, other in zip(hidden(row, *own), whole, strict=True):
                np.testing.assert_array_equal(one[0, :length], other[number, :length])
                assert not one[0, length:].any()


def test_without_a_seed_the_masks_depend_on_all_tokens_and_their_order():
    rng = np.random.default_rng(0)
    tokens = np.sort(rng.integers(5, 30, (1, 24)), axis=1).astype("int32")
    orders = np.concatenate([rng.permuted(tokens, axis=1) for _ in range(40)])
    places = hidden(orders)[1] != PAD
    assert len({row.tobytes() for row in places}) > 30


def test_a_text_without_a_token_to_hide_stays_as_it_is():
    tokens = np.array([[END, PAD, PAD], [UNKNOWN, MASK, END], [PAD] * 3, [7, END, PAD]], "int32")
    changed, labels = hidden(tokens, seeds(4))
    np.testing.assert_array_equal(changed[:3], tokens[:3])
    assert not labels[:3].any() and labels[3].tolist() == [7, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
def test_a_graph_and_xla_hide_the_same_tokens(jit):
    tokens = tf.constant(rows(9, 30))
    function = tf.function(
        lambda tokens: hide_tokens(tokens, KNOWN, config(), seeds(9)), jit_compile=jit
    )
    for one, other in zip(function(tokens), hide_tokens(tokens, KNOWN, config(), seeds(9)),
                          strict=True):  # fmt: skip
        np.testing.assert_array_equal(one, other)


def test_a_vocabulary_without_a_mask_is_reported_in_one_line():
    with pytest.raises(ValueError, match="must have a mask token.*30 tokens without") as error:
        require_mask(tokenizer())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"masking_rate": 0.0}, "`masking_rate` must be above 0"),
        ({"masking_rate": 1.0}, "`masking_rate` must be at least 0 and below 1"),
        ({"mask_share": -0.1}, "`mask_share` must be from 0 to 1"),
        ({"random_share": 1.5}, "`random_share` must be from 0 to 1"),
        ({"random_share": 0.3}, "sum of `mask_share` and `random_share` must be at most 1"),
        ({"transform": False, "transform_activation": "relu"}, "no effect without `transform`"),
        ({"transform": False, "embedding_size": 6}, "`embedding_size` needs `transform` or `tie="),
    ],
)
def test_options_that_contradict_each_other_are_reported(options, message):
    with pytest.raises(ValueError, match=message):
        config(**options)
    assert config(mask_share=0.9, random_share=0.1).head.mask_share == 0.9
