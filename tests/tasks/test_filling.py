"""A mask filler in use: words of the model for each mask, lines, limits and near ties."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from marks import slow
from pipelines import SIZES, filler, tokenizer, with_larger_weights, write_run

from keras_transformer.cli.main import cli
from keras_transformer.models import MaskedLanguageModel, MaskedLanguageModelConfig
from keras_transformer.pipelines import Filling, MaskFiller
from keras_transformer.tasks import TASKS, open_run
from keras_transformer.tasks.masked_language_modelling.masking import hide_tokens
from keras_transformer.text.byte_pairs import CHARACTERS
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.tokenizers import (
    ByteBPETokenizer,
    SentencePieceTokenizer,
    WordPieceTokenizer,
)

TASK = TASKS["masked_language_modelling"]
TEXTS = ["a <mask> runs", "the big <mask> and<mask>", "", "no mask", "<mask>"]
LONG = "the big dog <mask> and the cat and a dog <mask> and the big cat runs"


@functools.cache
def other(max_length=None, **options):
    config = MaskedLanguageModelConfig(vocab_size=30, **SIZES, **options)
    return MaskFiller(
        with_larger_weights(MaskedLanguageModel(config)), filler().tokenizers, max_length
    )


def ids_by_hand(text):
    """Tokens of a text whose segments are tokenised one by one."""
    known, ids = tokenizer(control=("<mask>",)), []
    for number, segment in enumerate(text.split("<mask>")):
        ids += [4] * (number > 0) + known.encode([segment]).to_list()[0][:-1]
    return ids


def words_by_hand(models, text, longest=11):
    """Returns words and probabilities at each mask, from all logits in float64."""
    ids = [*ids_by_hand(text)[: longest - 1], 3]
    logits = [np.asarray(model(np.array([ids]))[0], "float64") for model in models]
    shares = [np.exp(one) / np.exp(one).sum(-1, keepdims=True) for one in logits]
    shares = np.mean(shares, axis=0)[np.array(ids) == 4]
    best = np.argsort(-shares, axis=1)[:, :5]
    names = tokenizer(control=("<mask>",)).words()
    words = tuple(tuple(names[token] for token in row) for row in best)
    return words, np.take_along_axis(shares, best, 1)


def test_words_are_the_most_probable_of_the_model(batch_size=64):
    results = filler().answer([*TEXTS, LONG], batch_size=batch_size)
    for text, result in zip([*TEXTS, LONG], results, strict=True):
        words, shares = words_by_hand([filler().model], text)
        assert result.words == words
        np.testing.assert_allclose(result.probabilities, shares, rtol=0, atol=1e-5)
    assert [len(result.words) for result in results] == [1, 2, 0, 0, 1, 1]
    assert [result.truncated for result in results] == [False] * 5 + [True]
    assert filler()(TEXTS) == [result.text for result in results[:-1]]


@pytest.mark.slow
def test_an_ensemble_has_the_mean_of_the_probabilities():
    models = [filler().model, other(tie="none").model]
    ensemble = filler().with_model(models)
    for text, result in zip(TEXTS, ensemble.answer(TEXTS), strict=True):
        words, shares = words_by_hand(models, text)
        assert result.words == words
        np.testing.assert_allclose(result.probabilities, shares, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_a_lower_limit_truncates_more():
    short = MaskFiller(filler().model, filler().tokenizers, 4)
    first, second = short.answer(["a <mask> runs", "<mask> and a <mask>"])
    assert first.truncated and len(first.words) == 1
    assert second.truncated and second.words == words_by_hand([filler().model], TEXTS[4] + " and a",
                                                              4)[0]  # fmt: skip


@pytest.mark.slow
def test_static_shapes_give_the_same():
    inputs, _ = filler().codec.encode(tf.constant(TEXTS[:2]))
    dynamic = filler().predict(**inputs)

    def function(source):
        return filler().predict(source=source)

    spec = tf.TensorSpec([None, None], tf.int32)
    static, traced = function(inputs["source"]), tf.function(function, input_signature=[spec])
    for outputs in (static, traced(inputs["source"])):
        for name, values in dynamic.items():
            np.testing.assert_allclose(outputs[name], values, rtol=0, atol=1e-6)
    at_mask = inputs["source"].numpy() == 4
    assert (dynamic["tokens"].numpy()[~at_mask] == -1).all()
    assert not dynamic["probabilities"].numpy()[~at_mask].any()


def test_a_result_has_words_and_probabilities_separated_by_tabs():
    shares = np.array([[0.5, 0.25], [0.9, 0.05]], "float32")
    result = Filling((("cat", "a\tb"), (" dog", "")), shares, False)
    assert result.text == "cat\t0.5000\ta b\t0.2500\t dog\t0.9000\t\t0.0500"
    assert result.choice == "cat\ta b\t dog\t" and result.best == ["cat", "dog"]
    assert result.score == pytest.approx(np.log([0.5, 0.9]).mean(), abs=1e-6)
    theirs = Filling((("a\tb", "cat"), ("x", " dog")), shares, False)
    assert result.score_of(theirs) == pytest.approx(np.log([0.25, 0.05]).mean(), abs=1e-6)
    empty = Filling((), np.zeros((0, 5), "float32"), False)
    assert (empty.text, empty.score, empty.best) == ("", 0.0, [])


def filling(words, *shares):
    return Filling((tuple(words),), np.array([shares], "float32"), False)


@pytest.mark.parametrize(
    ("words", "shares", "tied"),
    [
        ("bac", (0.4, 0.4, 0.1), True),  # the first two change places
        ("abx", (0.4, 0.39995, 0.1), True),  # another last word, as probable as the last
        ("acb", (0.4, 0.39995, 0.1), False),
        ("axc", (0.4, 0.39995, 0.1), False),
        ("aac", (0.4, 0.39995, 0.1), False),
    ],
)
def test_a_result_is_tied_only_if_each_word_is_as_probable(words, shares, tied):
    ours = filling("abc", 0.4, 0.39995, 0.1)
    theirs = filling(words, *shares)
    assert ours.is_tied(theirs, 1e-4) == theirs.is_tied(ours, 1e-4) == tied
    assert not ours.is_tied(Filling((), np.zeros((0, 3), "float32"), False), 1e-4)


def test_a_text_without_a_mask_gets_one_to_check_an_export():
    samples = filler().check_samples(["a cat runs", "the big dog", "", "a <mask>", "x y z"])
    expected = ["<mask> cat runs", "the <mask> dog", "", "a <mask>", "x <mask> z"]
    assert samples == expected


def test_the_accuracy_of_references_counts_whole_lines():
    results = [filling("ab", 0.5, 0.4), Filling((("a",), (" b",)), np.ones((2, 1)), False)]
    assert filler().codec.quality(results, ["a", "a b"]) == {"accuracy": 100.0}
    assert filler().codec.quality(results, ["b", "a b"]) == {"accuracy": 50.0}


def test_an_evaluation_measures_the_hidden_tokens():
    """By hand: the tokens that `hide_tokens` hides, and the logits of the whole text."""
    texts = ["a cat runs", "the big dog and a cat", " ", "a dog runs and the cat"]
    log_p, right = [], []
    for text in texts:
        if not text.strip():
            continue
        ids = tf.constant([[*ids_by_hand(text)[:10], 3]])
        model = filler().model
        tokens, labels = hide_tokens(ids, filler().source_tokenizer, model.config)
        logits = np.asarray(model(tokens)[0], "float64")
        for place in np.flatnonzero(labels[0]):
            label = int(labels[0, place])
            log_p.append(logits[place, label] - np.log(np.exp(logits[place]).sum()))
            right.append(logits[place].argmax() == label)
    results = TASK.evaluate(filler(), [texts])
    assert results["perplexity"] == pytest.approx(np.exp(-np.mean(log_p)), rel=1e-4)
    assert results["accuracy"] == pytest.approx(100 * np.mean(right))
    counts = results["tokens"], results["texts"], results["truncated"]
    assert (
        counts == (len(right), 3, sum(len(ids_by_hand(text)) > 10 for text in texts)) and counts[2]
    )
    with pytest.raises(ValueError, match="at least one token to hide. Received: none"):
        TASK.evaluate(filler(), [["", " "]])


def test_a_tokenizer_without_a_mask_is_refused():
    with pytest.raises(ValueError, match="the vocabulary must have a mask token"):
        MaskFiller(filler().model, tokenizer())
    with pytest.raises(ValueError, match="must have a mask token"):
        tokenizer().encode_masked(["a <mask>"])


def bpe(strips):
    special = {"pad": "<pad>", "unk": "<unk>", "bos": "<s>", "eos": "</s>", "mask": "<mask>"}
    pieces = [*special.values(), *CHARACTERS]
    return ByteBPETokenizer(pieces, [], special, mask_strips=strips)


def wordpiece():
    special = {"pad": "[PAD]", "unk": "[UNK]", "bos": "[CLS]", "eos": "[SEP]", "mask": "[MASK]"}
    return WordPieceTokenizer([*special.values(), "a", "##b"], special=special)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bpe(True),
        slow(lambda: bpe(False)),
        wordpiece,
        slow(lambda: filler().source_tokenizer),
    ],
)
def test_files_of_a_tokenizer_keep_its_mask(make):
    known = make()
    again = Tokenizers.from_files(Tokenizers.of(known).files().get).source
    assert (again.mask, again.mask_id, again.mask_strips) == (
        known.mask, known.mask_id, known.mask_strips,
    )  # fmt: skip
    assert known.mask in ("<mask>", "[MASK]") and again.identity() == known.identity()
    text = f"a {known.mask} b{known.mask}"
    assert again.encode_masked([text]).to_list() == known.encode_masked([text]).to_list()
    assert known.mask_id not in known.encode([text]).to_list()[0]


def test_white_space_of_any_kind_before_a_mask_is_removed_if_the_tokenizer_says_so():
    rows = bpe(True).encode_masked(["a \u00a0\t\n<mask> b", "a<mask>  "]).to_list()
    names = [bpe(True).words()[token] for row in rows for token in row]
    assert names == ["<s>", "a", "<mask>", " ", "b", "</s>", "<s>", "a", "<mask>", " ", " ", "</s>"]


def test_words_have_the_marks_of_their_vocabulary():
    assert wordpiece().words()[-2:] == ["a", "##b"]
    names = bpe(False).words()
    assert names[5 + ord(" ")] == " " and names[5 + 0xC3] == "\ufffd" and names[4] == "<mask>"
    assert "\u2581" not in "".join(filler().source_tokenizer.words())
    assert isinstance(filler().source_tokenizer, SentencePieceTokenizer)


@pytest.mark.slow
def test_predict_warns_of_lines_without_a_mask(tmp_path):
    run = write_run(filler(), tmp_path / "run")
    assert isinstance(open_run(run), MaskFiller)
    lines = ["a <mask> runs", "a cat", "", LONG]
    done = CliRunner().invoke(cli, ["predict", str(run)], input="\n".join(lines) + "\n")
    assert done.exit_code == 0, done.output
    first, last = filler()([lines[0], LONG])
    assert done.stdout.splitlines() == [first, "", "", last]
    assert done.stderr.splitlines() == [
        "Warning: line 2: must have a mask, <mask>. Received: none; left empty",
        "Warning: line 4: longer than the model's limit; its end was cut off",
    ]
    done = CliRunner().invoke(cli, ["predict", str(run), "--strict"], input="a cat\n")
    assert done.exit_code == 1 and "line 1: must have a mask, <mask>. Rec" in done.stderr
    done = CliRunner().invoke(cli, ["predict", str(run), "--n-best", "3"], input="a\n")
    assert done.exit_code == 2 and "has no effect" in done.stderr
