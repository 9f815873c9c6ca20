"""The memory that a beam takes, and the memory there is: to refuse what cannot fit."""

import os
import pathlib

import tensorflow as tf

from keras_transformer.decoding.loop import STAGES, stages

FLOAT = 4  # bytes
# Copies of a tensor that are alive at once while a step computes with it, measured on a CPU.
CACHES, SCORES, LOGITS = 2, 3, 3
CGROUP = pathlib.Path("/sys/fs/cgroup")


def beam_memory(config, batch, beam_size, length):
    """Returns about how many bytes a step of `beam_decode` takes.

    Args:
        config: A `TransformerConfig` or a `LanguageModelConfig`.
        batch: Sentences B.
        beam_size: Hypotheses N of each.
        length: Positions of the cache L, and of the sources.
    """
    has_source = config.encoder is not None
    layers = config.decoder_layers
    head = config.d_model // config.num_heads
    widths = (config.d_k or head) + (config.d_v or head)
    rows = batch * beam_size
    memory = layers * config.num_heads * widths * length * batch * has_source
    if config.decoder.is_recurrent:
        cache = memory + layers * CACHES * rows * config.d_model
        scores = SCORES * config.num_heads * rows * length  # of the memory
    else:
        cache = memory + layers * config.num_heads * widths * length * CACHES * rows
        # Every hypothesis attends to the positions of all of its sentence: none is ever moved.
        scores = SCORES * config.num_heads * rows * beam_size * length
    count = min(beam_size + 3, config.output_size)
    logits = LOGITS * rows * (config.output_size + count)
    return FLOAT * (cache + scores + logits)


def check_memory(configs, batch, beam_size, length):
    """Refuses a beam that cannot fit even if its outputs are as short as a stage of the cache.

    Args:
        configs: The `TransformerConfig`s or `LanguageModelConfig`s of the models that it is over.
        batch: Sentences B.
        beam_size: Hypotheses N of each.
        length: Tokens of the longest source: outputs are about as long.

    Raises:
        ValueError: If it cannot fit; the message says how much it needs.
    """
    needed = sum(
        beam_memory(config, batch, beam_size, first_stage(config, length)) for config in configs
    )
    free = available_memory()
    if free is not None and needed > free:
        raise ValueError(
            f"A beam of {beam_size} for {batch} {'sentence' if batch == 1 else 'sentences'} at a "
            f"time needs about {gigabytes(needed)} of memory, and {gigabytes(free)} are available: "
            "lower the `size` of the beam or `batch_size`. "
            f"Received: size={beam_size}, batch_size={batch}."
        )


def first_stage(config, length):
    """Returns how many positions the cache has when an output of a length ends."""
    longest = config.max_length
    return next((end for end in stages(longest, STAGES) if end >= length), longest)


def gigabytes(size):
    """Returns a number of bytes for people."""
    return f"{size / 1e9:.2g} GB" if size < 1e10 else f"{size / 1e9:,.0f} GB"


def available_memory():
    """Returns how many bytes this process can still have; `None` if nothing is known of it.

    Nothing is known of a GPU's memory, in which the searches are then.
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
    """What the container may still take."""
    try:
        limit, used = (int((CGROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        cached = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        return max(limit - used + int(cached.get("inactive_file", 0)), 0)
    except (OSError, ValueError):  # there is no limit ("max"), or no group
        return None
