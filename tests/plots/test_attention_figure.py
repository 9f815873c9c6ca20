"""The figures of attention show the weights next to their tokens."""

import re
import subprocess
import sys

import numpy as np
import pytest

from keras_transformer.installation import install_hint
from keras_transformer.pipelines import Attention
from keras_transformer.plots.attention import alignment_figure, attention_figure, choose
from keras_transformer.plots.attention_page import attention_page
from keras_transformer.plots.figure import save_figure

QUERIES, KEYS = ["▁ein", "▁$", "</s>"], ["▁a", "$", "_b", "^", "</s>"]
LAYERS, HEADS = 2, 4


def weights(*shape):
    scores = np.exp(np.random.default_rng(1).normal(size=shape))
    return (scores / scores.sum(axis=-1, keepdims=True)).astype("float32")


def cross(**changes):
    fields = {"weights": weights(LAYERS, HEADS, len(QUERIES), len(KEYS)), **changes}
    return Attention("cross", QUERIES, KEYS, **fields)


def panels(figure):
    """Returns the axes with an image, without the colour bar."""
    return [axes for axes in figure.axes if axes.images]


def texts(labels):
    return [label.get_text() for label in labels]


def test_the_mean_of_all_layers_and_heads():
    attention = cross()
    figure = attention_figure(attention)
    (axes,) = panels(figure)
    np.testing.assert_array_equal(axes.images[0].get_array(), attention.mean())
    assert axes.images[0].get_clim() == (0, attention.mean().max())
    assert texts(axes.get_xticklabels()) == KEYS
    assert texts(axes.get_yticklabels()) == QUERIES
    title = "Attention of the decoder to the source,\nmean of 2 layers × 4 heads"
    assert figure.get_suptitle() == title
    assert figure.axes[-1].get_ylabel() == "attention weight"


def test_every_layer_is_a_row_and_every_head_a_column():
    attention = cross()
    axes = panels(attention_figure(attention, layers=True))
    assert len(axes) == LAYERS * HEADS
    for number, ax in enumerate(axes):
        layer, head = divmod(number, HEADS)
        expected = attention.weights[layer, head]
        np.testing.assert_array_equal(ax.images[0].get_array(), expected)
        assert ax.images[0].get_clim() == (0, attention.weights.max()), "one scale for all"
        assert ax.get_title() == (f"head {head + 1}" if layer == 0 else "")
        assert ax.get_ylabel() == (f"layer {layer + 1}" if head == HEADS - 1 else "")
        shown = [label for label in ax.get_xticklabels() if label.get_visible()]
        if layer == 0:
            assert texts(shown) == KEYS


def test_an_export_has_one_matrix():
    export = cross(weights=weights(1, 1, len(QUERIES), len(KEYS)), complete=False)
    figure = attention_figure(export)
    (axes,) = panels(figure)
    np.testing.assert_array_equal(axes.images[0].get_array(), export.weights[0, 0])
    assert figure.get_suptitle() == "Attention of the decoder to the source"
    with pytest.raises(ValueError, match="`layers` must be False .*Received: layers=True"):
        attention_figure(export, layers=True)


@pytest.mark.parametrize(("layers", "heads", "pieces"), [(1, 1, 1), (12, 16, 60)])
def test_figures_of_any_size_have_a_printable_size(layers, heads, pieces):
    names = ["▁piece"] * pieces
    attention = Attention("encoder", names, names, weights(layers, heads, pieces, pieces))
    figure = attention_figure(attention, layers=layers < 12)
    width, height = figure.get_size_inches()
    assert 1.2 < width < 21 and 1.2 < height < 21
    font = panels(figure)[0].get_xticklabels()[0].get_fontsize()
    assert 3.5 <= font <= 8


def test_a_kind_is_chosen_and_the_first_is_the_default():
    one, two = cross(), Attention("encoder", KEYS, KEYS, weights(1, 1, 5, 5))
    assert choose({"cross": one, "encoder": two}) is one
    assert choose({"cross": one, "encoder": two}, "encoder") is two
    with pytest.raises(ValueError, match="`kind` must be one of cross. Received: kind='decoder'"):
        choose({"cross": one}, "decoder")
    for kind in (None, "cross"):
        with pytest.raises(ValueError, match="The model has no attention to draw: no layer"):
            choose({}, kind)
    with pytest.raises(ValueError, match="The model has no attention to draw: no layer"):
        attention_page({})


