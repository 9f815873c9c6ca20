import json
import re
import shutil
import sys
import zipfile

import pytest
from threads import in_threads, turned

from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.saved_model.metadata import write_task
from keras_transformer.export.saved_model.runtime import SavedModelTranslator
from keras_transformer.installation import install_hint
from keras_transformer.tasks.strings import map_sorted


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


def same(outputs, expected):
    assert [output.text for output in outputs] == [output.text for output in expected]
    assert [output.truncated for output in outputs] == [output.truncated for output in expected]
    scores = [output.score for output in expected]
    assert [output.score for output in outputs] == pytest.approx(scores, abs=1e-4)


@pytest.mark.slow
def test_it_translates_as_the_model_in_memory(loaded, translator, sentences):
    expected = translator.answer_batch(sentences)
    assert any(output.truncated for output in expected)
    same(loaded.answer_batch(sentences), expected)
    same(map_sorted(loaded.answer_batch, sentences, 4), expected)


@pytest.mark.slow
def test_eight_threads_get_the_same_results_as_one(serving, sentences):
    """For .tflite files see `test_threads_of_exports`, in a process of its own."""
    shared, batches = SavedModelTranslator(serving[0]), turned(sentences[:3])
    answers = in_threads(shared.answer_batch, batches)
    assert answers == [shared.answer_batch(batch) for batch in batches]
    assert len(set(answers[0])) == 3


@pytest.mark.slow
def test_odd_batches(loaded, translator):
    for batch in ([], [""], [" ", "in 3 weeks", "", "\n"], ["x" * 5000]):
        same(loaded.answer_batch(batch), translator.answer_batch(batch))


@pytest.mark.slow
def test_a_surrogate_is_an_error_that_names_it(loaded):
    with pytest.raises(ValueError, match="unicode string"):
        loaded.answer_batch(["in 3 weeks", "\udcff"])


@pytest.mark.slow
def test_the_newest_version_is_loaded(serving, tmp_path):
    for version in ("9", "10", "notes"):
        (tmp_path / version).mkdir()
    (tmp_path / "9" / "saved_model.pb").write_bytes(b"not a SavedModel")
    for item in (serving[0] / "1").iterdir():
        (tmp_path / "10" / item.name).symlink_to(item)
    assert SavedModelTranslator(tmp_path).answer_batch(["in 3 weeks"])[0].text


