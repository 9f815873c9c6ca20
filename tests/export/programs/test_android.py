"""The program in `examples/android`: compiled, and its token ids beside the Python package's.

LiteRT's library for Android does not run here: what the program uses of it and of Android's JSON
reader are empty classes in `kotlin/`, which the compiler checks it against.
"""

import pathlib
import random
import shutil
import subprocess

import pytest
import tensorflow as tf
from test_browser_modules import odd_text, plain_text, vocabulary, with_standard_normalization

from keras_transformer import Tokenizer
from keras_transformer.export.litert.packed import pack
from keras_transformer.tasks.strings import encode
from keras_transformer.text.tokenizers import Tokenizers

HERE = pathlib.Path(__file__).parent
EXAMPLE = HERE.parents[2] / "examples" / "android"
SOURCES = EXAMPLE / "src" / "main" / "kotlin"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("kotlinc") and shutil.which("java")), reason="needs kotlinc and java"
    ),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """All of it, compiled with a `main` that tokenises."""
    jar = tmp_path_factory.mktemp("kotlin") / "x.jar"
    command = ["kotlinc", "-Werror", "-include-runtime", "-d", jar, SOURCES, HERE / "kotlin"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return jar


@pytest.mark.parametrize(
    "model",
    [
        lambda: vocabulary("bpe", True),
        lambda: vocabulary("unigram", True),
        lambda: vocabulary("unigram", False),
        with_standard_normalization,
    ],
    ids=["bpe", "unigram", "whole numbers", "nmt_nfkc"],
)
def test_ids_and_texts_are_those_of_the_tokenizer(program, model, tmp_path):
    tokenizer = Tokenizer(model())
    path = tmp_path / "x.tflite"
    pack(path, b"the bytes of a model", Tokenizers.of(tokenizer), {"format": 2})
    rng = random.Random(3)
    sentences = plain_text(rng) + odd_text(rng)
    # At the limit of 64 bytes for each of 7 tokens, also within a character.
    sentences += ["ж" * 223, "ж" * 224, "ж" * 225, "a" + "語" * 200, "in" + " " * 500]
    done = subprocess.run(
        ["java", "-cp", program, "MainKt", path],
        input="\n".join(sentences).encode(),
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    facts, *answers = done.stdout.decode().removesuffix("\n").split("\n")
    assert '"format": 2' in facts and '"crc32": ' in facts
    expected = [row[:-1] for row in tokenizer.encode(sentences).to_list()]
    assert [f"{ids}" for ids in expected] == answers[::3]
    texts = [text.decode() for text in tokenizer.decode(tokenizer.encode(sentences)).numpy()]
    assert answers[1::3] == texts
    ids, cut, empty = encode(tokenizer, tf.constant(sentences), 7)
    sources = zip(ids.to_list(), cut.numpy(), empty.numpy(), strict=True)
    assert answers[2::3] == [
        f"Source(ids={[] if nothing else row}, cut={'true' if too_long else 'false'})"
        for row, too_long, nothing in sources
    ]