def test_a_file_is_written_completely_and_reproducibly(tmp_path, suffix=".SVG", magic=b"<?xml"):
    """Tokens with a dollar are not formulas, in which `$_b^$` would be an error."""
    first, second = tmp_path / "new" / f"a{suffix}", tmp_path / "new" / f"b{suffix}"
    for path in (first, second):
        save_figure(attention_figure(cross(), layers=True), path)
    assert first.read_bytes().startswith(magic)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(first.parent.iterdir()) == [first, second]


@pytest.mark.parametrize("name", ["x.jpg", "x", "x.png.gz"])
def test_an_unknown_extension_is_refused(tmp_path, name):
    rule = r"`path` must end in .png or .svg or .pdf. Received: "
    with pytest.raises(ValueError, match=rule):
        save_figure(attention_figure(cross()), tmp_path / "new" / name)
    assert not list(tmp_path.iterdir())


def test_an_existing_file_stays_if_writing_fails(tmp_path, monkeypatch):
    path, figure = tmp_path / "x.png", attention_figure(cross())
    path.write_bytes(b"old")

    def fail(*arguments, **options):
        raise OSError("no space left")

    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(OSError, match="no space"):
        save_figure(figure, path)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "name", ["matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"]
)
def test_without_matplotlib_one_line_gives_the_install_command(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=re.escape(install_hint("plot"))):
        attention_figure(cross())


@pytest.mark.long
@pytest.mark.slow
def test_matplotlib_is_only_imported_to_draw():
    code = (
        "import sys; sys.modules['matplotlib'] = None; from keras_transformer.plots "
        "import masks, attention, attention_page, curves, positions, schedule, structure"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_attention_between_words_adds_up_over_keys_and_averages_over_queries():
    queries, keys = ["▁ei", "n", "▁Hund", "</s>"], ["▁a", "▁d", "o", "g", "</s>", "<0xC3>"]
    whole = Attention("cross", queries, keys, weights(2, 3, 4, 6))
    words = whole.by_words()
    assert words.queries == ["ein", "Hund", "</s>"]
    assert words.keys == ["a", "dog", "</s>", "<0xC3>"]
    groups = ([0, 1], [2], [3]), ([0], [1, 2, 3], [4], [5])
    for layer, head, row, column in np.ndindex(2, 3, 3, 4):
        rows, columns = groups[0][row], groups[1][column]
        expected = np.mean([whole.weights[layer, head, r, columns].sum() for r in rows])
        np.testing.assert_allclose(words.weights[layer, head, row, column], expected, atol=1e-6)
    np.testing.assert_allclose(words.weights.sum(axis=-1), 1, atol=1e-6)


def test_an_unknown_character_is_a_part_of_its_word():
    """SentencePiece writes the mark of a word before it as a token of its own."""
    tokens = ["▁", "<unk>", "▁do", "<unk>", "g", "</s>"]
    words = Attention("cross", ["▁ein"], tokens, weights(1, 1, 1, 6)).by_words()
    assert words.keys == ["<unk>", "do<unk>g", "</s>"]


def test_an_alignment_is_white_where_attention_is_1():
    attention = cross()
    figure = alignment_figure(attention)
    (axes,) = panels(figure)
    words = attention.by_words()
    np.testing.assert_allclose(axes.images[0].get_array(), words.mean(), atol=1e-6)
    assert axes.images[0].get_clim() == (0, 1) and axes.images[0].get_cmap().name == "gray"
    assert texts(axes.get_xticklabels()) == words.keys == ["a$_b^", "</s>"]
    assert texts(axes.get_yticklabels()) == words.queries == ["ein", "$", "</s>"]


def test_tokens_without_marks_have_no_words():
    attention = Attention("encoder", ["a", "b"], ["a", "b"], weights(1, 1, 2, 2))
    with pytest.raises(ValueError, match=r"tokens must mark .* '▁'.*Received: a, b"):
        alignment_figure(attention)
