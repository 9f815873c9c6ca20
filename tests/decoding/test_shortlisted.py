"""Searches among the candidates of a shortlist, against loops over masked logits of all tokens."""

import functools

import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import slow
from searching import by_beam, by_greedy
from support import normal, randomise, small_config

from keras_transformer import Beam, Greedy, Transformer
from keras_transformer.decoding import (
    Constraints,
    Ensemble,
    Sample,
    SearchOptions,
    Shortlist,
    Shortlisted,
    score,
)
from keras_transformer.export.litert.engines import load_interpreter
from keras_transformer.export.litert.tensorflow_converter import convert_functions

V, FIRST, LIMIT = 43, 5, 7
PAD, BOS, EOS = 0, 2, 3
SOURCES = np.array([[7, 8, 11, 3, 0], [9, 20, 40, 41, 3], [13, 3, 0, 0, 0]], "int32")
KINDS = {
    "shared": {},
    "separate": {"tie": "target", "target_vocab_size": 37},
    "untied, with a bias": {"tie": "none", "output_bias": True},
    # The ids of the end and of padding are far from the beginning of the vocabulary.
    "end": {"eos_id": 41, "pad_id": 42, "bos_id": 42},
}
# Tokens that the model never emits, at the beginning of the vocabulary and later, and a forced end.
OUTPUTS = {"banned_ids": (1, 9, 42), "suppressed_ids": (4, 20), "forced_eos_id": 35}
OUTPUTS = {**OUTPUTS, "pad_id": 42, "bos_id": 42}


@functools.cache
def model(kind="shared", seed=0, **other):
    """A model whose outputs differ in words and lengths; see `uncertain_models.talkative`."""
    changes = {**(OUTPUTS if kind == "outputs" else KINDS[kind]), **other}
    config = small_config(vocab_size=V, position="learned", norm="pre", **changes)
    made = randomise(Transformer(config), seed)
    factors = {"positions": 20, "query/kernel": 4, "attention/output/kernel": 4, "beta": 0}
    for weight in made.weights:
        for path, factor in factors.items():
            if weight.path.endswith(path):
                weight.assign(weight * factor)
    tied = config.head.tie != "none"
    weights = made.target_embedding.table if tied else made.output_layer.kernel
    matrix = 2 * (weights.numpy() if tied else weights.numpy().T)  # [V, D]
    matrix[[config.tokens.pad_id, config.tokens.bos_id]] = 0
    matrix[config.tokens.eos_id] *= 1.5
    weights.assign(matrix if tied else matrix.T)
    return made


def shortlist(kind="shared"):
    """Up to four random target tokens for each source token, never padding."""
    rng, size = np.random.default_rng(4), model(kind).config.output_size
    lists = [rng.choice(size, rng.integers(0, 5), replace=False) for _ in range(V)]
    lists[model(kind).config.tokens.pad_id] = [30, 31]  # never in a sentence
    ends = np.cumsum([0, *map(len, lists)])
    return Shortlist(FIRST, 4, ends, np.concatenate(lists).astype(int))


def sources(kind="shared"):
    config = model(kind).config
    changed = {PAD: config.tokens.pad_id, EOS: config.tokens.eos_id}
    return np.vectorize(lambda token: changed.get(token, token))(SOURCES).astype("int32")


def candidates(kind="shared"):
    """Returns the tokens that each source may become, boolean [B, V], computed token by token."""
    config, lists = model(kind).config, shortlist(kind)
    allowed = np.zeros((3, config.output_size), bool)
    allowed[
        :, [*range(FIRST), config.tokens.pad_id, config.tokens.bos_id, config.tokens.eos_id]
    ] = True
    for row, source in zip(allowed, sources(kind), strict=True):
        for piece in source[source != config.tokens.pad_id]:
            row[lists.ids[lists.offsets[piece] : lists.offsets[piece + 1]]] = True
            if config.head.target_vocab_size is None:
                row[piece] = True
    assert allowed.sum(axis=1).min() > 3 and allowed.any(axis=0).sum() < 0.9 * allowed.shape[1]
    return allowed


