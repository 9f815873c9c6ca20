"""The page of attention weights in a browser, opened from disk."""

import json

import numpy as np
import pytest
from browsers import Browser, started
from waiting import until

from keras_transformer.pipelines import Attention
from keras_transformer.plots.attention_page import attention_page, save_page

EVIL = ["</script><img src=x onerror=hacked=1>", "<!--<script>", "{{data}}", "\u2028&amp;", "▁a"]
WORDS = "(side) => [...document.querySelectorAll(`#${side} .word`)].map((one) => one.textContent)"
LINES = """[...document.querySelectorAll("#lines line")].map((line) =>
    ["y1", "y2", "stroke-opacity"].map((name) => Number(line.getAttribute(name))))"""
ROW = 10  # height of a row on the page
FAINTEST = 0.01
TOLERANCE = 0.0011  # weights and opacities are written in thousandths


def attention(kind, queries, keys, layers=2, heads=3, **options):
    scores = np.exp(2 * np.random.default_rng(len(kind)).normal(
        size=(layers, heads, len(queries), len(keys))))  # fmt: skip
    weights = (scores / scores.sum(axis=-1, keepdims=True)).astype("float32")
    return Attention(kind, queries, keys, weights, **options)


ATTENTIONS = {
    "cross": attention("cross", ["▁ein", "▁Hund", "</s>"], ["▁a", "▁dog", "▁runs", "</s>"]),
    "encoder": attention("encoder", EVIL, EVIL),
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with started(tmp_path_factory.mktemp("profile")) as driver:
        yield Browser(driver)


@pytest.fixture
def page(browser, tmp_path):
    """A function that writes a page and opens it."""

    def show(attentions=ATTENTIONS):
        path = tmp_path / "new" / "attention.html"
        save_page(attentions, path)
        browser.call("Page.navigate", url=path.as_uri())
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
        drawn = "document.querySelectorAll('.word').length"
        assert until(lambda: browser.evaluate(drawn)), browser.evaluate("document.body.innerText")
        return browser

    return show


def words(page, side):
    return page.evaluate(f"({WORDS})({json.dumps(side)})")


def shown(page, size):
    """Returns the weights as the lines show them, `[T, S]`; 0 where there is no line."""
    weights = np.zeros(size)
    for begin, end, opacity in page.evaluate(LINES):
        weights[round(begin / ROW - 0.5), round(end / ROW - 0.5)] = opacity
    return weights


def assert_shown(page, weights):
    """Checks that every weight has a line of equal opacity, except weights too faint to draw."""
    lines = shown(page, weights.shape)
    there = weights >= FAINTEST + TOLERANCE
    np.testing.assert_allclose(lines[there], weights[there], rtol=0, atol=TOLERANCE)
    assert not lines[weights < FAINTEST - TOLERANCE].any()
    assert there.sum() > 2


def choose(page, name, value):
    page.evaluate(
        f"""{{const box = document.getElementById({json.dumps(name)});
        box.value = {json.dumps(value)}; box.dispatchEvent(new Event("change"));}}"""
    )


def press(page, *keys):
    for key in keys:
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" else {}
            code = {"Enter": 13, "Tab": 9, "Escape": 27}.get(key, 0)
            page.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                      **text)  # fmt: skip


def test_the_mean_of_all_is_shown_first(page):
    opened, cross = page(), ATTENTIONS["cross"]
    assert words(opened, "queries") == cross.queries
    assert words(opened, "keys") == cross.keys
    assert_shown(opened, cross.mean())
    assert opened.evaluate("document.title") == "Attention of the decoder to the source"


def test_layer_head_and_kind_can_be_chosen(page):
    opened, cross = page(), ATTENTIONS["cross"]
    choose(opened, "layer", "1")
    assert_shown(opened, cross.weights[1].mean(axis=0))
    choose(opened, "head", "2")
    assert_shown(opened, cross.weights[1, 2])
    choose(opened, "layer", "-1")
    assert_shown(opened, cross.weights[:, 2].mean(axis=0))
    choose(opened, "kind", "1")
    assert words(opened, "queries") == words(opened, "keys") == EVIL
    assert_shown(opened, ATTENTIONS["encoder"].mean())


def test_a_thumbnail_selects_its_layer_and_head(page):
    opened, cross = page(), ATTENTIONS["cross"]
    maps = opened.evaluate("[...document.querySelectorAll('.map')].map((map) => map.title)")
    assert maps == [f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2, 3)]
    opened.evaluate("document.querySelectorAll('.map')[4].click()")
    assert_shown(opened, cross.weights[1, 1])
    assert (
        opened.evaluate("['layer', 'head'].map((id) => document.getElementById(id).value)")
        == ["1"] * 2
    )
    pressed = opened.evaluate("document.querySelector('.map[aria-pressed=true]').title")
    assert pressed == "layer 2, head 2"
    pixels = opened.evaluate(
        """[...document.querySelectorAll('canvas')[4].getContext("2d").getImageData(0, 0, 4, 3)
        .data].filter((_, at) => at % 4 === 3)"""
    )
    expected = 255 * cross.weights[1, 1].flatten()
    np.testing.assert_allclose(pixels, expected, rtol=0, atol=1)


