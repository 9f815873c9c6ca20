"""Names of languages against CLDR's, and against those of Hugging Face's Whisper."""

import json
import os
import subprocess
import sys

import pytest
from babel import Locale

from keras_transformer.text.language_names import CODES, NAMES, close_names, code_of

PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
TABLE = "transformers.models.whisper.tokenization_whisper"
FORMER = {"jw": "jv"}  # codes of Whisper that ISO 639 has replaced


def test_names_are_those_of_cldr():
    theirs = Locale("en").languages
    assert len(NAMES) == 100
    for code, (name, *_) in NAMES.items():
        assert name == theirs[FORMER.get(code, code)].lower()


def test_no_name_has_two_codes_or_is_one():
    assert len(CODES) == sum(map(len, NAMES.values()))
    assert not {*CODES} & {*NAMES}
    assert all(name == name.strip().lower() for name in CODES)


def test_codes_tokens_and_names_in_any_case():
    known = {"de", "en", "zh", "auto"}
    for language in ("de", "DE", "<|de|>", "german", "German", " GERMAN\n"):
        assert code_of(language, known) == "de"
    assert code_of("Mandarin", known) == "zh" and code_of("Auto", known) == "auto"
    for unknown in ("dutch", "nl", "", "<|nl|>", None, 3, ["de"]):
        assert code_of(unknown, known) == unknown
    assert code_of("DE", {"DE", "de"}) == "DE"  # a code of the model comes first


def test_close_names():
    known = {"de", "nl", "en", "no", "nn"}
    assert close_names("Germn", known, 5) == ["german (de)"]
    assert close_names("norwegen", known, 5)[0] == "norwegian (no)"
    assert close_names("germn", {"en", "de_DE"}, 5) == close_names(None, known, 5) == []


@pytest.mark.slow
@pytest.mark.long
def test_names_are_those_of_hugging_face():
    program = f"import json, {TABLE} as table; print(json.dumps(table.TO_LANGUAGE_CODE))"
    done = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("transformers is missing: see tests/pretrained/test_hugging_face.py")
    theirs = json.loads(done.stdout)
    assert {*theirs.values()} == {*NAMES}
    assert {name: code_of(name, NAMES) for name in theirs} == theirs
