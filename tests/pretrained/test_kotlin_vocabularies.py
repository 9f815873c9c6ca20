"""Vocabularies of converted models in the Kotlin code of `examples/android`."""

import json
import random
import sys

import kotlin_program
import pytest
import tensorflow as tf
from opus_folders import CODES, SOURCE_TEXT, UNKNOWN_TEXTS, with_unknown_pieces, write_folder
from test_browser_page import SENTENCES

import keras_transformer
from keras_transformer import Greedy, from_pretrained
from keras_transformer.export import LiteRTOptions, export_litert
from keras_transformer.export.litert.packed import pack
from keras_transformer.pretrained.read import read_checkpoint

INTERPRETER = kotlin_program.PROGRAMS.parent / "interpreter.py"


def compare(tokenizers, sentences, path):
    """Compares ids of texts and texts of ids with the package."""
    pack(path, b"the bytes of a model", tokenizers, {"format": 3})
    source, target = tokenizers
    rng = random.Random(1)
    rows = [rng.choices(range(target.vocab_size), k=1 + k % 11) for k in range(300)]
    rows = [[id for id in row if id != target.eos_id] for row in rows]
    lines = [sentence.replace("\n", "\2") for sentence in sentences]
    lines += [f"\1{' '.join(map(str, row))}" for row in rows]
    found = kotlin_program.run("numbered.NumberedKt", path, lines=lines)
    expected = [row[:-1] for row in source.encode(sentences).to_list()]  # without the end token
    ids = [json.loads(line) for line in found[: len(sentences)]]
    assert dict(zip(sentences, ids, strict=True)) == dict(zip(sentences, expected, strict=True))
    texts = target.decode(tf.ragged.constant(rows, dtype=tf.int32)).numpy()
    decoded = [line.replace("\2", "\n") for line in found[len(sentences) :]]
    assert decoded == [text.decode() for text in texts]


@pytest.mark.slow
@pytest.mark.skipif(kotlin_program.without_kotlin(), reason="needs kotlinc and java")
@pytest.mark.parametrize(
    "options",
    [{"codes": CODES, "gap": 3, "extra": 2}, {"separate": True}, {"gap": 1}],
    ids=["codes", "separate", "no codes"],
)
def test_ids_and_texts_are_those_of_the_tokenizers(options, tmp_path):
    write_folder(tmp_path / "hf", **options)
    tokenizers = read_checkpoint(tmp_path / "hf").tokenizers
    assert {*tokenizers.files()} >= {"source.model", "target.ids.json"}
    compare(tokenizers, SENTENCES, tmp_path / "x.tflite")


@pytest.mark.slow
@pytest.mark.skipif(kotlin_program.without_kotlin(), reason="needs kotlinc and java")
def test_characters_known_only_to_the_vocabulary_are_looked_up_as_in_python(tmp_path):
    with_unknown_pieces(tmp_path / "hf")
    tokenizers = read_checkpoint(tmp_path / "hf").tokenizers
    rng = random.Random(2)
    mixed = ["".join(rng.choices("abdogcet жж€漢字ÿxyzüQ1", k=1 + k % 17)) for k in range(300)]
    sentences = list(dict.fromkeys([*UNKNOWN_TEXTS, *mixed]))
    compare(tokenizers, sentences, tmp_path / "x.tflite")


@pytest.mark.slow
@pytest.mark.skipif(kotlin_program.without_kotlin(), reason="needs kotlinc and java")
def test_a_converted_model_translates_as_in_python(tmp_path):
    """LiteRT for Python takes the place of LiteRT for Android."""
    pytest.importorskip("ai_edge_litert")
    write_folder(tmp_path / "hf", codes=CODES)
    sentences = [*SOURCE_TEXT, ">>deu<< a dog", "", "w" * 70]
    options = LiteRTOptions(search=Greedy())
    path = tmp_path / "x.tflite"
    export_litert(from_pretrained(tmp_path / "hf"), path, sentences[:5], options)
    command = "\n".join([sys.executable, str(INTERPRETER), str(path)])
    rows = kotlin_program.run(
        "translations.TranslateKt", path, lines=sentences, INTERPRETER=command
    )
    expected = keras_transformer.open(path).answer(sentences)
    found = [row.split("\t") for row in rows]
    assert [(row[0], row[2], row[3]) for row in found] == [
        (one.text, str(one.truncated).lower(), str(one.complete).lower()) for one in expected
    ]
    assert [float(row[1]) for row in found] == pytest.approx(
        [one.score for one in expected], abs=1e-4
    )
