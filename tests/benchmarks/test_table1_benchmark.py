"""Checks of what `benchmarks/table1.py` counts. No timing tests."""

import json
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from marks import long, slow_except
from support import run_benchmark

from keras_transformer.layers import (
    GRU,
    LSTM,
    SSRU,
    DilatedConvolution,
    GatedConvolution,
    Mixer,
    SelfAttention,
)

pytestmark = pytest.mark.slow
LENGTH, WIDTH, WINDOW = 11, 12, 3
# Distance of the earliest input position that an output position depends on: in a causal layer, and
# in a layer in both directions, where it is the same on both sides. `None`: there is no such layer.
WHOLE = LENGTH
DISTANCES = {
    "self_attention": (WHOLE, WHOLE),
    "restricted": (WINDOW, WINDOW),
    "lstm": (WHOLE, WHOLE),
    "gru": (WHOLE, WHOLE),
    "ssru": (WHOLE, None),
    "gated_convolution": (2, 1),  # three positions
    "dilated_convolution": (2, 1),
}


def mixer_of(name):
    if name == "restricted":
        return SelfAttention(num_heads=3, window=WINDOW)
    return SelfAttention(num_heads=3) if name == "self_attention" else Mixer.make(name)


def counted(mixer, length, phase="forward"):
    from table1_counts import Counts
    from table1_layer import inputs, layer_of, phases

    keras.utils.set_random_seed(1)
    layer, x = layer_of(mixer), inputs(1, length, WIDTH)
    layer.build(x.shape)
    return Counts(phases(layer)[phase], x)


def test_every_kind_has_a_formula():
    from table1_formulas import FORMULAS

    kinds = {name for name, kind in Mixer.kinds().items() if is_own(kind)}
    assert kinds | {"restricted"} <= {*FORMULAS}


def is_own(kind):
    """Returns whether a kind is of the package, not of a test in the same process."""
    return kind.__module__.startswith("keras_transformer.")


def reached(mixer, position, causal):
    """Returns the input positions on which an output position of a random layer depends."""
    from table1_counts import gradient_sizes
    from table1_layer import inputs, layer_of

    keras.utils.set_random_seed(1)
    sizes = gradient_sizes(layer_of(mixer, causal), inputs(1, LENGTH, WIDTH), position)
    return np.flatnonzero(sizes).tolist()


@pytest.mark.parametrize("name", slow_except(DISTANCES, "restricted", "dilated_convolution"))
def test_a_causal_layer_reaches_as_far_as_it_should(name):
    for position in (0, 5, LENGTH - 1):
        first = max(0, position - DISTANCES[name][0])
        assert reached(mixer_of(name), position, True) == [*range(first, position + 1)]


@pytest.mark.parametrize(
    "name",
    slow_except(
        [name for name in DISTANCES if DISTANCES[name][1] is not None], "gated_convolution"
    ),
)
def test_a_layer_in_both_directions_reaches_to_both_sides(name):
    middle, distance = LENGTH // 2, DISTANCES[name][1]
    expected = [n for n in range(LENGTH) if abs(n - middle) <= distance]
    assert reached(mixer_of(name), middle, False) == expected


def test_a_dilated_convolution_reads_positions_apart():
    assert reached(DilatedConvolution(dilation=4), LENGTH - 1, True) == [2, 6, 10]
    assert reached(DilatedConvolution(dilation=4), 5, False) == [1, 5, 9]
    assert reached(GatedConvolution(width=4), LENGTH - 1, True) == [7, 8, 9, 10]


@pytest.mark.long
@pytest.mark.slow
def test_a_path_is_logarithmic_while_the_dilation_grows():
    from table1_reach import Counted

    def layers(mixer, lengths):
        return [row["layers"] for row in Counted(mixer, lengths, 4).metadata["counts"]]

    # L blocks of width 3 reach 2 (2^L - 1) positions back.
    assert layers(DilatedConvolution(max_dilation=64), [15, 16, 31, 32]) == [3, 4, 4, 5]
    assert layers(DilatedConvolution(max_dilation=1), [15]) == [7]


@pytest.mark.parametrize(
    ("name", "length", "layers", "path"),
    [
        long("self_attention", 11, 1, 1),
        ("restricted", 11, 4, 4),  # ceil(10 / 3)
        long("lstm", 11, 1, 11),
        ("ssru", 11, 1, 4),  # ceil(log2(11)) rounds of doubling
        ("gated_convolution", 11, 5, 5),  # ceil(10 / 2)
        long("dilated_convolution", 11, 3, 3),  # 2 + 4 + 8 positions
    ],
)
def test_layers_and_path_between_the_ends(name, length, layers, path):
    from table1_reach import Counted

    (row,) = Counted(mixer_of(name), [length], WIDTH).metadata["counts"]
    assert (row["layers"], row["path"]) == (layers, path)
    assert row["last"]["distance"] == min(length - 1, DISTANCES[name][0])
    assert not row["last"]["vanishes"]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("phase", ["forward", "training"])
