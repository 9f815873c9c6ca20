"""Fixtures of all tests: one thread, no GPU, a fixed seed, small models and the real data."""

import functools
import gc
import itertools
import os
import pathlib
import random
import sys
import typing

# Set before TensorFlow is imported. Tests check numbers, not speed, and may share the machine.
for _name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent


def pytest_configure(config):
    """Prepares a process that runs tests; the controller of pytest-xdist need not wait for it."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return
    import grappler  # noqa: F401 - before anything is computed

    _share_one_stack()

    if sys.version_info < (3, 12):  # later versions look these up once for each class as well
        typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)
    gc.disable()  # until all tests are collected


def pytest_collection_finish():
    """Lets garbage be collected rarely, and only what tests make.

    Graphs consist of many objects; searching all of them again and again takes a fifth of the time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def _share_one_stack():
    """Gives every operation of a graph the same stack of Python calls.

    TensorFlow records where each was created, for the messages of errors, which takes one twentieth
    of the time.
    """
    from tensorflow.python.util import tf_stack

    stack = tf_stack.extract_stack()
    tf_stack.extract_stack = lambda stacklevel=1: stack


# Folders whose files share exports that take long to make: one process runs each folder.
SHARED = ("tests/export/saved_model", "tests/export/litert")
SIX_UPDATES = "tests/training/test_averaging.py"
# Files outside of these folders that join the group of a folder or of another file.
MEMBERS = {
    "tests/export/test_loaded.py": SHARED[0],
    "tests/training/settings/test_changes.py": SIX_UPDATES,
    "tests/training/loop/test_start.py": SIX_UPDATES,
}


def scope_of(nodeid):
    """Returns the group of tests that one process runs: a folder that shares exports, or a file."""
    path = nodeid.partition("::")[0]
    path = MEMBERS.get(path, path)
    return next((folder for folder in SHARED if f"{path}/".startswith(f"{folder}/")), path)


# Other files that take minutes.
LONG = (
    "tests/system/test_wheel.py",
    "tests/system/test_examples.py",
    "tests/benchmarks/",
    "tests/training/devices/",
)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items):
    """Moves slow files to the front: the last to be distributed are short."""
    for item in items:
        if item.get_closest_marker("slow"):  # these show warnings, the fast ones fail with them
            item.add_marker(pytest.mark.filterwarnings("default"))
    items.sort(key=_later)


def _later(item):
    """Returns the key by which tests are sorted: those of files that take long have the lowest."""
    scope = scope_of(item.nodeid) + "/"
    return not scope.startswith(SHARED + LONG), not scope.startswith("tests/training/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Distributes these groups instead of files if `--dist loadfile` is given."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return scope_of(nodeid)

    return Groups(config, log) if config.getvalue("dist") == "loadfile" else None


HALF = {"bfloat16", "mixed_bfloat16", "float16", "mixed_float16"}


def pytest_runtest_setup(item):
    """Skips tests of half precision if oneDNN is restricted to an older processor.

    TensorFlow checks the real processor for products in bfloat16 and float16, but oneDNN then lacks
    a kernel, and TensorFlow aborts. A real processor without them computes them in another way, and
    these tests run there.
    """
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    computes = item.get_closest_marker("half_precision") or HALF & {
        value for value in values if isinstance(value, str)
    }
    if computes and os.environ.get("ONEDNN_MAX_CPU_ISA"):
        pytest.skip("ONEDNN_MAX_CPU_ISA: TensorFlow aborts at a product in half precision")


class DataDir:
    """The folder of real data: `data_dir / "multi30k"` is a path, or skips the test."""

    def __init__(self, root):
        self.root = pathlib.Path(root)

    def __truediv__(self, name):
        path = self.root / name
        if not path.exists():
            pytest.skip(f"{path} is missing (KERAS_TRANSFORMER_DATA names the folder of real data)")
        return path


@pytest.fixture(scope="session")
def data_dir():
    return DataDir(os.environ.get("KERAS_TRANSFORMER_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture
def full_disk():
    """A context in which no file can grow beyond `size` bytes, as on a full disk."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    class Full:
        def __init__(self, size):
            self.size = size

        def __enter__(self):
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, limits[1]))

        def __exit__(self, *error):
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    yield Full
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture(scope="module", autouse=True)
def seeded():
    """Starts every file from the same seed, including TensorFlow's.

    Setting TensorFlow's seed clears its caches, so doing it for every test would take a tenth of
    the time.
    """
    import keras

    keras.utils.set_random_seed(7)


@pytest.fixture(autouse=True)
def fresh_keras():
    """Gives every test the same initial weights and restores the dtype policy afterwards."""
    import keras

    policy = keras.config.dtype_policy()
    random.seed(7)  # Keras's initializers and dropout layers draw their seeds from `random`
    yield
    keras.config.set_dtype_policy(policy)


FILES = itertools.count(1)


@pytest.fixture(scope="module", autouse=True)
def few_graphs_left():
    """Collects the garbage of every six files: their graphs take gigabytes.

    What is left, modules and fixtures of the session, is not searched again.
    """
    yield
    if next(FILES) % 6 == 0:
        gc.collect()
        gc.freeze()


@pytest.fixture(params=["float32", "mixed_bfloat16", "mixed_float16"])
def policy(request):
    """Runs a test under each dtype policy, set globally."""
    import keras

    keras.config.set_dtype_policy(request.param)
    return keras.config.dtype_policy()


@pytest.fixture
def small_model():
    """A function that builds a small `Transformer` with random, distinct weights."""
    from support import randomise, small_config

    from keras_transformer import Transformer

    def build(seed=0, **changes):
        return randomise(Transformer(small_config(**changes)), seed)

    return build
