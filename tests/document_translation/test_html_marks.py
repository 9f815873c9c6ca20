"""Tags and kept passages of HTML: each is in the translation exactly once, well nested."""

import collections
import random
import re

import pytest
from sentence_models import Aligned, Words

from keras_transformer.pipelines import Documents

INLINE = ["b", "i", "a href='x?a=1&amp;b'", 'span class="y"', "u"]
PASSAGES = ["{name}", "%s", "https://a.example/b?c=1&amp;d=2", "me@example.org", "%(count)d"]
POINTS = ["<img src='a.png'>", "<!-- note -->", "<wbr>"]
LINE = "one dog two cats run fast over the hill and sleep here today because it rains"
WORDS = LINE.split()
TAG = re.compile(r"<!--.*?-->|<[^>]*>")


def identity(text):
    return text


def reverse(text):
    return " ".join(reversed(text.split()))


def half(text):
    return " ".join(text.split()[::2])


def shuffled(text):
    words = text.split()
    random.Random(text).shuffle(words)
    return " ".join(words)


MODELS = {
    "identity": Words(identity),
    "reverse": Words(reverse),
    "half": Words(half),
    "shuffled": Words(shuffled),
    "nothing": Words(lambda text: ""),
    "one_word": Words(lambda text: "Wort"),
    "twice": Words(lambda text: f"{text} {text}"),
    "capitals": Words(str.upper),
    "unspaced": Words(lambda text: text.replace(" ", "")),
    "aligned_reverse": Aligned(lambda words: range(len(words))[::-1]),
    "aligned_half": Aligned(lambda words: range(0, len(words), 2)),
    "aligned_to_one": Aligned(lambda words: [0] * len(words)),
}


def inline(draw, depth=0):
    """Returns random HTML inside a line."""
    parts = []
    for _ in range(draw.randint(1, 4)):
        kind = draw.random()
        if kind < 0.45 or depth > 3:
            parts.append(" ".join(draw.choices(WORDS, k=draw.randint(1, 5))))
            if draw.random() < 0.3:
                parts[-1] += draw.choice([".", "?", "!", ",", " &amp;"])
        elif kind < 0.75:
            tag = draw.choice(INLINE)
            parts.append(f"<{tag}>{inline(draw, depth + 1)}</{tag.split()[0]}>")
        elif kind < 0.85:
            parts.append(draw.choice(PASSAGES))
        elif kind < 0.92:
            parts.append(f"<code>{draw.choice(WORDS)}</code>")
        else:
            parts.append(draw.choice(POINTS) + draw.choice(WORDS))
    return " ".join(parts)


def page(seed):
    draw = random.Random(seed)
    blocks = [
        draw.choice(["<p>{}</p>\n", "<h1>{}</h1>\r\n\r\n", "<li>{}\n", "<td> {}  </td>", "{}<br>"])
        for _ in range(draw.randint(1, 4))
    ]
    return "".join(block.format(inline(draw)) for block in blocks)


def structure(document):
    """Returns the numbers of tags, kept passages and code, after checking that tags are nested."""
    stack = []
    for tag in TAG.findall(document):
        name = re.match(r"</?([\w!-]+)", tag)[1]
        if name in ("p", "h1", "li", "td", "br", "img", "wbr", "!--"):
            continue
        if tag.startswith("</"):
            assert stack and stack.pop() == name, f"{tag} in {document}"
        else:
            stack.append(name)
    assert not stack, document
    found = TAG.findall(document) + re.findall("<code>.*?</code>", document)
    text = TAG.sub("", document)
    found += [passage for passage in PASSAGES for _ in range(text.count(passage))]
    return collections.Counter(found)


@pytest.mark.parametrize("name", MODELS)
def test_every_mark_is_there_once(name):
    documents = Documents(MODELS[name], "html")
    pages = [page(seed) for seed in range(60)]
    for source, translation in zip(pages, documents(pages), strict=True):
        assert structure(translation) == structure(source), f"{source}\n{translation}"


def test_the_identity_changes_nothing():
    pages = [page(seed) for seed in range(60)]
    assert Documents(MODELS["identity"], "html")(pages) == pages


def test_a_repeated_passage_is_removed_with_the_space_before_it():
    model = Words(lambda text: f"{text} {{name}} {{name}} end")
    assert Documents(model)("To {name}") == "To {name} end"


def test_the_code_of_one_sentence_is_no_word_of_another():
    page = "<p>A <code>nUnused</code> byte. Pass n<code>Unused</code> here.</p>"
    assert Documents(MODELS["identity"], "html")(page) == page