def masked(kind, allowed, prefix=None):
    """Returns a function from source and target to logits, with -1e9 for all other tokens."""
    rows = {tuple(source): mask for source, mask in zip(sources(kind), allowed, strict=True)}

    def logits_of(source, target):
        logits = np.array(model(kind)({"source": source, "target": target}))
        mask = np.array([rows[tuple(row)] for row in source])
        return np.where(mask[:, None], logits, -1e9)

    return logits_of


def members(kind="shared"):
    """Returns two models, one with a layer less in its decoder."""
    return model(kind), model(kind, seed=5, num_decoder_layers=1)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "sizes"),
    [
        (Greedy(), (32,)),
        *(
            pytest.param(search, sizes, marks=pytest.mark.long)
            for search, sizes in ((Greedy(), (8,)), (Beam(3, length_penalty=0.6), (32,)))
        ),
    ],
    ids=str,
)
def test_several_models_average_their_probabilities_among_the_candidates(search, sizes):
    """Loops in float64: each model's softmax covers only the candidates of the source."""
    mask = candidates()[:, None]

    def logits_of(source, target):
        rows = [sources().tolist().index(row.tolist()) for row in source]
        shares = []
        for one in members():
            logits = np.asarray(one({"source": source, "target": target}), "float64")
            exponentials = np.where(mask[rows], np.exp(logits), 0)
            shares.append(exponentials / exponentials.sum(-1, keepdims=True))
        return np.log(np.maximum(np.mean(shares, axis=0), 1e-300))

    found = search(
        Shortlisted(Ensemble(members()), shortlist(), sizes),
        sources(),
        SearchOptions(n_best=1, cache_length=LIMIT),
    )
    if isinstance(search, Greedy):
        tokens, scores = reference.greedy(logits_of, sources(), LIMIT, *special("shared"))
    else:
        penalty = functools.partial(reference.normalized, normalization="gnmt", length_penalty=0.6)
        best = [
            reference.beam(logits_of, source, 3, penalty, 1, LIMIT, *special("shared"))[0]
            for source in sources()
        ]
        scores = [value for value, _ in best]
        tokens = np.array([[*row, *[PAD] * (LIMIT - len(row))] for _, row in best])
    np.testing.assert_array_equal(found.tokens[:, 0], tokens)
    np.testing.assert_allclose(found.scores[:, 0], scores, atol=1e-4)
    reverse = Shortlisted(Ensemble(members()[::-1]), shortlist(), sizes)
    np.testing.assert_array_equal(
        search(reverse, sources(), SearchOptions(n_best=1, cache_length=LIMIT)).tokens, found.tokens
    )


@pytest.mark.slow
def test_several_models_score_and_align_among_the_candidates():
    both, same = (Shortlisted(Ensemble(pair), shortlist()) for pair in (members(), [model()] * 2))
    target = by_greedy(both, sources(), LIMIT)[0]
    each = [np.exp(score(Shortlisted(one, shortlist()), sources(), target)[0]) for one in members()]
    expected = np.where(target == PAD, 0, np.log(np.mean(each, axis=0)))
    np.testing.assert_allclose(score(both, sources(), target)[0], expected, atol=1e-4)
    options = {"alignment": (-1, None)}
    ours = by_greedy(same, sources(), LIMIT, **options)
    theirs = by_greedy(Shortlisted(model(), shortlist()), sources(), LIMIT, **options)
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-4)


def special(kind):
    config = model(kind).config
    return config.tokens.bos_id, config.tokens.eos_id, config.tokens.pad_id


def test_one_table_is_one_vocabulary_whether_or_not_both_sizes_are_given():
    """Two SentencePiece models with one table of ids, as in most OPUS-MT models."""
    named = Transformer(small_config(vocab_size=V, tie="all", target_vocab_size=V))
    allowed = Shortlisted(named, shortlist()).lists.allowed(tf.constant(sources()))
    np.testing.assert_array_equal(allowed, candidates())


