"""Families that the pages name: each is read, and compared with Hugging Face's `transformers`.

The comparisons need another Python, see `test_hugging_face.py`. This test is fast and needs none.
"""

import importlib.util
import pathlib
import re

import encoder_folders
import pytest
import test_deit
import test_dinov2
import test_gpt2
import test_hugging_face
import test_hugging_face_bert
import test_hugging_face_encoders
import test_hugging_face_seq2seq
import test_hugging_face_whisper
import test_llama
import test_vit
from documents import PAGES

from keras_transformer.pretrained.family import families

ROOT = pathlib.Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("families_tables", ROOT / ".ci" / "families.py")
tables = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tables)
# Classes in `transformers` that the families are compared with, by the beginning of their names.
OTHERS = {
    "opus-mt": "Marian",
    "marian": None,  # Marian's own files, compared with `marian_reference.py`
    "m2m-100": "M2M100",
    "mbart": "MBart",
    "bart": "Bart",
    "pegasus": "Pegasus",
    "t5": "T5",
    "mt5": "MT5",
    "bert": "Bert",
    "distilbert": "DistilBert",
    "electra": "Electra",
    "albert": "Albert",
    "mpnet": "MPNet",
    "deberta-v2": "DebertaV2",
    "modernbert": "ModernBert",
    "roberta": "Roberta",
    "xlm-roberta": "XLMRoberta",
    "camembert": "Camembert",
    "gpt2": "GPT2",
    "llama": "Llama",
    "mistral": "Mistral",
    "qwen2": "Qwen2",
    "qwen3": "Qwen3",
    "vit": "ViT",
    "deit": "DeiT",
    "dinov2": "Dinov2",
    "dinov2_with_registers": "Dinov2WithRegisters",
    "whisper": "Whisper",
}
# Names of models on the pages, with their families; one name stands for two of them.
NAMES = {
    name: family.name
    for family in families()
    for names in family.listing.names.values()
    for name in names
} | {"Qwen": "qwen2"}
LONG = 9  # names; examples need no more
FEW = 4  # a list of more names says where all of them are
# The pages with tables of families, and the part of them that CTranslate2 can express.
LISTS = (*(f"docs/{page}" for page in tables.pages()), "docs/ctranslate2.md")
TABLE = re.compile(r"\]\((docs/)?(pretrained\w*\.md|tested\.md#published-checkpoints)")


def compared():
    """Returns the beginnings of the names of the classes in all comparisons."""
    names = {encoder_folders.CLASSES[case[0]] for case in test_hugging_face_encoders.CASES.values()}
    for module in (
        test_hugging_face,
        test_hugging_face_bert,
        test_hugging_face_seq2seq,
        test_llama,
    ):
        names |= {case["class"] for case in module.CASES.values()}
    for module in (test_vit, test_deit, test_dinov2):
        names |= {case["model"][0] for case in module.CASES.values()}
    for module, name in ((test_gpt2, "GPT2"), (test_hugging_face_whisper, "Whisper")):
        script = ROOT / "tests" / "pretrained" / f"hugging_face_{name.lower()}.py"
        assert module.CASES and f"transformers.{name}" in script.read_text("utf-8")
        names.add(name)
    return {re.sub("(For[A-Z].*|Model)$", "", name) for name in names}


def rows(page):
    """Returns the paragraphs and the rows of tables of a page."""
    return re.split(r"\n\n|\n(?=\|)", (ROOT / page).read_text("utf-8"))


def named(row):
    """Returns the names of families in a row."""
    name = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, NAMES))})(?![\w-])")
    return {*name.findall(re.sub(r"`[^`]*`|\]\([^)]*\)", "", row))}


@pytest.mark.parametrize("page", tables.pages())
def test_the_tables_are_those_of_the_families(page):
    written = tables.written(page)
    assert (ROOT / "docs" / page).read_text("utf-8") == written, "python .ci/families.py"


def test_every_family_is_listed_by_itself():
    for family in families():
        assert "listing" in vars(family), family
    names = [name for family in families() for x in family.listing.names.values() for name in x]
    assert len(names) == len(set(names)) == len(NAMES) - 1


def test_every_family_has_a_comparison_with_transformers():
    assert {family.name for family in families()} == {*OTHERS}
    assert {*OTHERS.values()} - {None} == compared()


@pytest.mark.parametrize("page", [page for page in PAGES if page not in LISTS])
def test_only_the_table_lists_the_families(page):
    """Other pages name a few and link to it, so that a new family changes one page."""
    assert not [row for row in rows(page) if len(named(row)) > LONG]


# Results of these families alone, beside which a link to the others would be odd.
RESULTS = ("docs/benchmarks.md", "docs/tested.md")


@pytest.mark.parametrize("page", [x for x in PAGES if x not in (*LISTS, *RESULTS)])
def test_a_list_of_families_leads_to_the_table(page):
    lists = [row for row in rows(page) if len(named(row)) > FEW]
    assert not [row for row in lists if not TABLE.search(row)]


def test_the_families_with_trained_weights_are_named_on_two_pages():
    """`test_repeated_results.py` compares the pages with each other."""
    tried = {family.name for family in families() if family.listing.tried} - {"marian"}
    page = (ROOT / "docs/tested.md").read_text("utf-8")
    (stated,) = re.findall(r"\| trained weights of (.*) \| the table below", page)
    assert {NAMES[name] for name in named(stated)} == tried
    results = page.partition("### Published checkpoints\n")[2]
    models = [model for family in families() for model in family.listing.tried]
    for model in models:
        name = model.split(" in ")[0].removeprefix("a ").split(" of ")[0]
        assert name in results or name in page, model
