"""READMEs beside SavedModels: long requests in files, and the operations that a program needs."""

import base64
import json
import re
import subprocess
import sys

import bpe_in_python
import numpy as np
import pytest
import tensorflow as tf
from pipelines import speech_recognizer
from pipelines import tokenizer as sentencepiece_tokenizer

from keras_transformer.export.saved_model.guide import Page, text_operations
from keras_transformer.tasks.single_pass.text import LONGEST_TEXT, quoted
from keras_transformer.text.bert_normalizer import BertNormalizer
from keras_transformer.text.tokenizers import ByteBPETokenizer, WordPieceTokenizer

TEXTS = tf.TensorSpec([None], tf.string, name="sentences")
MODULES = {"tensorflow_text": "registers the operations of the tokenizer"}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def wordpiece_tokenizer():
    return WordPieceTokenizer([*SPECIAL, "a", "b"], BertNormalizer(lowercase=True))


def byte_bpe_tokenizer():
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    return ByteBPETokenizer(bpe_in_python.vocabulary([("a", "b")], special), [("a", "b")])


TOKENIZERS = {
    "SentencePiece": (sentencepiece_tokenizer, "SentencepieceOp"),
    "WordPiece": (wordpiece_tokenizer, "FastWordpieceTokenizeWithOffsets"),
    "byte-level BPE": (byte_bpe_tokenizer, "SentencepieceOp"),
}


def function_of(answer):
    return tf.function(answer, autograph=False).get_concrete_function(sentences=TEXTS)


def page(functions, **options):
    given = {"notes": "", "modules": {}, "arguments": {}, "output": "n", "requests": {}, **options}
    return Page("Counts", functions, lambda *_: "B", **given)


def length(sentences):
    return {"n": tf.strings.length(sentences)}


def test_a_long_request_is_a_file_that_curl_reads(tmp_path):
    functions = {"serving_default": function_of(length), "other": function_of(length)}
    requests = {name: json.dumps({"sentences": [name * 500]}) for name in functions}
    page(functions, requests=requests, files={"a.wav": b"RIFF"}).write(tmp_path, "m")
    readme = (tmp_path / "README.md").read_text()
    assert len(readme) < 3000
    named = re.findall(r"-d \\\n  @(.*)\n", readme)
    assert named == ["request.json", "request_other.json"]
    bodies = [json.loads((tmp_path / name).read_text()) for name in named]
    assert bodies[0] == {"inputs": {"sentences": ["serving_default" * 500]}}
    assert bodies[1] == {"signature_name": "other", "inputs": {"sentences": ["other" * 500]}}
    assert (tmp_path / "a.wav").read_bytes() == b"RIFF"


def test_a_short_request_stands_in_the_readme(tmp_path):
    requests = {"serving_default": '{"sentences": ["a"]}'}
    page({"serving_default": function_of(length)}, requests=requests).write(tmp_path, "m")
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (
        """-d \\\n  '{"inputs": {"sentences": ["a"]}}'\n""" in (tmp_path / "README.md").read_text()
    )


def test_the_example_of_a_long_recording_is_its_beginning():
    codec = speech_recognizer(max_seconds=30).codec
    rate = codec.speech.sample_rate
    guide = codec.guide(np.zeros(30 * rate, "float32"))
    (content,) = json.loads(guide.request["recordings"])
    assert base64.b64decode(content["b64"]) == guide.files["recording.wav"]
    assert len(guide.files["recording.wav"]) < 2 * 2 * rate + 100
    assert guide.arguments["recordings"] == 'tf.stack([tf.io.read_file("recording.wav")])'


def test_the_example_of_a_long_text_is_its_beginning():
    assert json.loads(quoted(["a" * 9000])) == ["a" * LONGEST_TEXT]


def test_the_readme_names_the_operation_that_is_missing(kind="byte-level BPE"):
    make, operation = TOKENIZERS[kind]
    tokenizer = make()
    assert tokenizer.title == kind
    function = function_of(lambda sentences: {"n": tokenizer.encode(sentences).row_lengths()})
    assert operation in text_operations(function)
    text = page({"serving_default": function}, modules=MODULES).text("m")
    assert f"""loading fails with "Op type not registered '{operation}'".""" in text


def test_a_graph_without_a_tokenizer_needs_no_module():
    assert text_operations(function_of(length)) == []
    text = page({"serving_default": function_of(length)}, modules=MODULES).text("m")
    assert "loading fails" not in text


LOAD = "import sys, tensorflow; tensorflow.saved_model.load(sys.argv[1])"


@pytest.mark.long
@pytest.mark.slow
def test_without_the_import_loading_names_that_operation(tmp_path, kind="byte-level BPE"):
    make, operation = TOKENIZERS[kind]
    module = tf.Module()
    module.tokenizer = make()
    module.call = tf.function(module.tokenizer.encode, input_signature=[TEXTS], autograph=False)
    tf.saved_model.save(module, str(tmp_path))
    done = subprocess.run([sys.executable, "-c", LOAD, tmp_path], capture_output=True, text=True)
    assert f"Op type not registered '{operation}'" in done.stderr