SIZES = [None, (24,), (8, 16, 24), (32,)]  # too few for this batch, and enough


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [slow("shared", None), slow("untied, with a bias", (32,)), slow("end", (32,))],
)
def test_greedy_takes_the_most_probable_candidate(kind, sizes):
    restricted = Shortlisted(model(kind), shortlist(kind), sizes)
    tokens, scores = by_greedy(restricted, sources(kind), LIMIT)
    logits_of = masked(kind, candidates(kind))
    expected = reference.greedy(logits_of, sources(kind), LIMIT, *special(kind))
    assert tokens.numpy().tolist() == expected[0].tolist()
    np.testing.assert_allclose(scores, expected[1], atol=1e-4)
    free, _ = by_greedy(model(kind), sources(kind), LIMIT)
    assert free.numpy().tolist() != tokens.numpy().tolist(), "the shortlist forbids nothing"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "sizes"), [("shared", (32,)), slow("separate", (32,)), slow("end", (32,))]
)
def test_a_beam_ranks_by_probabilities_among_the_candidates(kind, sizes):
    restricted = Shortlisted(model(kind), shortlist(kind), sizes)
    found = Beam(3, length_penalty=0.6)(
        restricted, sources(kind), SearchOptions(n_best=2, cache_length=LIMIT)
    )
    logits_of = masked(kind, candidates(kind))
    penalty = functools.partial(reference.normalized, normalization="gnmt", length_penalty=0.6)
    for number, source in enumerate(sources(kind)):
        best = reference.beam(logits_of, source, 3, penalty, 1, LIMIT, *special(kind))[:2]
        for (value, sequence), tokens, ours in zip(
            best, found.tokens[number].numpy(), found.scores[number].numpy(), strict=True
        ):
            assert tokens[: len(sequence)].tolist() == sequence
            np.testing.assert_allclose(ours, value, atol=1e-4)


def test_the_tokens_are_those_of_a_search_in_which_all_others_are_banned():
    """Only the scores differ: without a shortlist they are normalised over all tokens."""
    restricted = Shortlisted(model(), shortlist(), (32,))
    banned = Constraints(banned=~candidates())
    options = {"constraints": Constraints(), "token_scores": True, "alignment": (-1, None)}
    ours = by_greedy(restricted, sources(), LIMIT, **options)
    theirs = by_greedy(model(), sources(), LIMIT, **{**options, "constraints": banned})
    np.testing.assert_array_equal(ours["tokens"], theirs["tokens"])
    np.testing.assert_allclose(ours["alignment"], theirs["alignment"], atol=1e-5)
    target = np.concatenate([np.full((3, 1), BOS), ours["tokens"][:, :-1]], axis=1)
    logits = np.array(model()({"source": sources(), "target": target}), "float64")
    shares = np.where(candidates()[:, None], np.exp(logits), 0).sum(-1) / np.exp(logits).sum(-1)
    # Relative to the total share of all candidates.
    gain = np.where(ours["tokens"] == PAD, 0, np.log(shares))
    np.testing.assert_allclose(ours["token_scores"] + gain, theirs["token_scores"], atol=1e-4)
    assert np.abs(gain).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("search", [Sample(seed=3)], ids=str)
def test_neither_the_sizes_nor_the_batch_change_a_result(search):
    """Fewer logits, different graphs, another order of sums: the tokens are the same."""
    results = [
        search(
            Shortlisted(model(), shortlist(), sizes), sources(), SearchOptions(cache_length=LIMIT)
        )
        for sizes in SIZES
    ]
    for found in results[1:]:
        np.testing.assert_array_equal(found.tokens, results[0].tokens)
        np.testing.assert_allclose(found.scores, results[0].scores, atol=1e-4)
    if isinstance(search, Sample):
        return  # a sample depends on its place in the batch
    for number, source in enumerate(sources()):
        alone = source[source != PAD][None]
        found = search(
            Shortlisted(model(), shortlist(), (24,)), alone, SearchOptions(cache_length=LIMIT)
        )
        np.testing.assert_array_equal(found.tokens[0], results[0].tokens[number])
        np.testing.assert_allclose(found.scores[0], results[0].scores[number], atol=1e-4)


