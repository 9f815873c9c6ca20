"""Training of late interaction: batches, the loss, its gradients, and whole runs."""

import numpy as np
import pipelines
import pytest
import tensorflow as tf
from small_runs import run_quietly
from test_embedding_training import CONFIG, write

from keras_transformer.pipelines import LateInteractionRanker
from keras_transformer.tasks import TASKS, open_run
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.tasks import training_class
from keras_transformer.training.tasks.late_interaction import LateInteractionLoss

PAIRS = [("a cat runs", "the big dog"), ("the big", "dog"), ("dog", "the big"), ("a", "dog")]


def training():
    ranker = pipelines.ranker()
    return training_class(TASKS["late_interaction"])(ranker.tokenizers, ranker.model.config)


def test_a_batch_has_the_rows_of_the_pipeline_and_the_tokens_that_count():
    rows = tf.data.Dataset.from_tensor_slices(tuple(map(list, zip(*PAIRS, strict=True))))
    corpus = Corpus.from_rows(rows, training(), 11)
    codec, seen = pipelines.ranker().codec, []
    for tokens, labels in corpus.batches(200):
        count = len(labels) // 2
        np.testing.assert_array_equal(training().weigh(tokens, labels), [1.0] * count)
        for row, label in zip(tokens.numpy(), labels.numpy(), strict=True):
            seen.append((tuple(row[row != 0]), tuple(label[1:][row != 0])))
            assert not label[1:][row == 0].any()
    expected = []
    for part, texts in zip(codec.parts, zip(*PAIRS, strict=True), strict=True):
        for text in texts:
            ids, counted, _ = codec.encode_part(part, tf.constant([text]))
            expected.append((tuple(ids[0].numpy()), tuple(counted[0].numpy().astype(int))))
    assert sorted(seen) == sorted(expected)


def reference_loss(vectors, masks, texts, scale):
    """The loss of each pair in float64, with lists of the vectors that count."""
    count = len(vectors) // 2
    queries, passages = (
        [v[m] for v, m in zip(vectors[part], masks[part], strict=True)]
        for part in (slice(count), slice(count, None))
    )
    losses = []
    for i in range(count):
        others = [j for j in range(count) if j == i or not (texts[:, i] == texts[:, j]).any()]
        scores = {
            j: scale * sum(max(q @ p for p in passages[j]) for q in queries[i]) for j in others
        }
        losses.append(np.log(sum(np.exp(score) for score in scores.values())) - scores[i])
    return losses


def test_the_loss_equals_the_reference_and_only_tokens_that_count_have_gradients():
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(8, 5, 3))
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    masks = rng.random((8, 5)) < 0.6
    masks[:, 0] = True
    texts = np.array([[1, 2, 3, 4], [5, 6, 6, 7]])  # the second and the third passage are equal
    labels = np.concatenate([texts.reshape(8, 1), masks], axis=1).astype("int32")
    with tf.GradientTape() as tape:
        tape.watch(watched := tf.constant(vectors, tf.float32))
        losses = LateInteractionLoss(3.0).call(tf.constant(labels), watched)
    np.testing.assert_allclose(losses, reference_loss(vectors, masks, texts, 3.0), rtol=1e-5)
    gradients = tape.gradient(losses, watched).numpy()
    assert not gradients[~masks].any()
    assert gradients[:4][masks[:4]].any(axis=-1).all()


def test_the_gradient_reaches_the_linear_map_and_the_encoder():
    model, loss = pipelines.ranker().model, LateInteractionLoss()
    tokens, labels = training().assemble(
        *(pipelines.ranker().tokenizers.source.encode(tf.constant(texts)).to_tensor(0)
          for texts in zip(*PAIRS, strict=True))
    )  # fmt: skip
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(loss.call(labels, model(tokens, training=False)))
    variables = {v.path: v.value for v in model.trainable_variables}
    gradients = dict(zip(variables, tape.gradient(value, [*variables.values()]), strict=True))
    for name in ("token_projection/kernel", "block_0/self_attention/query/kernel"):
        (gradient,) = (g for path, g in gradients.items() if path.endswith(name))
        assert np.abs(gradient).max() > 1e-6


OWN = CONFIG.replace('"embedding"', '"late_interaction"').replace(
    "max_length = 20", "max_length = 20\ndimensions = 6"
)


def test_gradient_accumulation_is_refused(tmp_path):
    (tmp_path / "config.toml").write_text(OWN)
    with pytest.raises(SettingsError, match="must be 1 for late_interaction: every query is comp"):
        load_settings(tmp_path / "config.toml", ["training.accumulate=2"])


@pytest.mark.slow
def test_training_brings_pairs_together_and_continues_from_a_run(tmp_path):
    write(tmp_path)
    (tmp_path / "config.toml").write_text(OWN)
    overrides = ["training.updates=60", "training.validate_every=60", "model.dropout=0.0"]
    settings = load_settings(tmp_path / "config.toml", overrides)
    figures, _ = run_quietly(settings, tmp_path / "run")
    assert set(figures["validation"]) == {"loss", "recall_at_1"}
    assert figures["validation"]["loss"] < 0.5 * np.log(9)  # of nine pairs in one batch
    ranker = open_run(tmp_path / "run")
    assert isinstance(ranker, LateInteractionRanker)
    more = OWN.replace("num_layers = 1", f'start_from = "{tmp_path / "run"}"')
    for name in ("d_model = 8", "d_ff = 12", "num_heads = 2", "max_length = 20", "dimensions = 6"):
        more = more.replace(f"\n{name}", "", 1)
    more = more.replace("[vocabulary]\nsize = 15\n", "")
    (tmp_path / "more.toml").write_text(more)
    settings = load_settings(tmp_path / "more.toml", ["training.updates=2"])
    assert settings.model.dimensions == 6
    run_quietly(settings, tmp_path / "more")
    vectors = open_run(tmp_path / "more").embed_queries(["12"])[0]
    assert vectors.shape == ranker.embed_queries(["12"])[0].shape