def test_a_folder_that_is_not_a_saved_model_is_reported(tmp_path):
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
def test_a_damaged_saved_model_is_one_line_with_file_and_remedy(
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


def test_missing_variables_are_reported(small_saved_model, tmp_path):
    shutil.copytree(small_saved_model, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "variables")
    with pytest.raises(ValueError, match="variables/variables.data-00000-of-00001 is .*missing"):
        SavedModelTranslator(tmp_path)


@pytest.fixture(scope="module")
def small_saved_model(tmp_path_factory):
    """A SavedModel with sentences as input and a variable; the model itself does not matter."""
    import tensorflow as tf

    module, path = tf.Module(), tmp_path_factory.mktemp("small") / "1"
    module.table = tf.Variable(tf.random.normal([100, 7]))
    signature = [tf.TensorSpec([None], tf.string, name="sentences")]
    module.f = tf.function(
        lambda sentences: {"translation": module.table[0, 0]}, input_signature=signature
    )
    tf.saved_model.save(module, path, signatures={"serving_default": module.f})
    write_task(path, "translation")
    SavedModelTranslator(path)  # loads before it is damaged
    return path


def test_a_saved_model_of_something_else_is_reported(tmp_path):
    import tensorflow as tf

    module = tf.Module()
    module.f = tf.function(lambda x: x + 1, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(module, tmp_path)
    with pytest.raises(ValueError, match=r"has no assets.extra/metadata.json, which names its tas"):
        SavedModelTranslator(tmp_path)
    write_task(tmp_path, "translation")
    with pytest.raises(ValueError, match="has no signature .*sentences"):
        SavedModelTranslator(tmp_path)
    write_task(tmp_path, "weaving")
    with pytest.raises(ValueError, match=r"has the task 'weaving', which is unknown: import the"):
        SavedModelTranslator(tmp_path)


def test_a_file_that_is_not_tflite_is_reported(tmp_path):
    with pytest.raises(ValueError, match="nowhere.tflite .*does not exist"):
        LiteRTTranslator(tmp_path / "nowhere.tflite")
    path = tmp_path / "x.tflite"
    for content in (b"", b"my thesis", b"\x1c\0\0\0TFL3"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="x.tflite was not written by `keras-transformer exp"):
            LiteRTTranslator(path)


def write(path, model, **members):
    """Writes a .tflite file from a model and archive members, given by the start of their names."""
    path.write_bytes(model)
    with zipfile.ZipFile(path, "a") as archive:
        for name, content in members.items():
            archive.writestr(
                {"tokenizer": "tokenizer.model", "metadata": "metadata.json"}[name], content
            )
    return path


@pytest.fixture(scope="module")
def parts(file):
    """The model, the vocabulary and the metadata of a file."""
    with zipfile.ZipFile(file) as archive:
        start = min(item.header_offset for item in archive.infolist())
        vocabulary, metadata = (
            archive.read("tokenizer.model"),
            json.loads(archive.read("metadata.json")),
        )
    return file.read_bytes()[:start], vocabulary, metadata


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_truncated_file_is_reported(file, tmp_path, share):
    content = file.read_bytes()
    path = tmp_path / "x.tflite"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ValueError, match="x.tflite was not written by .*, or is damaged"):
        LiteRTTranslator(path)


def test_a_file_without_one_of_its_members_is_reported(parts, tmp_path):
    model, vocabulary, metadata = parts
    for members in ({"tokenizer": vocabulary}, {"metadata": json.dumps(metadata)}, {}):
        path = write(tmp_path / "x.tflite", model, **members)
        what = (
            "is damaged: its vocabulary"
            if "metadata" in members
            else "was not written by .*, or is"
        )
        with pytest.raises(ValueError, match=f"x.tflite {what}"):
            LiteRTTranslator(path)


def without(metadata, name):
    return {key: value for key, value in metadata.items() if key != name}


@pytest.mark.parametrize(
    "damage",
    [
        lambda metadata: b"{",
        lambda metadata: b"\xff\xfe",
        lambda metadata: b"[1, 2]",
        lambda metadata: b"7",
        lambda metadata: without(metadata, "format"),
        lambda metadata: without(metadata, "signatures"),
        lambda metadata: without(metadata, "max_length"),
        lambda metadata: {**metadata, "signatures": 7},
        lambda metadata: {**metadata, "signatures": []},
        lambda metadata: {**metadata, "signatures": [{"name": "greedy_1x16"}]},
        lambda metadata: {
            **metadata,
            "signatures": [{**metadata["signatures"][0], "batch_size": "1"}],
        },
        lambda metadata: {**metadata, "signatures": [{**metadata["signatures"][0], "more": 1}]},
        lambda metadata: {**metadata, "max_length": "long"},
    ],
)
def test_metadata_that_are_garbage_are_reported(parts, tmp_path, damage):
    model, vocabulary, metadata = parts
    metadata = damage(metadata)
    metadata = metadata if isinstance(metadata, bytes) else json.dumps(metadata)
    path = write(tmp_path / "x.tflite", model, tokenizer=vocabulary, metadata=metadata)
    message = "x.tflite is damaged: its metadata.json cannot be read. Export it again."
    with pytest.raises(ValueError, match=message):
        LiteRTTranslator(path)


def test_a_vocabulary_that_is_garbage_is_reported(parts, tmp_path):
    model, _, metadata = parts
    path = write(
        tmp_path / "x.tflite", model, tokenizer=b"my thesis", metadata=json.dumps(metadata)
    )
    with pytest.raises(ValueError, match="x.tflite is damaged: its vocabulary cannot be read"):
        LiteRTTranslator(path)


def test_a_changed_model_is_reported(file, parts, tmp_path):
    """A flipped bit of a weight would change translations; one of the graph might crash."""
    model, vocabulary, metadata = parts
    changed = bytearray(file.read_bytes())
    changed[len(model) // 2] ^= 1
    path = tmp_path / "x.tflite"
    path.write_bytes(changed)
    with pytest.raises(ValueError, match="x.tflite is damaged: its model is not the one that was"):
        LiteRTTranslator(path)
    model = b"\0" * 1000 + model[1000:]
    metadata = json.dumps(without(metadata, "crc32"))
    write(path, model, tokenizer=vocabulary, metadata=metadata)
    with pytest.raises(ValueError, match="x.tflite cannot be read by LiteRT"):
        LiteRTTranslator(path)


def test_a_signature_that_the_model_does_not_have_is_reported(parts, tmp_path):
    model, vocabulary, metadata = parts
    metadata = {**metadata, "signatures": [{**metadata["signatures"][0], "name": "greedy_1x17"}]}
    path = write(tmp_path / "x.tflite", model, tokenizer=vocabulary, metadata=json.dumps(metadata))
    with pytest.raises(ValueError, match="x.tflite is damaged: its model has no greedy_1x17"):
        LiteRTTranslator(path)


@pytest.mark.parametrize("version", [2, 4, None])
def test_a_file_of_another_format_is_reported(parts, tmp_path, version):
    model, _, metadata = parts
    metadata = json.dumps({**metadata, "format": version, "signatures": "of another kind"})
    path = write(tmp_path / "x.tflite", model, tokenizer=b"", metadata=metadata)
    message = f"x.tflite has format {version}; this package reads format 3. Export it again."
    with pytest.raises(ValueError, match=message):
        LiteRTTranslator(path)


def test_a_folder_is_reported(tmp_path):
    pytest.importorskip("ai_edge_litert")
    with pytest.raises(ValueError, match="x.tflite is a folder, not a .tflite file"):
        (tmp_path / "x.tflite").mkdir()
        LiteRTTranslator(tmp_path / "x.tflite")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_threads": 0}, "`num_threads` must be an integer of at least 1.* Received: .*=0."),
        ({"num_threads": 1.5}, "`num_threads` must be an integer of at least 1.* Received: .*1.5."),
    ],
)
def test_wrong_numbers_are_refused(file, options, message):
    with pytest.raises(ValueError, match=message):
        LiteRTTranslator(file, **options)


@pytest.mark.parametrize("wrong", ["in 3 weeks", [1], [None], ["in 3", 7], 7, None])
def test_inputs_that_are_not_sentences_are_refused(file, wrong):
    with pytest.raises(TypeError, match="`sentences` must be a list of strings. Received: "):
        LiteRTTranslator(file).answer_batch(wrong)


def test_without_litert_the_message_gives_the_install_command(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    monkeypatch.setitem(sys.modules, "ai_edge_litert.compiled_model", None)
    with pytest.raises(ValueError, match=re.escape(install_hint("litert"))):
        LiteRTTranslator(file)