@pytest.mark.parametrize("search", [Beam(3)], ids=str)
def test_a_token_that_a_model_never_emits_is_no_candidate(search):
    """The search of all tokens, with a mask, applies these rules to the original ids."""
    found = {
        sizes: search(
            Shortlisted(model("outputs"), shortlist("outputs"), sizes),
            sources("outputs"),
            SearchOptions(cache_length=3),
        )
        for sizes in (None, (32,))
    }
    np.testing.assert_array_equal(found[None].tokens, found[32,].tokens)
    np.testing.assert_allclose(found[None].scores, found[32,].scores, atol=1e-4)
    best = found[None].tokens.numpy().reshape(3, -1, 3)[:, 0]
    assert not np.isin(best, [1, 4, 9, 20]).any()
    assert set(best[:, 2]) <= {35, 42} and 35 in best[:, 2], "the last token is the end"
    restricted = Shortlisted(model("outputs"), shortlist("outputs"), (32,))
    free = by_greedy(model("outputs"), sources("outputs"), 3)[0].numpy()
    assert free.tolist() != by_greedy(restricted, sources("outputs"), 3)[0].numpy().tolist()


@pytest.mark.slow
def test_constraints_still_apply(sizes=(32,)):
    """A forced token becomes a candidate of its sentence; a banned token is removed."""
    banned = np.zeros((3, V), bool)
    free = by_greedy(Shortlisted(model(), shortlist()), sources(), LIMIT)[0].numpy()
    for row, tokens in zip(banned, free, strict=True):
        row[tokens[0]] = True
    # Tokens that are in no shortlist of the sentence.
    other = [int(np.flatnonzero(~row)[-1]) for row in candidates()]
    prefix = [[other[0], PAD], [4, other[1]], [PAD, PAD]]
    allowed = candidates()
    allowed[0, other[0]] = allowed[1, other[1]] = True

    def logits_of(source, target):
        logits = masked("shared", allowed)(source, target)
        logits[:, -1][banned | np.isin(np.arange(V), [PAD, BOS])] = -1e9
        place = target.shape[1] - 1
        for row, forced in zip(logits, prefix, strict=True):
            if place < 2 and forced[place] != PAD:
                row[-1, forced[place]] = 1e9
        return logits

    rules = Constraints(prefix=prefix, banned=banned)
    restricted = Shortlisted(model(), shortlist(), sizes)
    tokens, scores = by_greedy(restricted, sources(), LIMIT, constraints=rules)
    expected, _ = reference.greedy(logits_of, sources(), LIMIT, BOS, EOS, PAD)
    assert tokens.numpy().tolist() == expected.tolist()
    assert [tokens[0, 0], tokens[1, 1]] == other[:2]
    beam, values = by_beam(restricted, sources(), 1, constraints=rules, max_length=LIMIT)
    np.testing.assert_array_equal(beam[:, 0], tokens)
    assert np.isfinite(values).all() and np.isfinite(scores).all() and np.min(scores) > -1e6


@pytest.mark.parametrize("sizes", [(), (32,)])
def test_a_prefix_may_contain_a_token_that_the_model_bans(sizes):
    """It is not a candidate and gets a place of its own among the candidates."""
    # 42 is padding: from there the search is free.
    rules = Constraints(prefix=[[9, 42], [1, 9], [42, 20]])
    restricted = Shortlisted(model("outputs"), shortlist("outputs"), sizes)
    found = Greedy()(
        restricted, sources("outputs"), SearchOptions(cache_length=4, constraints=rules)
    )
    tokens = found.tokens.numpy()[:, 0]
    assert tokens[0, 0] == 9 and tokens[1, :2].tolist() == [1, 9] and tokens[2, 1] == 20
    assert not np.isin(tokens[:, 2:], [1, 4, 9, 20]).any()


