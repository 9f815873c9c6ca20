"""Results that several pages state are the same on every page."""

import re

import pytest
from documents import PAGES, blocks, read

from keras_transformer import positions

NUMBER = r"\d[\d,.]*\d|\d"
# Each result, with the pattern that finds it on each page.
REPEATED = {
    "training of the demo": {
        "README.md": r"trains for (\w+ to \w+) minutes",
        "docs/quickstart.md": r"trains for (\w+ to \w+) minutes",
        "training/configs/demo.toml": r"downloaded\. (\w+ to \w+) minutes",
    },
    "all of the demo": {
        "README.md": r"train, evaluate, export: (\w+ to \w+) minutes",
        "Makefile": r"and translate, in (\w+ to \w+) minutes",
    },
    "exact match of the demo": {
        "README.md": r"Phrases of the demo, exact match \| ([\d.]+) %",
        "docs/benchmarks.md": r"\| exact match on 2,000 held-out phrases \| ([\d.]+) %",
        "docs/quickstart.md": r"(?:\"exact_match\": |\n)(99[\d.]+)(?:,| % of the translations)",
    },
    "duration of the fast tests": {
        "README.md": r"the fast tests, in about (\w+ minutes)",
        "CONTRIBUTING.md": r"the fast tests, in about (\w+ minutes)",
        "Makefile": r"the fast tests, in about (\w+ minutes)",
        "docs/develop.md": r"the fast tests, in about (\w+ minutes)",
    },
    "duration of the slow tests": {
        "CONTRIBUTING.md": r"`make test-slow`.*?in about (\w+ \w+)",
        "Makefile": r"make test-slow .*?in about (\w+ \w+)",
        "docs/develop.md": r"make test-slow .*?in about (\w+ \w+)",
    },
    "description of the package": {
        "mkdocs.yml": r"site_description: (.*)",
        "pyproject.toml": r'\ndescription = "(.*)"',
    },
    "families with published weights": {
        "README.md": r"Tried with trained weights so far: (.*)",
        "docs/tested.md": r"\| trained weights of (.*) \| the table below",
    },
    "base in int8": {
        "docs/benchmarks.md": r"base, one core: LiteRT int8; CTranslate2 int8 \| ([\d.]+) ms;",
        "docs/choose_a_model.md": r"and ([\d.]+) ms in a\s+`.tflite` file in int8",
    },
    "memory of the export to a SavedModel with a beam": {
        "docs/benchmarks.md": r"`export saved-model`, with a beam as well \| ([\d.]+) GB",
        "docs/ship_pretrained.md": r"`export saved-model`, also with a beam .*\| ([\d.]+) GB \|",
    },
    "memory of self-attention on 4,096 positions": {
        "docs/benchmarks.md": r"\| `self_attention` \|.*\| ([\d,]+) \|\n",
        "docs/what_came_before.md": r"take 2,217 ms and ([\d,]+) MB",
    },
    "BLEU of multi30k by greedy search": {
        "docs/benchmarks.md": r"6 epochs: sacreBLEU, chrF on test 2016 \| ([\d.]+)",
        "docs/shortlists.md": r"test 2016: without, with a shortlist \| ([\d.]+)",
    },
    "memory of the export for CTranslate2": {
        "docs/benchmarks.md": r"`export ctranslate2 --quantize int8` \| ([\d.]+ GB) \|",
        "docs/ship_pretrained.md": r"export ctranslate2 .*\| ([\d.]+ GB) \|",
    },
    "training of the language model": {
        "docs/benchmarks.md": r"language_model_multi30k .*# (\w+) minutes on two",
        "training/configs/language_model_multi30k.toml": r"About (\w+) minutes on two",
    },
    "perplexity of the language model": {
        "docs/benchmarks.md": r"14,581 tokens \| ([\d.]+) \| [\d.]+ \|",
        "docs/language_models.md": r"a perplexity of ([\d.]+) per token",
    },
}
WORDS = {"eight": "8"}


def one(page, pattern):
    """Returns the only match of a pattern on a page, with number words as digits.

    A space in the pattern is any white space, since a paragraph may be wrapped anywhere.
    """
    matches = re.findall(pattern.replace(" ", r"\s+"), read(page))
    (text,) = {" ".join(match.lower().split()) for match in matches}
    return WORDS.get(text, text)


