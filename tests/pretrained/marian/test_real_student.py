"""The student that Marian trained, as a Transformer, against Marian's outputs for 200 sentences."""

import pytest
from searching import by_beam, by_greedy

from keras_transformer.pretrained.files.marian.arrays import Quantized
from keras_transformer.pretrained.files.marian.binary import read_bin, write_bin
from keras_transformer.pretrained.files.marian.npz import write_npz
from keras_transformer.pretrained.files.marian.weights import read
from keras_transformer.pretrained.read import read_checkpoint

LONGEST = 128
BEAM = {"length_penalty": 0.6, "normalization": "power", "stopping": "narrow"}


@pytest.fixture(scope="module")
def converted(student):
    return read_checkpoint(
        student.folder / "model.npz", vocabularies=[student.folder / "vocab.spm"]
    )


def batches(converted, texts):
    """Yields the ids of 50 sentences at a time."""
    for first in range(0, len(texts), 50):
        ids = converted.tokenizers.source.encode(texts[first : first + 50])
        yield ids.to_tensor(converted.model.config.tokens.pad_id)


def pieces(converted, row):
    config = converted.model.config
    words = [
        token for token in row.tolist() if token not in (config.tokens.pad_id, config.tokens.eos_id)
    ]
    return " ".join(converted.tokenizers.target.pieces(words))


def count(converted, row):
    return int((row != converted.model.config.tokens.pad_id).sum())


def is_greedily_the_same(converted, rows):
    found = [
        (tokens, score)
        for ids in batches(converted, [text for text, *_ in rows])
        for tokens, score in zip(
            *(value.numpy() for value in by_greedy(converted.model, ids, LONGEST)),
            strict=True,
        )
    ]
    for (_, expected, total), (tokens, score) in zip(rows, found, strict=True):
        assert pieces(converted, tokens) == expected
        assert abs(score - float(total)) < 1e-4 * count(converted, tokens)


@pytest.mark.long
@pytest.mark.slow
def test_the_output_that_does_not_end_is_cut_as_by_marian(student, converted):
    (row,) = [row for row in student.greedy if len(row[1].split(" ")) > 100]
    is_greedily_the_same(converted, [row])


@pytest.mark.long
@pytest.mark.slow
def test_greedy_search_gives_marians_tokens_and_scores(student, converted):
    is_greedily_the_same(converted, student.greedy[:30])


@pytest.mark.long
@pytest.mark.slow
def test_greedy_search_gives_marians_tokens_and_scores_for_all_sentences(student, converted):
    assert len(student.greedy) == 200
    is_greedily_the_same(converted, student.greedy)


@pytest.mark.slow
@pytest.mark.long
def test_the_beam_gives_marians_hypotheses_and_scores_for_all_sentences(student, converted):
    texts, number = [row[0] for row in student.beam[::4]], 0
    for ids in batches(converted, texts):
        options = {"max_length": LONGEST, **BEAM}
        tokens, scores = by_beam(converted.model, ids, 4, 4, **options)
        for hypotheses, ranked in zip(tokens.numpy(), scores.numpy(), strict=True):
            for row, score in zip(hypotheses, ranked, strict=True):
                _, expected, _, normalized = student.beam[number]
                assert pieces(converted, row) == expected
                assert abs(score - float(normalized)) < 1e-4 * count(converted, row)
                number += 1
    assert number == 800


def test_its_files_are_written_unchanged(student, tmp_path):
    path = student.folder / "model.intgemm.alphas.bin"
    write_bin(tmp_path / "model.bin", read_bin(path))
    assert (tmp_path / "model.bin").read_bytes() == path.read_bytes()
    write_npz(tmp_path / "model.npz", read(student.folder / "model.npz"))
    again = read(tmp_path / "model.npz")
    for name, array in read(student.folder / "model.npz").items():
        assert again[name].tobytes() == array.tobytes() and again[name].shape == array.shape


def test_its_matrices_are_quantised_as_by_marian(student):
    floats, packed = student.weights, read_bin(student.folder / "model.intgemm.alphas.bin")
    matrices = {name: array for name, array in packed.items() if isinstance(array, Quantized)}
    assert len(matrices) == 30
    for name, array in matrices.items():
        if name in floats:
            ours = Quantized.of(floats[name])
            assert (ours.values == array.values).all() and ours.multiplier == array.multiplier
