"""Exports that are refused: before a SavedModel is written, or because it does not agree."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
from marks import long
from support import listing

from keras_transformer.export import SavedModelOptions
from keras_transformer.export.errors import ExportError
from keras_transformer.export.parity import copy_pipeline
from keras_transformer.export.saved_model import generated
from keras_transformer.export.saved_model.export import export_saved_model
from keras_transformer.export.saved_model.loaders import SessionModel, check_operations
from keras_transformer.export.saved_model.signatures import make_endpoints
from keras_transformer.export.saved_model.verify import verify
from keras_transformer.export.saved_model.warmup import Request

SIGNATURES = ["serving_default", "n_best", "tokens", "beam_tokens", "search"]


def refuse(monkeypatch):
    def save(*args, **kwargs):
        raise AssertionError("work was done before the refusal")

    monkeypatch.setattr(tf.saved_model, "save", save)


def test_a_folder_with_other_contents_is_left_alone(translator, tmp_path, monkeypatch):
    refuse(monkeypatch)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("1")
    before = listing(tmp_path)
    with pytest.raises(ExportError, match="thesis contains something other .*chapter.txt"):
        export_saved_model(translator, tmp_path / "thesis", ["in 17 weeks"])
    assert listing(tmp_path) == before


def test_versions_cannot_be_written_to_a_file_or_a_version(translator, tmp_path, monkeypatch):
    refuse(monkeypatch)
    (tmp_path / "file").write_text("1")
    with pytest.raises(ExportError, match="file is a file"):
        export_saved_model(translator, tmp_path / "file", ["in 17 weeks"])
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"")
    with pytest.raises(ExportError, match="1 is itself a SavedModel.*the folder above"):
        export_saved_model(translator, tmp_path / "1", ["in 17 weeks"])


def test_sizes_to_compile_for_are_checked_before_any_work(translator, tmp_path, monkeypatch):
    refuse(monkeypatch)
    with pytest.raises(ValueError, match="`batch_sizes` must be positive and increasing"):
        export_saved_model(
            translator, tmp_path / "x", ["in 3"], SavedModelOptions(jit=True, batch_sizes=(4, 1))
        )
    assert listing(tmp_path) == []


@pytest.mark.parametrize("lengths", [(16,), (16, 32)])
def test_the_last_length_is_the_longest(translator, tmp_path, monkeypatch, lengths):
    refuse(monkeypatch)
    message = f"`lengths` must end in the pipeline's `max_length`, 20. Received: .*{lengths[-1]}"
    with pytest.raises(ValueError, match=message):
        export_saved_model(
            translator, tmp_path / "x", ["in 3"], SavedModelOptions(jit=True, lengths=lengths)
        )
    assert listing(tmp_path) == []


def test_a_layer_that_does_not_exist_is_refused_before_any_work(translator, tmp_path, monkeypatch):
    refuse(monkeypatch)
    with pytest.raises(ValueError, match=r"`alignment` must be a pair .*alignment=\(2, None\)"):
        export_saved_model(
            translator, tmp_path / "x", ["in 3"], SavedModelOptions(alignment=(2, None))
        )
    assert listing(tmp_path) == []


def test_an_export_without_check_sentences_is_refused_before_any_work(
    translator, tmp_path, monkeypatch
):
    refuse(monkeypatch)
    with pytest.raises(ValueError, match="at least one sentence"):
        export_saved_model(translator, tmp_path / "serving", [])
    assert listing(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "which, place", [(0, (7, 3)), pytest.param(-1, (3, 7), marks=pytest.mark.long)]
)
def test_an_export_that_differs_by_one_weight_is_detected(
    light, sentences, tmp_path, monkeypatch, which, place
):
    """The table, or the copy of it that computes the logits."""
    save = tf.saved_model.save

    def save_another(module, *args, **kwargs):
        table = module.weights[which]
        assert sorted(table.shape) == sorted(light.model.target_embedding.table.shape)
        changed = table.numpy()
        changed[place] += 0.05
        table.assign(changed)
        save(module, *args, **kwargs)

    monkeypatch.setattr(tf.saved_model, "save", save_another)
    with pytest.raises(ExportError, match="differ"):
        export_saved_model(light, tmp_path / "new" / "serving", sentences)
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_a_model_that_only_python_can_load_is_detected(light, tmp_path, monkeypatch):
    """Python finds variables that are saved as part of a Keras model; a server does not."""
    save, copies = tf.saved_model.save, []

    def copy(*arguments):
        copies.append(copy_pipeline(*arguments))
        return copies[-1]

    def save_model(module, folder, **kwargs):
        module.weights, module.keras_model = module.weights[-1:], copies[0].model
        save(module, folder, **kwargs)

    monkeypatch.setattr(generated, "copy_pipeline", copy)
    monkeypatch.setattr(tf.saved_model, "save", save_model)
    with pytest.raises(ExportError, match="serving: TensorFlow Serving could not .* find variable"):
        export_saved_model(light, tmp_path / "serving", ["in 17 weeks"])
    assert listing(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [long("serving_default"), long("n_best"), long("tokens"), long("beam_tokens"), "search"]
)
def test_every_signature_is_checked(serving, translator, sentences, name, monkeypatch):
    """The loaded model returns the answers of the sentences in the wrong order."""
    run = SessionModel.run

    def exchanged(model, signature, **inputs):
        outputs = run(model, signature, **inputs)
        return (
            {key: value[::-1] for key, value in outputs.items()} if signature == name else outputs
        )

    monkeypatch.setattr(SessionModel, "run", exchanged)
    with pytest.raises(ExportError, match=f"serving, {name}: .* differ .*not kept"):
        verify(serving[0] / "1", "serving", make_endpoints(translator), sentences[:6], [])


@pytest.mark.slow
def test_every_output_of_an_alignment_is_checked(
    serving,
    translator,
    sentences,
    name="alignment",
    change=lambda value: np.pad(value, [(0, 0), (0, 0), (0, 1)]),
):
    endpoints = make_endpoints(translator, alignment=(-1, None))[::5]
    answer = endpoints[1].answer
    endpoints[1].answer = lambda sentences: {
        key: change(value.numpy()) if key == name else value
        for key, value in answer(sentences).items()
    }
    with pytest.raises(ExportError, match=f"x, alignment: `{name}` of '.*' differs .*not kept"):
        verify(serving[0] / "1", "x", endpoints, sentences[:5], [])


@pytest.mark.long
@pytest.mark.slow
def test_an_alignment_of_another_layer_is_detected(deep, sentences, tmp_path, monkeypatch):
    def make(translator, search, n_best, graph_of=None, alignment=None):
        if graph_of is None:
            return make_endpoints(translator, search, n_best, alignment=alignment)
        return make_endpoints(translator, search, n_best, graph_of, (0, None))

    monkeypatch.setattr("keras_transformer.export.saved_model.generated.make_endpoints", make)
    message = "serving, alignment: `alignment` of .* differs .* not kept"
    with pytest.raises(ExportError, match=message):
        export_saved_model(
            deep, tmp_path / "serving", sentences[:3], SavedModelOptions(alignment=(-1, None))
        )
    assert listing(tmp_path) == []


@pytest.mark.long
@pytest.mark.slow
def test_a_warmup_request_that_the_server_cannot_answer_is_detected(serving, translator, sentences):
    request = Request("tokens", {"source": [[5, 6]]})
    with pytest.raises(ExportError, match="could not run it: .*must end each row in the id 3"):
        verify(serving[0] / "1", "x", make_endpoints(translator), sentences, [request])


def test_operations_that_a_server_lacks_are_reported():
    graph = tf.compat.v1.GraphDef()
    for operation in ("Add", "XlaSharding", "SentencepieceOp", "TokenizerFromHub", "AddV2"):
        graph.node.add(op=operation)
    message = "does not have the operations TokenizerFromHub, XlaSharding"
    with pytest.raises(ExportError, match=message):
        check_operations(graph)


@pytest.mark.slow
def test_ctrl_c_leaves_no_file(light, tmp_path, monkeypatch):
    def stop(module, folder, **kwargs):
        pathlib.Path(folder, "variables").mkdir()
        pathlib.Path(folder, "variables", "half").write_bytes(b"of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(tf.saved_model, "save", stop)
    version = tmp_path / "serving" / "1"
    version.mkdir(parents=True)
    (version / "saved_model.pb").write_bytes(b"an older one")
    before = listing(tmp_path)
    for directory in (tmp_path / "serving", tmp_path / "new" / "serving"):
        with pytest.raises(KeyboardInterrupt):
            export_saved_model(light, directory, ["in 17 weeks"])
    assert listing(tmp_path) == before


@pytest.mark.slow
def test_a_full_disk_is_reported_in_one_line(light, tmp_path, full_disk):
    with pytest.raises(OSError, match="serving .*File too large") as caught, full_disk(50_000):
        export_saved_model(light, tmp_path / "serving", ["in 17 weeks"])
    assert "\n" not in str(caught.value)
    assert listing(tmp_path) == []