def test_pointing_at_a_word_shows_only_its_lines(page):
    opened, cross = page(), ATTENTIONS["cross"]
    for side, place in (("queries", 1), ("keys", 2)):
        x, y = opened.evaluate(
            f"""(({{x, y, width, height}}) => [x + width / 2, y + height / 2])(
            document.querySelectorAll("#{side} .word")[{place}].getBoundingClientRect())"""
        )
        opened.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        expected, row = np.zeros((3, 4)), (place,) if side == "queries" else (slice(None), place)
        expected[row] = cross.mean()[row]
        assert_shown(opened, expected)
        other = "keys" if side == "queries" else "queries"
        colors = opened.evaluate(
            f"""[...document.querySelectorAll("#{other} .word")]
            .map((word) => Number(word.style.getPropertyValue("--weight")))"""
        )
        np.testing.assert_allclose(colors, cross.mean()[row], rtol=0, atol=TOLERANCE)
    best = cross.queries[cross.mean()[:, 2].argmax()]
    status = opened.evaluate("document.getElementById('status').textContent")
    percent = 100 * cross.mean()[:, 2].max()
    assert status.startswith(f"▁runs is attended to by: {best} ")
    assert float(status.split(best)[1].split("%")[0]) == pytest.approx(percent, abs=0.11)
    opened.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert_shown(opened, cross.mean())


def test_it_can_be_used_with_a_keyboard(page):
    opened, cross = page(), ATTENTIONS["cross"]
    opened.evaluate("document.getElementById('head').focus()")
    press(opened, "Tab", "ArrowDown")
    active = "((one) => [one.closest('.side').id, one.textContent])(document.activeElement)"
    assert opened.evaluate(active) == ["queries", "▁Hund"]
    press(opened, "ArrowRight")
    assert opened.evaluate(active) == ["keys", "▁dog"]
    only = np.zeros((3, 4))
    only[:, 1] = cross.mean()[:, 1]
    assert_shown(opened, only)
    press(opened, "Enter", "Tab")  # the choice is kept when the focus moves to the thumbnails
    assert opened.evaluate("document.activeElement.title") == "layer 1, head 1"
    assert_shown(opened, only)
    press(opened, "Escape")
    assert_shown(opened, cross.mean())
    press(opened, "ArrowRight", "ArrowDown", "Enter")
    assert_shown(opened, cross.weights[1, 1])
    press(opened, "ArrowDown", "ArrowDown")  # there is no further one
    assert opened.evaluate("document.activeElement.title") == "layer 2, head 2"


def test_texts_are_not_interpreted(page):
    text = attention_page({"encoder": ATTENTIONS["encoder"]})
    assert text.count("<script") == text.count("</script>") == 2
    assert "<img" not in text and "<!--" not in text
    opened = page({"encoder": ATTENTIONS["encoder"]})
    assert words(opened, "queries") == EVIL
    assert opened.evaluate("typeof hacked") == "undefined"
    assert opened.evaluate("document.querySelectorAll('img').length") == 0
    opened.evaluate("document.querySelector('.word').focus()")
    assert opened.evaluate("document.getElementById('status').textContent").startswith(EVIL[0])
    assert opened.evaluate("document.querySelectorAll('img').length") == 0


def test_nothing_is_loaded_from_elsewhere(page):
    opened = page()
    assert opened.evaluate("performance.getEntriesByType('resource').length") == 0
    assert opened.evaluate("document.querySelectorAll('[src], [href]').length") == 0
    fetched = "fetch('https://example.org').then(() => 'loaded', () => 'refused')"
    assert opened.evaluate(fetched) == "refused"


CONTRAST = """(() => {
    const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const light = (color) => {
        paint.fillStyle = color; paint.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) =>
            value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const of = (selector, name) => light(getComputedStyle(document.querySelector(selector))[name]);
    const paper = of("main", "backgroundColor");
    const ratio = (one) => (Math.max(one, paper) + 0.05) / (Math.min(one, paper) + 0.05);
    return [paper, ...[".word", ".hint", "th"].map((name) => ratio(of(name, "color"))),
        ratio(of("#lines line", "stroke"))];
})()"""


def test_it_is_legible_in_light_and_dark_mode(page):
    papers = []
    for scheme in ("light", "dark"):
        opened = page()
        opened.call("Emulation.setEmulatedMedia",
                    features=[{"name": "prefers-color-scheme", "value": scheme}])  # fmt: skip
        paper, *ratios = opened.evaluate(CONTRAST)
        assert min(ratios) > 4.5, scheme
        papers.append(paper)
    assert papers[0] > 0.8 and papers[1] < 0.05
    opened.call("Emulation.setEmulatedMedia", features=[])


def test_a_single_matrix_has_no_menus(page):
    one = attention("cross", ["a", "b"], ["c", "d", "e"], 1, 1, complete=False)
    opened = page({"cross": one})
    hidden = "[...document.querySelectorAll('label, #overview')].map((part) => part.hidden)"
    assert opened.evaluate(hidden) == [True] * 4
    assert_shown(opened, one.weights[0, 0])
