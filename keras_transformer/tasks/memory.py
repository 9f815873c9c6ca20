"""Memory that a beam search needs, and memory that is available."""

import math
import os
import pathlib

from keras_transformer.decoding.loop import STAGES, stages
from keras_transformer.lazy_tensorflow import tf

FLOAT = 4  # bytes
# Copies of a tensor that exist at the same time during a step, measured on a CPU.
CACHES, SCORES, LOGITS = 2, 3, 3
SMALL = 2**29  # bytes; smaller batches are not checked, because the check takes time
LARGEST_BATCH = 2**10  # sentences; larger batches are not limited
CGROUP = pathlib.Path("/sys/fs/cgroup")


def beam_memory(config, batch, size, length) -> float:
    """Returns the approximate number of bytes that a step of a `Beam` needs.

    Args:
        config: A `TransformerConfig` or a `LanguageModelConfig`.
        batch: Number B of sentences.
        size: Number N of hypotheses of each.
        length: Length L of the cache and of the sources.
    """
    has_source = config.encoder is not None
    layers = config.decoder_layers
    own, of_memory = config.decoder.block.attention, config.decoder.block.memory_attention
    rows = batch * size
    memory = layers * _stored(of_memory, config) * length * batch * has_source
    if config.decoder.has_state:
        shapes = config.decoder.mixer.state_shapes(config.d_model)
        state = sum(math.prod(shape) for shape in shapes)
        cache = memory + layers * CACHES * rows * state
        scores = SCORES * of_memory.num_heads * rows * length
    else:
        cache = memory + CACHES * _cached(config, rows, length)
        # A hypothesis attends to the cache of all hypotheses of its sentence: rows are not moved.
        scores = SCORES * own.num_heads * rows * size * length
    count = min(size + 3, config.output_size)
    logits = LOGITS * rows * (config.output_size + count)
    return FLOAT * (cache + scores + logits)


def cache_memory(config, rows, length) -> int:
    """Returns the number of bytes of the keys and values of all hypotheses, in float32.

    Args:
        config: The configuration of a model whose decoder has self-attention.
        rows: Number of hypotheses of all sentences.
        length: Number of positions.
    """
    return FLOAT * _cached(config, rows, length)


def _cached(config, rows, length):
    """Returns how many numbers the keys and values of all hypotheses are."""
    return config.decoder_layers * _stored(config.decoder.block.attention, config) * length * rows


def _stored(attention, config):
    """Returns how many numbers a cache of keys and values has for each position."""
    return attention.groups * sum(attention.head_sizes(config.d_model))


def affordable_rows(configs, length) -> int:
    """Returns how many sentences a batch may have so that its longest outputs fit into memory.

    They may need half of the memory that is available. A batch of one sentence is always possible.

    Args:
        configs: See `check_memory`.
        length: Maximum length of an output, in tokens.
    """
    each = sum(beam_memory(config, 1, 1, length) for config in configs)
    if each * LARGEST_BATCH < SMALL:
        return LARGEST_BATCH
    free = available_memory()
    return LARGEST_BATCH if free is None else max(1, int(free / 2 / each))


def check_memory(configs, batch, size, length) -> None:
    """Refuses a beam that does not fit into memory even if all outputs are short.

    Outputs are assumed to be about as long as the longest source; the cache is then as long as its
    next stage.

    Args:
        configs: The `TransformerConfig`s or `LanguageModelConfig`s of the models that are searched.
        batch: Number B of sentences.
        size: Number N of hypotheses of each.
        length: Length of the longest source in tokens.

    Raises:
        ValueError: If it does not fit; the error names the memory it needs.
    """
    needed = sum(
        beam_memory(config, batch, size, first_stage(config, length)) for config in configs
    )
    free = available_memory()
    if free is not None and needed > free:
        raise ValueError(
            f"A beam of {size} for {batch} {'sentence' if batch == 1 else 'sentences'} at a "
            f"time needs about {gigabytes(needed)} of memory, but only {gigabytes(free)} is "
            "available: lower the `size` of the beam or `batch_size`. "
            f"Received: size={size}, batch_size={batch}."
        )


def first_stage(config, length) -> int:
    """Returns the length of the cache when an output of the given length ends."""
    longest = config.max_length
    return next((end for end in stages(longest, STAGES) if end >= length), longest)


def gigabytes(size) -> str:
    """Returns a number of bytes as text, in GB."""
    return f"{size / 1e9:.2g} GB" if size < 1e10 else f"{size / 1e9:,.0f} GB"


def available_memory() -> int | None:
    """Returns the number of bytes that this process can still allocate; `None` if unknown.

    It is also `None` if there is a GPU: the searches then use its memory, which is not measured.
    """
    if tf.config.list_physical_devices("GPU"):
        return None
    known = [size for size in (_of_system(), _of_group()) if size is not None]
    return min(known, default=None)


def _of_system():
    try:
        lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
        values = dict(line.split(":") for line in lines)
        return 1024 * int(values["MemAvailable"].split()[0])
    except (OSError, ValueError, KeyError):  # not Linux
        return _of_machine()


def _of_machine():
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return None


def _of_group():
    """Returns the number of bytes that the container can still allocate; `None` if unlimited."""
    try:
        limit, used = (int((CGROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        cached = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        return max(limit - used + int(cached.get("inactive_file", 0)), 0)
    except (OSError, ValueError):  # there is no limit ("max"), or no group
        return None
