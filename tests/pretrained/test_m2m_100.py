"""M2M100 and NLLB against their arithmetic in NumPy, and their languages."""

import documents  # noqa: F401
import marian_in_numpy as marian
import numpy as np
import opus_folders
import pytest
from seq2seq_folders import write_folder

from keras_transformer.pretrained.read import read_checkpoint

PAD, END = 1, 2
ENGLISH = {"m2m100": "en", "nllb": "eng_Latn", "nllb_legacy": "eng_Latn"}
GERMAN = {"m2m100": "de", "nllb": "deu_Latn", "nllb_legacy": "deu_Latn"}


def rows_of(settings, first, second, place, lengths=(7, 3, 1), seed=0):
    """Returns random sources as the pipeline takes them, and as Hugging Face's models do."""
    texts = opus_folders.random_tokens(settings, lengths, seed)
    ours = np.insert(texts, 0, [[first], [second]], axis=1)
    theirs = np.insert(texts, 0, second, axis=1)
    if place == "after":
        theirs = np.pad(texts, [(0, 0), (0, 1)], constant_values=PAD)
        theirs[range(len(texts)), (texts != PAD).sum(1)] = second
    return ours.astype("int32"), theirs


@pytest.mark.parametrize("name", ["m2m100", "nllb_legacy"])
def test_logits_states_and_searches(name, tmp_path):
    settings, tensors = write_folder(tmp_path, name)
    checkpoint = read_checkpoint(tmp_path)
    model, languages = checkpoint.model, checkpoint.tokenizers.languages
    first, second = languages.prefix
    place = "after" if name == "nllb_legacy" else "before"
    ours, theirs = rows_of(settings, first, second, place)
    target = opus_folders.random_tokens(settings, (5, 4, 2), 1, start=END)
    target[:, 1] = first
    states, logits = marian.forward(tensors, settings, theirs, target)
    real = theirs != PAD
    found, allowed = model.encode(ours)
    np.testing.assert_array_equal(allowed[:, 0, : theirs.shape[1]], real)
    found = found.numpy()[:, : theirs.shape[1]]
    np.testing.assert_allclose(found[real], states[real], rtol=0, atol=1e-5)
    found = model({"source": ours, "target": target}, training=False)
    np.testing.assert_allclose(found, logits, rtol=0, atol=1e-4)
    tokens, scores = (x.numpy() for x in checkpoint.search(model, ours, cache_length=6)[:2])
    assert (tokens[:, 0, 0] == first).all()
    shown = [[int(token) for token in row if token != PAD] for row in tokens[:, 0]]
    for row, expected, source in zip(shown, scores[:, 0], theirs, strict=True):
        score = 0.0
        for number in range(1, len(row)):
            logits = marian.forward(
                tensors, settings, source[None], np.array([[END, *row[:number]]])
            )
            last = logits[1][0, -1]
            score += last[row[number]] - np.logaddexp.reduce(last)
        assert score / len(row) == pytest.approx(float(expected), abs=1e-4)  # the first is free
