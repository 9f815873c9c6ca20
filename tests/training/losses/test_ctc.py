"""CTC sums over all alignments; a `CTC` joins it to the cross-entropy of an encoder-decoder."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.models import SpeechTransformer, SpeechTransformerConfig
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.losses.ctc import CTC, ctc_loss
from keras_transformer.training.losses.r_drop import RDrop

PAD, END = 0, 3
JOINED = CTC(0.3, PAD, END)
CUT = slice(0, 1), slice(1, 3)


def all_alignments(logits, labels):
    """The definition, in float64: every path is tried. Returns the loss and its gradient."""
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)  # [S, V]
    total, occupied = 0.0, np.zeros_like(p)
    for path in itertools.product(range(p.shape[1]), repeat=len(p)):
        if [label for label, _ in itertools.groupby(path) if label != PAD] == labels:
            probability = np.prod([p[place, label] for place, label in enumerate(path)])
            total += probability
            for place, label in enumerate(path):
                occupied[place, label] += probability
    return (-np.log(total), p - occupied / total) if total else (0.0, np.zeros_like(p))


def padded(rows):
    width = max(map(len, rows))
    return np.array([[*row, *[PAD] * (width - len(row))] for row in rows], "int32")


@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_loss_and_gradient_are_those_of_all_alignments(jit_compile):
    """Rows of equal labels in a row, no label, too many labels, no position, and holes."""
    rows = [[1, 2, 2], [3], [], [1, 1, 1, 1], [2, 1, 3], [1], [2, 3, 2]]
    padding_mask = np.arange(6) < np.array([6, 4, 5, 6, 5, 0, 6])[:, None]
    padding_mask[6, [0, 3]] = False
    logits = np.random.default_rng(0).normal(0, 2, [len(rows), 6, 4])
    factors = np.arange(1.0, 1 + len(rows))

    @tf.function(jit_compile=jit_compile)
    def measure(logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            counts = tf.constant([len(row) for row in rows])
            losses = ctc_loss(logits, tf.constant(padding_mask), tf.constant(padded(rows)), counts)
            total = tf.reduce_sum(losses * tf.constant(factors, "float32"))
        return losses, tape.gradient(total, logits)

    losses, gradients = measure(tf.constant(logits, "float32"))
    for row, labels in enumerate(rows):
        loss, gradient = all_alignments(logits[row, padding_mask[row]], labels)
        np.testing.assert_allclose(losses[row], loss, rtol=1e-6)
        ours = gradients[row].numpy()
        # Probabilities have an error of 1e-6 at the most after six sums of logarithms.
        np.testing.assert_allclose(ours[padding_mask[row]], factors[row] * gradient, atol=1e-5)
        assert not ours[~padding_mask[row]].any()


@pytest.mark.slow
def test_long_rows_equal_those_of_tensorflow():
    """Its CPU kernel shares no code; all paths of 200 positions are far below float32's range."""
    random, size, length, count = np.random.default_rng(1), 30, 200, 40
    logits = tf.constant(random.normal(0, 3, [3, length, size]), "float32")
    labels = random.integers(1, size, [3, count]).astype("int32")
    lengths = np.array([200, 150, 120], "int32")
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(logits)
        theirs = tf.nn.ctc_loss(
            tf.sparse.from_dense(labels),
            logits,
            None,
            lengths,
            logits_time_major=False,
            blank_index=0,
        )
        padding_mask = tf.sequence_mask(lengths, length)
        ours = tf.function(ctc_loss)(logits, padding_mask, labels, tf.fill([3], count))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    gradients = [tape.gradient(loss, logits).numpy() for loss in (ours, theirs)]
    # Both sum logarithms of up to 700 in float32, whose last bit is 6e-5.
    np.testing.assert_allclose(*gradients, atol=1e-3)


