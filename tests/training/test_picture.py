"""The picture shows the weights with which each piece of the translation was chosen."""

import io
import subprocess
import sys

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from keras_transformer import Tokenizer, Translator
from keras_transformer.plots.attention import cross_attention, draw_attention

LINES = ["the dog runs over the meadow", "der hund läuft über die wiese", "two apples", "äpfel"]


@pytest.fixture
def translator(small_model):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=model, vocab_size=40, model_type="bpe",
        pad_id=0, unk_id=1, bos_id=2, eos_id=3, minloglevel=2,
    )  # fmt: skip
    return Translator(small_model(vocab_size=40), Tokenizer(model.getvalue()), max_length=9)


def test_weights_belong_to_the_pieces_that_were_chosen(translator):
    sentence = "the dog"
    source, target, weights = cross_attention(translator, sentence)
    assert "".join(source) == "▁the▁dog</s>"
    config = translator.model.config
    layers = config.num_decoder_layers
    assert weights.shape == (layers, config.num_heads, len(target), len(source))
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    # Each piece is the best one after those before it, which are all that its row has seen.
    ids, _, _ = translator.encode(tf.constant([sentence]))
    processor = sentencepiece.SentencePieceProcessor(model_proto=translator.target_tokenizer.model)
    chosen = [processor.piece_to_id(piece) for piece in target]
    logits = translator.model({"source": ids, "target": tf.constant([[2, *chosen[:-1]]])})
    assert np.argmax(logits[0], axis=-1).tolist() == chosen
    first = translator.model.attention_weights({"source": ids, "target": tf.constant([[2]])})
    first = first[f"decoder/block_{layers - 1}/cross_attention"][0, :, 0]
    np.testing.assert_allclose(weights[-1, :, 0], first, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("layers", [False, True])
def test_a_png_file_is_written(translator, tmp_path, layers):
    path = tmp_path / "new" / "attention.png"
    draw_attention(translator, "two apples", path, layers=layers)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in path.parent.iterdir()] == ["attention.png"]
    from matplotlib.image import imread

    image = imread(path)
    assert image[..., :3].min() < 0.9  # something is drawn


def test_an_empty_sentence_has_no_picture(translator, tmp_path):
    with pytest.raises(ValueError, match="`sentence` must not be empty. Received: ' '"):
        draw_attention(translator, " ", tmp_path / "x.png")


@pytest.mark.slow
def test_without_matplotlib_one_line_says_what_to_install(translator, tmp_path, monkeypatch):
    for name in ("matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=r"`matplotlib` must be installed .*kit\[plot\]"):
        draw_attention(translator, "two apples", tmp_path / "x.png")


@pytest.mark.slow
def test_matplotlib_is_needed_only_to_draw():
    code = "import sys; sys.modules['matplotlib'] = None; import keras_transformer.plots.attention"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
