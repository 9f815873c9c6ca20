"""Documents around functions of sentences: white space, sentences, batches, hostile texts."""

import pathlib
import re

import pytest
from marks import long, slow_except
from sentence_models import Words

from keras_transformer.pipelines import Documents, SentenceSplitter

ROOT = pathlib.Path(__file__).parents[2]
FORMATS = ("text", "wrapped", "html", "xml", "markdown")


def identity(text):
    return text


SENTENCES = {
    "en": ["Dr. Smith paid $3.50 at 5 p.m. yesterday.  ", "Was it too much?\t", "See e.g. Fig. 3."],
    "de": ["Am 3. März kam Hr. Dr. Müller z. B. mit 2.000 Euro. ", "Warum? ", "Er ging."],
    "zh": ["今天天气很好。", "我们去公园吧！", "你呢？"],
    "ar": ["ذهبت إلى السوق. ", "هل تحب التفاح؟ ", "نعم، أحبه."],
    "hi": ["यह एक वाक्य है। ", "यह दूसरा वाक्य है। ", "हाँ।"],
}


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_are_those_of_the_language(language):
    text = "".join(SENTENCES[language])
    spans = SentenceSplitter(language)(text)
    assert [text[start:end] for start, end in spans] == SENTENCES[language]


def test_a_code_of_three_letters_is_that_of_the_same_language():
    text = "".join(SENTENCES["de"])
    assert SentenceSplitter("deu_Latn")(text) == SentenceSplitter("de")(text)


def test_white_space_stays_and_all_sentences_are_one_batch():
    model = Words(str.upper)
    first = "\ufeffOne dog.  Two dogs!\r\n\r\n\tA cat. \n---\n12,5\nNo end"
    texts = Documents(model)([first, "Xa dog.  Ze cat."])
    assert texts == [first.upper(), "XA DOG.  ZE CAT."]
    assert [sorted(batch) for batch in model.batches] == [
        sorted(["One dog.", "Two dogs!", "A cat.", "No end", "Xa dog.", "Ze cat."])
    ]


HOSTILE = {
    "empty": "",
    "white": " \t\r\n\u3000\n\n",
    "mark": "\ufeff",
    "nul": "A\0b c.\0 \0D\0",
    "returns": "A b.\rC d.\r\n\rE",
    "directions": "\u200fA b\u200e. \u202eC\u202c d\u200d\u200be.",
    "emoji": "A \U0001f468\u200d\U0001f469\u200d\U0001f467 b. \U0001f600 C e\u0301.",
    "separators": "A.\u2028B.\u2029C.\x85D.\x0bE.\x0cF.",
    "tags": "a < b > c & d </x> <!-- e",
    "deep": "<b>" * 2000 + "x" + "</b>" * 2000,
    "unclosed": "<b><i><a href='x>y <p>z</b> [q](r <![CDATA[",
    "signs": "* _ ` ** __ [ ] ( ) {a %s {{b}} ${c} %(d)s \\",
    "script": "<script>if (a<b) c('</p>')</script><style>p{}</style>e <pre>\n f  g</pre>",
    "references": "&amp;lt; &lt;b&gt; &nbsp; &copy &#65; &#x1F600; &unknown; &",
}


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "xml"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_come_back_from_the_identity(format, name):
    import html

    text = HOSTILE[name]
    result = Documents(Words(identity), format)(text)
    if format == "text":
        assert result == text
    if format != "markdown" or name != "references":  # there, new text has \\< for &lt;
        assert html.unescape(result) == html.unescape(text)


@pytest.mark.parametrize("format", slow_except(FORMATS, "html"))
def test_a_line_of_250_kilobytes_is_translated_in_parts(format):
    text = f"<a>{'word ' * 10_000}{'x' * 200_000}</a>"
    model = Words(identity, longest=3000)
    assert Documents(model, format)(text) == text
    assert max(len(one) for batch in model.batches for one in batch) <= 4000


def test_a_sentence_beyond_the_limit_is_divided_at_its_clauses():
    model = Words(str.upper, longest=30)
    result = Documents(model).answer("One two three four five, six seven eight nine ten. Eleven.")
    assert result.text == "ONE TWO THREE FOUR FIVE, SIX SEVEN EIGHT NINE TEN. ELEVEN."
    parts = [(one.source, one.is_part) for one in result.sentences]
    assert parts == [
        ("One two three four five,", True),
        ("six seven eight nine ten.", True),
        ("Eleven.", False),
    ]
    assert not any(one.translation.truncated for one in result.sentences)