def table(page, row):
    """Returns the rows whose first cell matches a pattern: that cell, then all numbers."""
    cells = re.findall(rf"^\| ({row}) \|(.*)$", read(page), re.MULTILINE)
    return {re.sub(r"\W", "", name).lower(): re.findall(NUMBER, rest) for name, rest in cells}


@pytest.mark.parametrize("result", REPEATED)
def test_a_result_is_the_same_on_every_page(result):
    stated = {page: one(page, pattern) for page, pattern in REPEATED[result].items()}
    assert len(set(stated.values())) == 1, stated


def test_a_long_output_is_printed_on_one_page():
    """A copy would remain when the first is replaced."""
    pages = {}
    for page in PAGES:
        for block in blocks(page, "text"):
            if block.code.count("\n") >= 5:
                pages.setdefault(block.code, set()).add(page)
        for start in re.findall(r"^[\d,]+ parameters; [\d,]+ examples;", read(page), re.MULTILINE):
            pages.setdefault(start, set()).add(page)
    assert len(pages) > 10
    assert not [found for found in pages.values() if len(found) > 1]


def test_tables_on_two_pages_are_the_same():
    kinds = '`?"?(?:sinusoidal|learned|binary|rotary|relative|alibi|ALiBi|t5|T5|none)"?`?'
    of_layers, of_benchmarks = (
        {name: row for name, row in table(page, kinds).items() if len(row) == 4}
        for page in ("docs/layers.md", "docs/benchmarks.md")
    )
    assert of_layers == of_benchmarks and len(of_layers) == 8
    students = r"teacher|student.*?"
    of_guide, of_benchmarks = (
        [*table(page, students).values()] for page in ("docs/distillation.md", "docs/benchmarks.md")
    )
    assert of_guide == of_benchmarks and len(of_guide) == 3


def test_the_summary_of_the_benchmarks_repeats_its_sections():
    head, _, rest = read("docs/benchmarks.md").partition("\n## The demo\n")
    rows = re.findall(r"^\| .*? \| (.*?) \| \[", head, re.MULTILINE)
    numbers = {number for row in rows for number in re.findall(NUMBER, row)}
    assert len(numbers) > 15
    assert numbers <= set(re.findall(NUMBER, rest)), numbers - set(re.findall(NUMBER, rest))


def test_the_ratio_of_training_speeds_is_explained_if_it_differs_from_the_medians():
    text = read("docs/benchmarks.md")
    section = text.partition("\n## A training step\n")[2].partition("memory per token")[0]
    rows = re.findall(r"^\| (?!target|---)(.*?) \| ([\d.,*]+) \|", section, re.MULTILINE)
    (_, ours), *peers, (_, ratio) = [(name, value.strip("*")) for name, value in rows]
    peer = max((speed for _, speed in peers), key=lambda speed: int(speed.replace(",", "")))
    medians = int(ours.replace(",", "")) / int(peer.replace(",", ""))
    assert len(peers) == 3
    assert f"for tiny it is {ratio}, while {ours} / {peer} is {medians:.2f}" in text.replace(
        "\n", " "
    )


def test_the_kinds_of_positions_with_fixed_codes_are_those_that_can_be_drawn():
    sentence = re.search(
        r"`--kind` selects\s(.*?), the two kinds", read("docs/plots.md"), re.DOTALL
    )
    fixed = {
        name for name, kind in positions.Position.kinds().items() if kind().table(1, 2) is not None
    }
    assert set(re.findall(r"`(\w+)`", sentence[1])) == fixed


def test_the_digits_have_the_number_of_grey_levels_on_the_page():
    images = pytest.importorskip("sklearn.datasets").load_digits().images
    assert f"8 x 8 pixels with {len(set(images.flat))} grey levels" in read(
        "docs/image_classification.md"
    )


def test_the_page_counts_the_commands_that_ship_a_checkpoint():
    page = "docs/ship_pretrained.md"
    beginning = [block for block in blocks(page, "sh")][:2]
    commands = [line for block in beginning for line in block.code.splitlines()]
    assert len(commands) == 4 and "\nFour commands turn " in read(page)
