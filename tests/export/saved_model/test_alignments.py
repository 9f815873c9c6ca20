"""The signature that returns the attention of each token of a translation."""

import click
import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from searching import by_beam, by_greedy

from keras_transformer.cli.main import cli
from keras_transformer.cli.opened import check_alignments
from keras_transformer.export import SavedModelTranslator
from keras_transformer.export.saved_model.loaders import SessionModel
from keras_transformer.opening.lines import LineFormat


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("greedy", marks=pytest.mark.slow),
        pytest.param("beam, compiled", marks=[pytest.mark.slow, pytest.mark.long]),
    ],
)
def exported(request, serving, translator):
    """A version, its layer and head, and its search from ids to ids."""
    spec = tf.TensorSpec([None, None], tf.int32)
    if request.param == "greedy":
        search = tf.function(lambda source: by_greedy(translator.model, source)[0], [spec])
        return serving[0] / "1", (-1, None), search
    beam, version = request.getfixturevalue("compiled")
    options = {"length_penalty": beam.length_penalty, "normalization": beam.normalization}
    search = tf.function(
        lambda source: by_beam(translator.model, source, beam.size, **options)[0][:, 0], [spec]
    )
    return version, (0, 1), search


@pytest.fixture(scope="module")
def run(exported):
    """A function from strings to the signature's outputs, loaded as by a server."""
    with SessionModel(exported[0]) as model:
        yield lambda batch: model.run("alignment", sentences=np.array(batch, object))


def lengths(strings):
    return [sum(map(bool, row)) for row in strings]


def attention(model, source, tokens, alignment):
    """Returns the model's attention to a source while it reads given tokens, `[T, S]`."""
    layer, head = alignment
    layer %= model.config.decoder_layers
    target = np.concatenate([[2], tokens[:-1]])[None].astype(np.int32)
    weights = model.attention_weights({"source": source[None], "target": target})
    weights = weights[f"decoder/block_{layer}/cross_attention"][0].numpy()  # [H, T, S]
    return weights.mean(axis=0) if head is None else weights[head]


def test_rows_are_the_attention_of_the_model_and_name_their_tokens(
    run, exported, translator, sentences
):
    _, alignment, search = exported
    sentences = sentences[-12:]
    answer, tokenizer = run(sentences), translator.source_tokenizer
    assert answer["alignment"].shape == (
        len(sentences),
        max(lengths(answer["target_pieces"])),
        max(lengths(answer["source_pieces"])),
    )
    spread = []
    for number, sentence in enumerate(sentences):
        source = translator.encode(tf.constant([sentence]))[0][0].numpy()  # [S]
        pieces = [piece.decode() for piece in answer["source_pieces"][number]]
        assert pieces == tokenizer.pieces(source) + [""] * (len(pieces) - len(source))
        output = search(source[None])[0].numpy()
        output = output[: np.count_nonzero(output)] if sentence.strip() else output[:0]  # [T]
        np.testing.assert_array_equal(answer["tokens"][number, : len(output)], output)
        assert not answer["tokens"][number, len(output) :].any()
        pieces = [piece.decode() for piece in answer["target_pieces"][number]]
        assert pieces == tokenizer.pieces(output) + [""] * (len(pieces) - len(output))
        weights = answer["alignment"][number]
        assert not weights[len(output) :].any() and not weights[:, len(source) :].any()
        if len(output):
            expected = attention(translator.model, source, output, alignment)
            np.testing.assert_allclose(weights[: len(output), : len(source)], expected, atol=1e-5)
            spread.append(np.ptp(expected, axis=0).max())
    # Rows that are alike would prove little.
    assert len(spread) >= len(sentences) - 2 and np.median(spread) > 0.3


def test_the_tokens_join_to_the_text(run, sentences):
    answer = run(sentences)
    for pieces, text in zip(answer["target_pieces"], answer["translation"], strict=True):
        words = b"".join(piece for piece in pieces if piece != b"</s>").decode()
        assert words.replace("▁", " ").strip() == text.decode()


@pytest.mark.slow
def test_translations_and_scores_are_those_of_the_default_signature(run, exported, sentences):
    answer = run(sentences)
    default = SavedModelTranslator(exported[0]).answer_batch(sentences)
    assert [text.decode() for text in answer["translation"]] == [output.text for output in default]
    assert answer["truncated"].tolist() == [output.truncated for output in default]
    scores = [output.score for output in default]
    assert answer["score"].tolist() == pytest.approx(scores, abs=1e-4)


def test_a_sentence_alone_has_the_same_alignment_as_in_a_batch(run, sentences):
    together = run(sentences)
    for number in (0, 3, len(sentences) - 4, len(sentences) - 2):
        alone = run(sentences[number : number + 1])
        rows, columns = alone["alignment"].shape[1:]
        assert lengths(alone["target_pieces"]) == [rows]
        assert lengths(alone["source_pieces"]) == [columns]
        np.testing.assert_allclose(
            together["alignment"][number, :rows, :columns], alone["alignment"][0], atol=1e-5
        )
        assert not together["alignment"][number, rows:].any()


@pytest.mark.parametrize("batch", [[], [""], [" ", "\n"]], ids=["none", "empty", "spaces"])
def test_empty_translations_have_no_rows(run, batch):
    answer = run(batch)
    assert {len(value) for value in answer.values()} == {len(batch)}
    assert answer["alignment"].shape == (len(batch), 0, 1 if batch else 0)
    assert answer["source_pieces"].ravel().tolist() == [b"</s>"] * len(batch)


@pytest.mark.slow
def test_a_figure_of_the_export_shows_the_attention_of_the_run(serving, translator, sentences):
    exported = SavedModelTranslator(serving[0])
    for sentence in (sentences[0], sentences[-3]):  # the second is truncated
        (cross,) = exported.attention(sentence).values()
        expected = translator.attention(sentence)["cross"]
        assert (cross.kind, cross.complete) == ("cross", False)
        assert (cross.queries, cross.keys) == (expected.queries, expected.keys)
        assert cross.truncated == expected.truncated == (sentence == sentences[-3])
        last = expected.weights[-1].mean(axis=0)  # mean of all heads
        np.testing.assert_allclose(cross.weights, last[None, None], atol=1e-5)
    with pytest.raises(ValueError, match="`sentence` must not be empty"):
        exported.attention(" ")


@pytest.mark.slow
def test_translate_writes_the_alignments_of_the_run(serving, translator, sentences, tmp_path):
    texts = [*sentences[:5], ""]
    expected = translator.align(texts)
    for ours, theirs in zip(SavedModelTranslator(serving[0]).align(texts), expected, strict=True):
        assert (ours.source, ours.target) == (theirs.source, theirs.target)
        np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-5)
    lines = tmp_path / "in.txt"
    lines.write_text("".join(f"{text}\n" for text in texts))
    arguments = ["translate", str(serving[0]), "--alignments", "--input", str(lines)]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.stderr
    form = LineFormat(alignments=True)
    assert done.stdout.splitlines()[:5] == [
        line for one in expected[:5] for line in form.lines(1, [one])
    ]


class Exported:
    """An opened export."""

    def __init__(self, aligns, has_languages=False):
        self.aligns, self.has_languages = aligns, has_languages


def test_an_export_without_attention_weights_says_how_to_get_them():
    check_alignments(Exported(True), "MODEL")
    with pytest.raises(click.UsageError, match="which MODEL does not return: export the run again"):
        check_alignments(Exported(False), "MODEL")
    with pytest.raises(click.UsageError, match="needs the run: MODEL does not say which"):
        check_alignments(Exported(True, has_languages=True), "MODEL")
