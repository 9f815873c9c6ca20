import shutil
import sys
import zipfile

import pytest

from keras_transformer.export.loaded import LiteRTTranslator, SavedModelTranslator
from keras_transformer.translation import translate_sorted


@pytest.fixture(scope="module")
def file(export):
    pytest.importorskip("ai_edge_litert")
    return export("none")[0]


@pytest.fixture(params=["the newest version", "a version", "a .tflite file"], scope="module")
def loaded(request, serving):
    if request.param == "a .tflite file":
        return LiteRTTranslator(request.getfixturevalue("file"))
    folder = serving[0] if request.param == "the newest version" else serving[0] / "1"
    return SavedModelTranslator(folder)


def same(found, expected):
    assert [each.text for each in found] == [each.text for each in expected]
    assert [each.truncated for each in found] == [each.truncated for each in expected]
    scores = [each.score for each in expected]
    assert [each.score for each in found] == pytest.approx(scores, abs=1e-4)


def test_translates_as_the_model_in_memory(loaded, translator, sentences):
    expected = translator.translate_batch(sentences)
    assert any(each.truncated for each in expected)
    same(loaded.translate_batch(sentences), expected)
    same(translate_sorted(loaded, sentences, batch_size=4), expected)


def test_odd_batches(loaded, translator):
    for batch in ([], [""], [" ", "in 3 weeks", "", "\n"], ["x" * 5000]):
        same(loaded.translate_batch(batch), translator.translate_batch(batch))


def test_a_surrogate_is_an_error_that_says_so(loaded):
    with pytest.raises(ValueError, match="unicode string"):
        loaded.translate_batch(["in 3 weeks", "\udcff"])


def test_the_newest_version_is_taken(serving, tmp_path):
    for version in ("9", "10", "notes"):
        (tmp_path / version).mkdir()
    (tmp_path / "9" / "saved_model.pb").write_bytes(b"not a SavedModel")
    for item in (serving[0] / "1").iterdir():
        (tmp_path / "10" / item.name).symlink_to(item)
    assert SavedModelTranslator(tmp_path).translate_batch(["in 3 weeks"])[0].text


def test_what_is_no_saved_model_is_named(tmp_path):
    with pytest.raises(ValueError, match="nowhere is not a SavedModel"):
        SavedModelTranslator(tmp_path / "nowhere")
    (tmp_path / "saved_model.pb").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="cannot be read as a SavedModel"):
        SavedModelTranslator(tmp_path)


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 255
    file.write_bytes(bytes(content))


PROTO, INDEX = "saved_model.pb", "variables/variables.index"
DATA = "variables/variables.data-00000-of-00001"


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        (PROTO, cut),
        (PROTO, lambda file: file.write_bytes(b"")),
        (PROTO, lambda file: file.write_bytes(b"my thesis")),
        (INDEX, cut),
        (INDEX, lambda file: file.unlink()),
        (INDEX, lambda file: file.write_bytes(b"my thesis")),
        (DATA, cut),
        (DATA, flip),
        (DATA, lambda file: file.unlink()),
        (DATA, lambda file: file.write_bytes(b"")),
    ],
)
def test_a_damaged_saved_model_is_one_line_that_names_file_and_remedy(
    small_saved_model, tmp_path, name, damage
):
    copy = tmp_path / "model" / "1"
    shutil.copytree(small_saved_model, copy)
    damage(copy / name)
    message = f"1 cannot be read as a SavedModel: .*1/{name} is damaged or missing .* export it ag"
    for path in (copy, copy.parent):
        with pytest.raises(ValueError, match=message) as caught:
            SavedModelTranslator(path)
        assert "\n" not in str(caught.value)


def test_variables_that_are_all_missing_are_named(small_saved_model, tmp_path):
    shutil.copytree(small_saved_model, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "variables")
    with pytest.raises(ValueError, match="variables/variables.data-00000-of-00001 is .*missing"):
        SavedModelTranslator(tmp_path)


@pytest.fixture(scope="module")
def small_saved_model(tmp_path_factory):
    """One that takes sentences and has a variable: which model it is does not matter here."""
    import tensorflow as tf

    module, path = tf.Module(), tmp_path_factory.mktemp("small") / "1"
    module.table = tf.Variable(tf.random.normal([100, 7]))
    signature = [tf.TensorSpec([None], tf.string, name="sentences")]
    module.f = tf.function(lambda sentences: module.table[0, 0], input_signature=signature)
    tf.saved_model.save(module, path, signatures={"serving_default": module.f})
    SavedModelTranslator(path)  # is fine before it is damaged
    return path


def test_a_saved_model_of_something_else_is_named(tmp_path):
    import tensorflow as tf

    module = tf.Module()
    module.f = tf.function(lambda x: x + 1, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(module, tmp_path)
    with pytest.raises(ValueError, match="has no signature .*sentences"):
        SavedModelTranslator(tmp_path)


def test_what_is_no_tflite_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="nowhere.tflite .*does not exist"):
        LiteRTTranslator(tmp_path / "nowhere.tflite")
    path = tmp_path / "x.tflite"
    for content in (b"", b"my thesis", b"\x1c\0\0\0TFL3"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="x.tflite was not written by `keras-transformer exp"):
            LiteRTTranslator(path)


def test_a_damaged_file_is_named(file, tmp_path):
    content = file.read_bytes()
    path = tmp_path / "x.tflite"
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="x.tflite was not written by"):
        LiteRTTranslator(path)
    with zipfile.ZipFile(file) as archive:
        start = min(item.header_offset for item in archive.infolist())
    path.write_bytes(b"\0" * 1000 + content[1000:start] + content[start:])
    with pytest.raises(ValueError, match="x.tflite cannot be read by LiteRT"):
        LiteRTTranslator(path)


def test_a_file_from_the_future_is_named(file, tmp_path):
    content = file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        facts = archive.read("facts.json")
    path = tmp_path / "x.tflite"
    path.write_bytes(content[: content.index(b"PK\x03\x04")])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("tokenizer.model", b"")
        archive.writestr("facts.json", facts.replace(b'"format": 2', b'"format": 3'))
    with pytest.raises(ValueError, match="x.tflite has format 3; this package reads format 2"):
        LiteRTTranslator(path)


def test_without_litert_the_message_says_what_to_install(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(ValueError, match=r'pip install "keras-transformer-kit\[litert\]"'):
        LiteRTTranslator(file)
