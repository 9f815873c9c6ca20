"""Families that the pages name: each is read, and compared with Hugging Face's `transformers`.

The comparisons need another Python, see `test_hugging_face.py`. This test is fast and needs none.
"""

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
# Names of the pages: family in this package, and class in `transformers` that it is compared with.
NAMES = {
    "OPUS-MT": ("opus-mt", "Marian"),
    "Marian": ("marian", None),  # Marian's own files, compared with `marian_reference.py`
    "M2M100": ("m2m-100", "M2M100"),
    "NLLB": ("m2m-100", "M2M100"),
    "mBART": ("mbart", "MBart"),
    "mBART-50": ("mbart", "MBart"),
    "BART": ("bart", "Bart"),
    "PEGASUS": ("pegasus", "Pegasus"),
    "T5": ("t5", "T5"),
    "FLAN-T5": ("t5", "T5"),
    "mT5": ("mt5", "MT5"),
    "MADLAD-400": ("t5", "T5"),
    "BERT": ("bert", "Bert"),
    "DistilBERT": ("distilbert", "DistilBert"),
    "ELECTRA": ("electra", "Electra"),
    "ALBERT": ("albert", "Albert"),
    "MPNet": ("mpnet", "MPNet"),
    "DeBERTa": ("deberta-v2", "DebertaV2"),
    "ModernBERT": ("modernbert", "ModernBert"),
    "RoBERTa": ("roberta", "Roberta"),
    "XLM-RoBERTa": ("xlm-roberta", "XLMRoberta"),
    "CamemBERT": ("camembert", "Camembert"),
    "GPT-2": ("gpt2", "GPT2"),
    "Llama": ("llama", "Llama"),
    "TinyLlama": ("llama", "Llama"),
    "SmolLM": ("llama", "Llama"),
    "EuroLLM": ("llama", "Llama"),
    "Tower": ("llama", "Llama"),
    "Mistral": ("mistral", "Mistral"),
    "Qwen": ("qwen2", "Qwen2"),
    "Qwen2": ("qwen2", "Qwen2"),
    "Qwen2.5": ("qwen2", "Qwen2"),
    "Qwen3": ("qwen3", "Qwen3"),
    "ViT": ("vit", "ViT"),
    "DeiT": ("deit", "DeiT"),
    "DINOv2": ("dinov2", "Dinov2"),
    "DINOv2 with registers": ("dinov2_with_registers", "Dinov2WithRegisters"),
    "Whisper": ("whisper", "Whisper"),
}
LONG = 9  # names; examples need no more
# The table itself, and the part of it that CTranslate2 can express.
LISTS = ("docs/pretrained.md", "docs/ctranslate2.md")


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


def listed(text):
    """Returns the names in a list such as `A, B and C`, without remarks in brackets."""
    return re.split(r", | and | or ", re.sub(r" \([^)]*\)", "", text))


def test_every_name_has_a_family_and_a_comparison_with_transformers():
    known, others = {family.name for family in families()}, compared()
    assert {family for family, _ in NAMES.values()} == known
    assert {other for _, other in NAMES.values()} - {None} == others


@pytest.mark.parametrize("page", [page for page in PAGES if page not in LISTS])
def test_only_the_table_lists_the_families(page):
    """Other pages name a few and link to it, so that a new family changes one page."""
    name = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, NAMES))})(?![\w-])")
    text = (ROOT / page).read_text("utf-8")
    rows = re.split(r"\n\n|\n(?=\|)", text)
    assert not [row for row in rows if len({*name.findall(row)}) > LONG]


def test_the_table_has_every_model_type():
    page = (ROOT / "docs" / "pretrained.md").read_text("utf-8")
    table = page[page.index("| family | `model_type` |") : page.index("\n\nBERT, MPNet, ")]
    rows = [row.split("|") for row in table.splitlines()[2:]]
    types = {
        name for row in rows for name in re.findall("`([^`]+)`", row[2]) if ".json" not in name
    }
    assert types == {family.model_type for family in families() if family.model_type}
    names = {name for row in rows for name in listed(re.sub(r"\]\(.*?\)|\[", "", row[1]).strip())}
    assert names - {*NAMES} == {"other Marian models", "sentence encoders"}
