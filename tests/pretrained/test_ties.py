"""Settings and files that disagree on output weights: the file decides, and a note says so."""

import json

import gpt2_folders
import llama_folders
import numpy as np
import opus_folders
import pytest
import seq2seq_folders
import t5_folders
import whisper_folders

from keras_transformer.pretrained.read import read_checkpoint

WRITERS = {
    "gpt2": gpt2_folders.write_folder,
    "llama": llama_folders.write_folder,
    "t5": t5_folders.write_folder,
    "bart": lambda folder, **changes: seq2seq_folders.write_folder(folder, "bart", **changes),
    "opus": opus_folders.write_folder,
    "whisper": whisper_folders.write_folder,
}
OUTPUT = {"whisper": "proj_out.weight"}
FAST = ("gpt2", "llama", "t5")
CASES = [
    pytest.param(name, marks=() if name in FAST else pytest.mark.slow, id=name) for name in WRITERS
]


def tied_settings(folder, tied):
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**content, "tie_word_embeddings": tied}))


@pytest.mark.parametrize("name", CASES)
def test_weights_in_the_file_are_used_although_the_settings_tie_them(tmp_path, name):
    _, tensors, *_ = WRITERS[name](tmp_path, tie_word_embeddings=False)
    tied_settings(tmp_path, tied=True)
    checkpoint = read_checkpoint(tmp_path)
    output = OUTPUT.get(name, "lm_head.weight")
    assert checkpoint.model.config.head.tie == "none"
    (note,) = [note for note in checkpoint.notes if "tie_word_embeddings" in note]
    assert note.startswith(f"`tie_word_embeddings` is true, but {output} differs from ")
    kernel = checkpoint.model.output_layer.kernel.numpy().T
    np.testing.assert_allclose(kernel[: len(tensors[output])], tensors[output], atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_output_weights_that_are_missing_are_those_of_the_embedding(tmp_path, name):
    WRITERS[name](tmp_path, tie_word_embeddings=True)
    expected = read_checkpoint(tmp_path)
    assert not [note for note in expected.notes if "tie_word_embeddings" in note]
    tied_settings(tmp_path, tied=False)
    checkpoint = read_checkpoint(tmp_path)
    (note,) = [note for note in checkpoint.notes if "tie_word_embeddings" in note]
    assert note.startswith("`tie_word_embeddings` is false, but the file has no ")
    assert checkpoint.model.config.head.tie == expected.model.config.head.tie != "none"
    ours, theirs = (c.model.get_weights() for c in (checkpoint, expected))
    if name != "t5":  # whose settings also say whether outputs are scaled
        for one, two in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, two)


def test_a_base_model_without_output_weights_is_refused(tmp_path):
    changes = {"architectures": ["LlamaModel"], "tie_word_embeddings": True}
    llama_folders.write_folder(tmp_path, prefix="", **changes)
    assert read_checkpoint(tmp_path).model.config.head.tie == "all"
    tied_settings(tmp_path, tied=False)
    message = r"lm_head\.weight is missing, and .*: LlamaModel is a base model without output"
    with pytest.raises(ValueError, match=message):
        read_checkpoint(tmp_path)