def test_sequential_operations_grow_as_in_table_1(phase):
    lengths = 4, 8, 16
    for mixer in (mixer_of("self_attention"), GatedConvolution()):
        parallel = [counted(mixer, n, phase) for n in lengths]
        assert len({counts.operations for counts in parallel}) == 1
        assert {counts.trips for counts in parallel} == {0}
    for mixer in (LSTM(), GRU()):
        first, second, third = (counted(mixer, n, phase) for n in lengths)
        assert [counts.trips for counts in (first, second, third)] == [*lengths]
        grown = second.operations - first.operations
        assert grown > 5 * 4 and third.operations - second.operations == 2 * grown
    rounds = [counted(SSRU(), n, phase) for n in lengths]
    assert [counts.trips for counts in rounds] == [math.ceil(math.log2(n)) for n in lengths]
    steps = np.diff([counts.operations for counts in rounds])
    assert steps[0] == steps[1] > 0  # each doubling of the length is one more round


@pytest.mark.long
@pytest.mark.slow
def test_multiplications_are_those_of_the_equations():
    n, d, heads = 7, WIDTH, 3
    attention = 4 * n * d * d + 2 * heads * n * n * (d // heads)
    assert counted(mixer_of("self_attention"), n).multiplications == attention
    # The backward pass has two products for each one.
    assert counted(mixer_of("self_attention"), n, "training").multiplications == 3 * attention
    assert counted(SSRU(), n, "training").multiplications == 3 * 2 * n * d * d
    for mixer, gates in ((LSTM(), 4), (GRU(), 3)):
        assert counted(mixer, n).multiplications == 2 * n * d * gates * d
        assert counted(mixer, n, "training").multiplications == 3 * 2 * n * d * gates * d
    assert counted(GatedConvolution(width=5), n).multiplications == 5 * n * d * 2 * d
    inner = d // 2
    dilated = n * (d * inner + 3 * inner * inner + inner * d)
    assert counted(DilatedConvolution(), n).multiplications == dilated


def test_a_window_makes_the_cost_grow_with_the_length_alone():
    mixer = mixer_of("restricted")
    counts = [counted(mixer, n).multiplications for n in (512, 1024, 2048)]
    assert counts[1] == 2 * counts[0] and counts[2] == 2 * counts[1]


def test_a_chain_goes_through_the_trips_of_a_loop():
    from table1_counts import Counts

    def halving(x):
        def body(index, value, other, last):
            # `value` grows by a chain of two a trip, `other` by one, and `last` follows `value`.
            return index + 1, tf.tanh(value) * 0.5, other + 1.0, tf.exp(value)

        loop = tf.while_loop(lambda index, *_: index < 6, body, (0, x, x, x))
        return tf.reshape(loop[1], (1, -1)), loop[2], loop[3] @ loop[3]

    counts = Counts(halving, tf.zeros((3, 3)))
    # Five trips with a chain of two, the exponential of their result in the sixth, and the product;
    # or six trips with a chain of two.
    assert (counts.operations, counts.trips, counts.multiplications) == (12, 6, 27)


def test_a_convolution_multiplies_as_often_as_its_equation():
    from table1_counts import Counts

    kernel = tf.ones((3, 2, 5))
    x = tf.ones((1, 7, 2))

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch([x, kernel])
            y = tf.nn.conv1d(x, kernel, 1, "VALID")
        return tape.gradient(y, [x, kernel])

    once = 5 * 3 * 2 * 5
    assert Counts(lambda x: tf.nn.conv1d(x, kernel, 1, "VALID"), x).multiplications == once
    assert Counts(gradient, x).multiplications == 2 * once


def test_an_einsum_multiplies_once_for_each_set_of_indices():
    from table1_counts import Counts

    x, y = tf.ones((2, 3, 5)), tf.ones((2, 7, 5))
    assert Counts(lambda x: tf.einsum("BTK,BSK->BTS", x, y), x).multiplications == 2 * 3 * 7 * 5
    assert Counts(lambda x: tf.einsum("BTK,K->BT", x, y[0, 0]), x).multiplications == 2 * 3 * 5
    assert Counts(lambda x: tf.einsum("BTK->KTB", x), x).multiplications == 0


def test_what_is_not_counted_is_refused():
    from measurements import BenchmarkError
    from table1_counts import Counts

    def nested(x):
        def body(index, value):
            inner = tf.while_loop(lambda n, _: n < 2, lambda n, v: (n + 1, v + x), (0, value))
            return index + 1, inner[1]

        return tf.while_loop(lambda index, _: index < 3, body, (0, x))[1]

    with pytest.raises(BenchmarkError, match="a loop inside of a loop or of a call cannot be"):
        Counts(nested, tf.zeros(2))
    with pytest.raises(BenchmarkError, match="the multiplications of Conv3D are not counted"):
        Counts(
            lambda x: tf.nn.conv3d(x, tf.ones((1, 1, 1, 2, 2)), (1,) * 5, "SAME"),
            tf.ones((1, 2, 2, 2, 2)),
        )


def test_a_vanishing_gradient_is_not_the_end_of_a_layer():
    from table1_counts import vanishes

    assert vanishes(np.array([0, 0, 1e-37, 1e-20, 1.0]))
    assert not vanishes(np.array([0, 0, 1e-3, 0.2, 1.0]))


def report_of(times):
    """Returns a report with the milliseconds of mixers at 2, 4, 8 and 16 positions."""
    rows = [
        {"mixer": name, "mode": "graph", "positions": n, "memory": 1,
         "seconds": {phase: {"median": value / 1e3} for phase in ("forward", "training")}}
        for name, values in times.items()
        for n, value in zip((2, 4, 8, 16), values, strict=True)
    ]  # fmt: skip
    settings = {"lengths": [2, 4, 8, 16], "width": 8}
    return {"settings": settings, "counts": {name: [] for name in times}, "times": rows}


def test_crossovers_lie_where_the_lines_meet():
    from table1_report import crossover_lines, crossovers, draw

    report = report_of(
        {
            "self_attention": (4, 16, 64, 256),  # n^2
            "lstm": (11.3137, 22.6274, 45.2548, 90.5097),  # 2^2.5 n, so they meet at 2^2.5
            "gru": (100, 100, 100, 300),
            "ssru": (1, 2, 4, 8),
        }
    )
    assert crossovers(report, "graph", "training") == {"lstm": 6, "gru": None, "ssru": 2}
    assert crossover_lines(report) == [
        "`lstm`, `tf.function`, forward and backward: self-attention is slower from about 6 "
        "positions",
        "`gru`, `tf.function`, forward and backward: up to 16 positions self-attention is faster",
        "`ssru`, `tf.function`, forward and backward: from 2 positions self-attention is slower",
    ]
    (panel,) = draw(report).axes
    assert panel.get_xscale() == panel.get_yscale() == "log"
    assert len(panel.get_lines()) == 5  # the mixers, and n = d


@pytest.mark.long
@pytest.mark.slow
def test_the_table_is_made(tmp_path):
    output, picture = tmp_path / "table1.json", tmp_path / "table1.png"
    done = run_benchmark(
        "table1.py", "--mixers=self_attention,restricted,ssru", "--lengths=4,8", "--width=8",
        "--heads=2", "--window=2", "--modes=graph", "--repeats=1", "--seconds=0",
        "--json", output, "--picture", picture,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(output.read_text())
    rows = {name: rows[-1] for name, rows in report["counts"].items()}
    assert {name: row["path"] for name, row in rows.items()} == {
        "self_attention": 1, "restricted": 4, "ssru": 3,
    }  # fmt: skip
    assert rows["restricted"]["last"]["reach"] == 3 and rows["restricted"]["middle"]["reach"] == 5
    assert rows["ssru"]["middle"] is None
    # Projections and both products with the scores, relative to n^2 d of the first one.
    counted = (
        rows["self_attention"]["forward"]["multiplications"] / rows["self_attention"]["formula"]
    )
    assert counted == (4 * 8 * 8 * 8 + 2 * 8 * 8 * 8) / (8 * 8 * 8)
    assert len(report["times"]) == 2 * 3
    assert all(row["seconds"]["training"]["median"] > 0 for row in report["times"])
    assert "| `restricted` | O(n / r) | 2 | 4 |" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
@pytest.mark.slow
def test_a_gpu_must_be_there(tmp_path):
    if tf.config.list_physical_devices("GPU"):
        pytest.skip("there is a GPU")
    done = run_benchmark(
        "table1.py", "--device=gpu", "--mixers=ssru", "--lengths=4", "--width=8", "--modes=graph"
    )
    assert (
        done.returncode == 1 and "`--device gpu` needs a GPU that TensorFlow finds." in done.stderr
    )