@pytest.mark.parametrize("sizes", [(), (32,)])
def test_terms_are_candidates_and_phrases_of_other_tokens_have_no_effect(sizes):
    """The same ids are meant with and without a vocabulary of the candidates."""
    others = [np.flatnonzero(~row)[2 * b :][:2] for b, row in enumerate(candidates())]
    terms = np.array([[[others[0]]], [[[PAD, PAD]]], [[[others[2][1], PAD]]]], "int32")
    restricted = Shortlisted(model(), shortlist(), sizes)
    plain = Beam(4)(restricted, sources(), SearchOptions(cache_length=6)).tokens.numpy()[:, 0]
    phrases = np.array([*plain[:2, :2], others[1], [others[0][0], EOS]], "int32")
    rules = Constraints(terms=terms, banned_phrases=phrases)
    found = Beam(4)(restricted, sources(), SearchOptions(cache_length=6, constraints=rules))
    rows = [f" {' '.join(map(str, row))} " for row in found.tokens.numpy()[:, 0]]
    assert " {} {} ".format(*others[0]) in rows[0] and f" {others[2][1]} " in rows[2]
    assert not {*others[1]} & {*found.tokens.numpy()[1, 0]}
    assert not any(" {} {} ".format(*pair) in row for pair in phrases for row in rows)


def test_given_outputs_are_scored_among_the_candidates():
    restricted = Shortlisted(model(), shortlist())
    tokens, scores = by_greedy(restricted, sources(), LIMIT)
    gains, sums = score(restricted, sources(), tokens)
    np.testing.assert_allclose(sums, scores, atol=1e-4)
    np.testing.assert_array_equal(gains.numpy()[tokens.numpy() == PAD], 0)


def test_the_logits_of_a_few_tokens_are_those_of_all():
    for kind in KINDS:
        tokens, hidden = np.array([5, 0, 31, 5, 36]), normal(2, 3, model(kind).config.d_model)
        few = model(kind).output_weights.of_tokens(tokens)(hidden)
        whole = hidden @ np.array(model(kind).output_matrix).T
        if model(kind).output_bias is not None:
            whole += model(kind).output_bias.numpy()
        np.testing.assert_allclose(few, whole[:, :, tokens], atol=1e-4)


def graph(restricted, batch, jit_compile=False):
    def search(source):
        found = Beam(2)(restricted, source, SearchOptions(cache_length=LIMIT))
        return {"tokens": tf.maximum(found.tokens, 0), "score": tf.minimum(found.scores, 0.0)}

    signature = [tf.TensorSpec([batch, SOURCES.shape[1]], tf.int32, name="source")]
    return tf.function(search, signature, autograph=False, jit_compile=jit_compile)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("sizes", [None, (24,)])
@pytest.mark.parametrize("runtime", ["XLA", "LiteRT"])
def test_it_compiles_for_every_runtime(sizes, runtime):
    restricted = Shortlisted(model(), shortlist(), sizes)
    expected = graph(restricted, None)(sources())
    if runtime == "XLA":
        outputs = graph(restricted, None, jit_compile=True)(sources())
    else:
        functions = {"search": graph(restricted, 3).get_concrete_function()}
        content = convert_functions(model(), functions)
        interpreter = load_interpreter()(model_content=content)
        outputs = interpreter.get_signature_runner("search")(source=sources())
    np.testing.assert_array_equal(outputs["tokens"], expected["tokens"])
    np.testing.assert_allclose(outputs["score"], expected["score"], atol=1e-4)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Shortlisted("model", shortlist()), TypeError, "`model` must be a Transformer"),
        (lambda: Shortlisted(model(), shortlist(), (16, 8)), ValueError, "`sizes` must be incr"),
        (lambda: Shortlisted(model(), shortlist(), (12,)), ValueError, "multiples of 8"),
        (lambda: Shortlisted(model(), shortlist(), (0,)), ValueError, "`sizes` must be at least"),
        (
            lambda: Shortlisted(model("separate"), shortlist()),
            ValueError,
            "43 source tokens, and target ids below 37",
        ),
        (
            lambda: by_greedy(Ensemble([Shortlisted(model(), shortlist())]), sources()),
            ValueError,
            "cannot be part of another predictor, such as an `Ensemble`",
        ),
        (
            lambda: by_greedy(
                Shortlisted(model(), shortlist(), (32,)),
                sources(),
                constraints=Constraints(banned=[True]),
            ),
            ValueError,
            "`banned` must be booleans",
        ),
        (
            lambda: by_greedy(
                Shortlisted(model(), shortlist()), sources(), constraints=Constraints(prefix=[1])
            ),
            ValueError,
            "`prefix` must be token ids",
        ),
    ],
)
def test_mistakes_are_reported(make, error, message):
    with pytest.raises(error, match=message):
        make()
