"""The same tokens eagerly, in a graph, under XLA, from a SavedModel and from a .tflite file."""

import numpy as np
import pytest
import tensorflow as tf
from exporting import asked
from phrases import phrases
from searching import by_beam, by_greedy, by_sample

from keras_transformer import Beam, Greedy
from keras_transformer.export import LiteRTOptions
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.litert.tensorflow_converter import convert_functions
from keras_transformer.export.place import save

interpreters = pytest.importorskip("ai_edge_litert.interpreter")

LIMIT, BATCH, BEAM = 20, 96, 4
SEARCHES = {
    "greedy": lambda model, source: by_greedy(model, source, LIMIT),
    "beam": lambda model, source: by_beam(model, source, BEAM, max_length=LIMIT),
}


@pytest.fixture(scope="module")
def source(translator):
    """288 rows: held-out phrases, an empty one, single tokens, nonsense, and the maximum length."""
    tokenizer = translator.source_tokenizer
    words = np.random.default_rng(0).integers(4, tokenizer.vocab_size, [40, LIMIT])
    nonsense = [[*row[: 1 + index % (LIMIT - 1)], 3] for index, row in enumerate(words)]
    edges = [[3], *([token, 3] for token in range(4, 15)), [*words[0, 1:], 3], [*words[1, 1:], 3]]
    held_out = [text for text, _ in phrases()[4480:]]
    rows = [
        row for row in translator.source_tokenizer.encode(held_out).to_list() if len(row) <= LIMIT
    ]
    rows = [*edges, *nonsense, *rows][: 3 * BATCH]
    padded = np.zeros([len(rows), LIMIT], np.int32)
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    return padded


@pytest.fixture(scope="module")
def file(translator, sentences, tmp_path_factory):
    path = tmp_path_factory.mktemp("everywhere") / "x.tflite"
    options = {"lengths": [LIMIT], "batch_sizes": [BATCH], "search": Beam(BEAM)}
    export_litert(translator, path, sentences, **asked(LiteRTOptions, **options))
    return path


def in_batches(answer, source):
    """Calls `answer` for batches of rows; returns one pair of arrays `[B, L]` and `[B]`."""
    batches = [answer(batch) for batch in np.split(source, len(source) // BATCH)]
    tokens, scores = zip(*batches, strict=True)
    return np.concatenate(tokens).reshape(len(source), -1), np.concatenate(scores).reshape(-1)


@pytest.mark.slow
def test_the_same_tokens_everywhere(translator, serving, file, source, search="beam"):
    def decode(source):
        return SEARCHES[search](translator.model, source)

    loaded = tf.saved_model.load(str(serving[0] / "1"))
    endpoint = loaded.signatures["tokens" if search == "greedy" else "beam_tokens"]
    phone = LiteRTTranslator(file, Greedy() if search == "greedy" else Beam(BEAM))
    graph, compiled = (tf.function(decode, jit_compile=jit) for jit in (False, True))

    def saved_model(batch):
        answer = endpoint(tf.constant(batch))
        tokens, scores = (answer[name].numpy() for name in ("tokens", "score"))
        if search == "beam":
            tokens, scores = tokens[:, 0], scores[:, 0]
        return np.pad(tokens, [(0, 0), (0, LIMIT - tokens.shape[1])]), scores

    ways = {
        "graph": graph,
        "XLA": compiled,
        "SavedModel": saved_model,
        "LiteRT": lambda batch: phone.decode([row[row != 0].tolist() for row in batch]),
    }
    expected, scores = in_batches(decode, source)
    assert len({tuple(row) for row in expected}) > 200
    lengths = (expected != 0).sum(axis=1)
    assert len(set(lengths)) > 10 and np.sum(lengths == LIMIT) > 3  # some end only at the limit
    for name, answer in ways.items():
        tokens, sums = in_batches(answer, source)
        np.testing.assert_array_equal(tokens, expected, err_msg=name)
        np.testing.assert_allclose(sums, scores, atol=1e-4, err_msg=name)


@pytest.mark.long
@pytest.mark.slow
def test_the_same_sample_everywhere(translator, source, tmp_path):
    """Exports do not sample: these graphs are made here from the function of `Translator`."""
    model = translator.model

    def sample(source, controls, seed):
        """Takes temperature, top k and top p in one tensor: LiteRT has no tensors without axes."""
        top_k = tf.cast(controls[1], tf.int32)
        tokens, scores = by_sample(model, source, controls[0], top_k, controls[2], seed, LIMIT)
        return {"tokens": tokens, "score": scores}

    graph, compiled = (tf.function(sample, jit_compile=jit) for jit in (False, True))
    concrete = graph.get_concrete_function(
        source=tf.TensorSpec([BATCH, LIMIT], tf.int32, name="source"),
        controls=tf.TensorSpec([3], tf.float32, name="controls"),
        seed=tf.TensorSpec([BATCH, 2], tf.int32, name="seed"),
    )
    module = tf.Module()
    module.weights = [variable.value for variable in model.variables]
    save(module, tmp_path / "saved_model", {"sample": concrete})
    loaded = tf.saved_model.load(str(tmp_path / "saved_model"))
    content = convert_functions(model, {"sample": concrete})
    ways = {
        "graph": graph,
        "XLA": compiled,
        "SavedModel": loaded.signatures["sample"],
        "LiteRT": interpreters.Interpreter(model_content=content).get_signature_runner("sample"),
    }
    batch = source[:BATCH]
    seeds = np.random.default_rng(0).integers(-(2**31), 2**31, [BATCH, 2]).astype(np.int32)
    for controls in ([1, 0, 1], [1.5, 10, 1], [0.7, 0, 0.9]):
        inputs = {"source": batch, "controls": np.array(controls, np.float32), "seed": seeds}
        inputs = {name: tf.constant(value) for name, value in inputs.items()}
        expected = sample(**inputs)
        assert len({tuple(row) for row in expected["tokens"].numpy()}) > 80
        for name, way in ways.items():
            outputs = way(**inputs)
            np.testing.assert_array_equal(outputs["tokens"], expected["tokens"], err_msg=name)
            np.testing.assert_allclose(outputs["score"], expected["score"], atol=1e-4, err_msg=name)