def test_wrapped_lines_are_one_sentence_and_stay_lines():
    head, rest = (
        "A title\n====\n\nThis is one\nsentence. And",
        " a\nsecond\n\n * first point\n   of two\n",
    )
    text = f"{head}{rest}"
    model = Words(lambda sentence: sentence.upper().replace("IS ", ""))
    assert Documents(model, "wrapped")(text).count("\n") == text.count("\n")
    assert Documents(Words(str.upper), "wrapped")(text) == text.upper()
    assert "This is one sentence." in model.batches[0] and "first point of two" in model.batches[0]


MARKDOWN = """---
title: kept
---

# A *short* title

One **bold** word and [a link](http://a.example/b_c "title") `code` here.
Next \\* line &amp; more, ![kept](a.png) <b>x</b> [name] {name}.  
After a break

> quote one
> two

- [ ] item
  goes on

| a | b \\| c |
|---|---|
| d **e** | `f` |

```py
kept = 1
```

<div class="x">in <i>HTML</i></div>

[name]: http://kept.example "Kept"
"""


def test_markdown_keeps_its_marks():
    result = Documents(Words(str.upper), "markdown")(MARKDOWN)
    assert (
        Documents(Words(identity), "markdown")(MARKDOWN).replace("& more", "&amp; more") == MARKDOWN
    )
    for kept in (
        "title: kept",
        '(http://a.example/b_c "title")',
        "`code`",
        "![kept](a.png)",
        "[name]",
        "{name}",
        "BREAK\n",
        "\n> TWO",
        "- [ ] ITEM\n  GOES ON",
        "B \\| C",
        "| D **E** | `f` |",
        "kept = 1",
        '<div class="x">IN <i>HTML</i></div>',
        '[name]: http://kept.example "Kept"',
        "\\* LINE",
    ):
        assert kept in result, kept
    stars = Documents(Words(lambda text: f"*{text}_"), "markdown")("A dog.")
    assert stars == "\\*A dog.\\_"


XML = """<?xml version="1.0"?>\r
<!DOCTYPE a [<!ENTITY x "y">]>
<a>
<p xml:lang="en">One &amp; <b>two</b> &x; <code>three</code>.  Four <c/>five<![CDATA[<six>]]>.</p>
<pre> kept</pre><d><e>seven</e></d><q translate="no"><p>kept</p></q></a>
"""


def test_xml_keeps_its_marks():
    result = Documents(Words(str.upper), "xml")(XML)
    expected = XML
    for word in ("One", "two", "Four", "five", "seven"):
        expected = expected.replace(word, word.upper())
    assert result == expected
    with pytest.raises(ValueError, match=r"^a document must be well-formed XML. Received: mism"):
        Documents(Words(identity), "xml")("<a><b></a>")


@pytest.mark.parametrize(
    "name", ["README.md", "docs/index.md", *map(long, ["CHANGELOG.md", "docs/litert_files.md"])]
)
def test_real_markdown_comes_back_from_the_identity(name):
    text = (ROOT / name).read_text()
    assert Documents(Words(identity), "markdown")(text) == text


@pytest.mark.real
def test_pages_of_the_system_come_back_from_the_identity():
    """A tag may move to the other side of white space beside it, or to the end of its word."""
    import html

    files = sorted(pathlib.Path("/usr/share/doc").rglob("*.html"))
    pages = [page for page in files if page.is_file()][:40]
    assert pages, "no page in /usr/share/doc"
    tag = re.compile("<[^<>]*>")
    for page in pages:
        with open(page, newline="", encoding="utf-8", errors="replace") as file:
            text = file.read()
        result = Documents(Words(identity), "html")(text)
        texts = [html.unescape(tag.sub("", side)) for side in (result, text)]
        assert "".join(texts[0].split()) == "".join(texts[1].split()), page
        assert tag.findall(result) == tag.findall(text), page


def test_numbers_and_passages_of_ones_own_are_kept():
    model = Words(lambda text: text.replace("1", "2").replace("Foo", "Bar"))
    text = "In 1914 Foo had 1.5 of it."
    assert Documents(model)(text) == "In 2924 Bar had 2.5 of it."
    assert Documents(model, keep=["numbers", "Foo"])(text) == text


def test_what_does_not_translate_and_bad_arguments_are_refused():
    class Summaries(Words):
        task = "summarization"
        result = __import__("keras_transformer.pipelines", fromlist=["x"]).Summary

    with pytest.raises(ValueError, match="`answering` must translate: .* a model for summariz"):
        Documents(Summaries(identity))
    with pytest.raises(ValueError, match="`format` must be"):
        Documents(Words(identity), "pdf")
    with pytest.raises(ValueError, match=r"`keep` must contain regular .* '\(': "):
        Documents(Words(identity), keep=["("])
    with pytest.raises(TypeError, match="`documents` must be a string or a list of them"):
        Documents(Words(identity))([1])
    with pytest.raises(ValueError, match="must not contain half of a surrogate pair.* at char"):
        Documents(Words(identity))("a\ud800")
