"""Entities of personal data by Rampart, in every form, against NumPy in float64."""

import json
import shutil

import numpy as np
import onnx_file
import pytest
import safetensors.numpy
from bert_oracle import Bert
from browsers import copy_page, open_blank, served
from forms import FORMS, Forms, command
from packages import RAMPART

pytestmark = pytest.mark.real

# White space separates the words, each of which gets a label.
LINES = [
    "My name is Alex Rivera and my SSN is 472-81-0094 .",
    "Send it to Maria Gonzalez , 1600 Pennsylvania Avenue NW , Washington , DC 20500 .",
    "Contact john.smith@example.com or call +1 415 555 2671 .",
    "Dr. Emily Chen lives at 221B Baker Street , London .",
    "The passport number of Anna Schmidt is C01X00T47 .",
    "Visit https://www.example.org/about for details .",
    "Two men are fixing the roof of a house .",
    "Barack Obama was born in Honolulu , Hawaii .",
    "My tax id is 98-7654321 and my phone is (212) 555-0187 .",
    "Employee José García ( ID 5567 ) moved to Austin , Texas 73301 .",
    "Meet Sarah O'Connor at 5 Rue de Rivoli , Paris .",
    "The weather in Berlin is fine today .",
    "ALEX RIVERA , 12 MAIN STREET , BOSTON , MA",
    "Tom",
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """The 4-bit ONNX file as a folder in Hugging Face's format, with weights in float32."""
    source, folder = RAMPART.folder(), tmp_path_factory.mktemp("rampart")
    for path in source.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    weights = onnx_file.weights(source / "onnx" / "model_q4.onnx")
    safetensors.numpy.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def forms(checkpoint, tmp_path_factory):
    return Forms(checkpoint, tmp_path_factory.mktemp("forms"), LINES)


def labels(bert, line):
    """Returns the label of each word, that of its first token, and its lead over the next one."""
    names = bert.settings["id2label"]
    pieces = [bert.token_ids(word)[1:-1] for word in line.split()]
    _, logits = bert.states([bert.ids["[CLS]"], *sum(pieces, []), bert.ids["[SEP]"]])
    firsts = 1 + np.cumsum([0, *map(len, pieces[:-1])])
    top = np.sort(logits[firsts], -1)
    return [names[str(number)] for number in logits[firsts].argmax(-1)], top[:, -1] - top[:, -2]


@pytest.mark.parametrize("form", FORMS)
def test_labels_of_words_are_those_of_the_checkpoint(form, checkpoint, forms):
    """In int8 only labels that are nearly as probable as another one may differ."""
    bert = Bert(checkpoint)
    for line, answer in zip(LINES, forms.answers(form, LINES), strict=True):
        expected, margins = labels(bert, line)
        received = answer.split()
        assert len(received) == len(expected)
        sure = margins > (1.0 if form == "litert_int8" else 1e-3)
        assert sure.mean() > 0.5
        assert [r for r, s in zip(received, sure, strict=True) if s] == [
            e for e, s in zip(expected, sure, strict=True) if s
        ]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Chromium, with the files of `examples/browser`."""
    site = copy_page(tmp_path_factory.mktemp("site"))
    with served(site, tmp_path_factory.mktemp("profile")) as browser:
        open_blank(browser, site)
        yield browser, site


@pytest.mark.parametrize("form", ["litert", "onnx"])
def test_the_page_labels_words_as_the_file_in_python(form, forms, browser):
    browser, site = browser
    path = forms.path(form)
    (site / path.name).symlink_to(path)
    code = f"""import("./classify.js").then(async ({{ Classifier }}) => {{
        const classifier = await Classifier.load("{path.name}"), answers = [];
        for (const text of {json.dumps(LINES)}) answers.push(await classifier.label(text));
        return answers.map(({{ words }}) => words.map(({{ label }}) => label));
    }})"""
    expected = [answer.split() for answer in forms.answers(form, LINES)]
    assert browser.evaluate(code) == expected


@pytest.mark.parametrize("form", ["run", "litert", "ctranslate2"])
def test_entities_of_raw_text_have_offsets_of_characters(form, forms):
    """Punctuation, accents, emoji and white space of raw text; the labels are the oracle's."""
    text = "My name is José  García-Lorca,\tI live at 12 Main St., Boston. 😀 JOSE\u0301!"
    found = json.loads(command("predict", forms.path(form), "--spans", text=f"{text}\n"))
    assert [(one["label"], one["text"]) for one in found] == [
        ("GIVEN_NAME", "José"), ("SURNAME", "García-Lorca"), ("BUILDING_NUMBER", "12"),
        ("STREET_NAME", "Main St."), ("CITY", "Boston"), ("GIVEN_NAME", "JOSE\u0301"),
    ]  # fmt: skip
    assert all(text[one["start"] : one["end"]] == one["text"] for one in found)


def test_the_licence_of_the_folder_is_noticed(forms):
    origin = json.loads((forms.path("run") / "origin.json").read_text())
    assert "LICENSE" in json.dumps(origin)