def test_prompts_padding_and_ends_have_no_place_in_time():
    random = np.random.default_rng(2)
    logits = tf.constant(random.normal(size=[3, 9, 7]), "float32")
    padding_mask = tf.sequence_mask([9, 7, 9], 9)
    labels = tf.constant([[PAD, PAD, 5, 6, END], [4, END, PAD, PAD, PAD], [PAD] * 5])
    plain = ctc_loss(logits, padding_mask, tf.constant([[5, 6], [4, PAD], [1, 1]]), [2, 1, 2])
    weights = tf.constant([0.5, 2.0, 0.0])  # the third row is padding
    joined = JOINED.joined(tf.constant(10.0), logits, padding_mask, labels, weights)
    np.testing.assert_allclose(joined, 7 + 0.3 * (0.5 * plain[0] + 2 * plain[1]), rtol=1e-6)


def speech_model(**options):
    keras.utils.set_random_seed(5)
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 12, "num_heads": 2, "num_mel_filters": 6}
    options = {"vocab_size": 11, "dropout": 0.0, "max_seconds": 0.5, **sizes, **options}
    return SpeechTransformer(SpeechTransformerConfig(**options))


def recordings(rows=((4, 5, 5), (7,), (6, 8)), frames=(24, 16, 20)):
    """A batch of recordings with a prompt of one token, and frames after their ends."""
    labels = padded([[PAD, *row, END] for row in rows])
    target = np.where(labels == END, PAD, labels)
    target = np.concatenate([np.full([len(rows), 1], 2), target[:, :-1]], axis=1).astype("int32")
    source = np.random.default_rng(3).normal(size=[len(rows), max(frames), 6]).astype("float32")
    source[np.arange(max(frames)) >= np.array(frames)[:, None]] = 0
    return {"source": source, "target": target}, labels


def updated(model, batches, ctc=JOINED, jit_compile=False, **options):
    """Returns the loss of an update, and the change of each weight."""
    learner = Learner(model, ctc=ctc, **options)
    learner.compile(
        keras.optimizers.SGD(1.0), LabelSmoothedCrossEntropy(0.1), jit_compile=jit_compile
    )
    before = [weight.numpy() for weight in model.trainable_weights]
    batches = [tf.nest.map_structure(tf.constant, one) for one in batches]
    (data,) = batches if len(batches) == 1 else (tuple(batches),)
    loss = tf.function(learner.train_step, jit_compile=jit_compile)(data)["loss"]
    after = [weight.numpy() for weight in model.trainable_weights]
    return float(loss), [one - two for one, two in zip(before, after, strict=True)]


def assert_same(ours, theirs):
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5)
    largest = max(np.abs(change).max() for change in theirs[1])
    for one, two in zip(ours[1], theirs[1], strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5 * largest)


@pytest.fixture(scope="module")
def expected():
    """Loss and gradients of the models with tied and untied weights, by TensorFlow's own losses."""
    return {tie: by_tensorflow(speech_model(tie=tie)) for tie in ("all", "none")}


def by_tensorflow(model):
    inputs, labels = recordings()
    with tf.GradientTape() as tape:
        logits = model(inputs)  # [B, T, V]
        real = tf.cast(labels != PAD, tf.float32)
        smooth = 0.9 * tf.one_hot(labels, 11) + 0.1 / 11
        crosses = tf.nn.softmax_cross_entropy_with_logits(smooth, logits)
        memory, padding_mask = model.encode(inputs["source"])
        lengths = tf.reduce_sum(tf.cast(padding_mask[:, 0], tf.int32), axis=1)
        rows = [[label for label in row if label not in (PAD, END)] for row in labels]
        by_frame = tf.einsum("bsd,vd->bsv", memory, tf.convert_to_tensor(model.output_matrix))
        alignments = tf.nn.ctc_loss(
            tf.sparse.from_dense(padded(rows)),
            by_frame,
            None,
            lengths,
            logits_time_major=False,
            blank_index=0,
        )
        loss = 0.7 * tf.reduce_sum(crosses * real) + 0.3 * tf.reduce_sum(alignments)
        loss /= tf.reduce_sum(real)
    gradients = tape.gradient(loss, model.trainable_weights)
    return float(loss), [tf.convert_to_tensor(gradient).numpy() for gradient in gradients]


@pytest.mark.slow
def test_an_update_adds_ctc_to_the_cross_entropy(expected, tie="none"):
    """The sums of both losses are divided by the number of labels."""
    assert_same(updated(speech_model(tie=tie), [recordings()]), expected[tie])


@pytest.mark.long
@pytest.mark.slow
def test_rows_of_padding_several_batches_and_two_passes_change_nothing(expected):
    inputs, labels = recordings()
    more = {
        "source": np.pad(inputs["source"], [[0, 2], [0, 6], [0, 0]]),
        "target": np.pad(inputs["target"], [[0, 2], [0, 1]]),
    }
    padding = more, np.pad(labels, [[0, 2], [0, 1]])
    assert_same(updated(speech_model(), [padding]), expected["all"])
    # With silence up to the maximum all positions are allowed, also in rows of padding.
    model = speech_model(pad_to_max_seconds=True)
    full = recordings(frames=(24, 24, 24))
    rows = tf.nest.map_structure(lambda x: np.pad(x, [[0, 1]] + [[0, 0]] * (x.ndim - 1)), full)
    assert_same(updated(model, [rows]), updated(speech_model(pad_to_max_seconds=True), [full]))
    first, last = ({name: values[rows] for name, values in inputs.items()} for rows in CUT)
    parts = [(first, labels[CUT[0]]), (last, labels[CUT[1]])]
    assert_same(updated(speech_model(), parts, accumulate=2), expected["all"])
    twice = updated(speech_model(), [(inputs, labels)], consistency=RDrop(5.0))
    assert_same(twice, expected["all"])


@pytest.mark.long
@pytest.mark.slow
def test_a_compiled_update_is_the_same(expected):
    assert_same(updated(speech_model(), [recordings()], jit_compile=True), expected["all"])


@pytest.mark.slow
def test_a_text_longer_than_its_recording_counts_in_the_cross_entropy_only():
    short = recordings(rows=[(4, 5, 5, 6)], frames=(8,))  # four positions, of which five are needed
    with_it = updated(speech_model(), [short])
    loss, changes = updated(speech_model(), [short], ctc=None)
    assert_same(with_it, (0.7 * loss, [0.7 * change for change in changes]))


def test_other_losses_and_models_are_refused():
    message = (
        r"`ctc` must be None except with a LabelSmoothed.* metrics. Received: ctc=CTC\(weight=0.3"
    )
    learner = Learner(speech_model(), ctc=CTC(0.3))
    with pytest.raises(ValueError, match=message):
        learner.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    with pytest.raises(ValueError, match=message):
        learner.compile("sgd", LabelSmoothedCrossEntropy(), ["sparse_categorical_accuracy"])


def synthetic(count, random, sounds):
    """Recordings in which each label sounds for two to four positions, with noise."""
    rows = [random.integers(4, 11, random.integers(10, 16)) for _ in range(count)]
    spans = [np.repeat(row, random.integers(4, 9, len(row))) for row in rows]
    inputs, labels = recordings(rows, tuple(map(len, spans)))
    for row, span in enumerate(spans):
        inputs["source"][row, : len(span)] = sounds[span] + random.normal(0, 0.3, [len(span), 6])
    return inputs, labels


@pytest.mark.long
@pytest.mark.slow
def test_the_encoder_learns_where_labels_are():
    """In other recordings, the labels are more probable in its states than without CTC."""
    random = np.random.default_rng(4)
    sounds, losses = random.normal(size=[11, 6]), []
    rows, (inputs, labels) = (synthetic(count, random, sounds) for count in (320, 32))
    data = tf.data.Dataset.from_tensor_slices(rows).batch(32).repeat(6)
    for ctc in (None, JOINED):
        model = speech_model(d_model=32, d_ff=64, max_seconds=2.0, norm="pre")
        learner = Learner(model, ctc=ctc)
        learner.compile(keras.optimizers.Adam(0.003), LabelSmoothedCrossEntropy(0.0))
        learner.fit(data, verbose=0, shuffle=False)
        memory, padding_mask = model.encode(inputs["source"])
        logits, weights = model.output_weights.project(memory), tf.fill([len(labels)], 1 / 32)
        joined = CTC(0.5, PAD, END).joined(0.0, logits, padding_mask[:, 0], labels, weights)
        losses.append(float(joined))
    assert losses[1] < 0.5 * losses[0], losses
