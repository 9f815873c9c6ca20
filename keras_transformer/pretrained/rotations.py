"""Settings of rotary positions in Hugging Face's format."""

import math

from keras_transformer.positions import LinearScaling, Llama3Scaling, Rotary, YarnScaling
from keras_transformer.pretrained.settings import CheckpointSettings

ORIGINAL = "original_max_position_embeddings"
LONGEST = 2**22  # positions
KINDS = ("default", "linear", "dynamic", "llama3", "yarn")


def rotations(settings, size) -> Rotary:
    """Returns the rotary positions of a checkpoint.

    They are those of `rope_scaling` or `rope_parameters`. The type `dynamic` changes nothing within
    `max_position_embeddings`, which is the maximum length here.

    Args:
        settings: The `CheckpointSettings` of the model.
        size: Width of a head, even.

    Raises:
        ValueError: If a setting is not valid; the error names it.
    """
    name = "rope_scaling" if settings.get("rope_scaling") else "rope_parameters"
    value = settings.get(name) or {}
    if not isinstance(value, dict):
        raise settings.wrong(name, "a table")
    rope = CheckpointSettings(value, f"{settings.path}: `{name}`")
    rope.check({"partial_rotary_factor": (None, 1.0)})
    base = positive(rope if "rope_theta" in value else settings, "rope_theta", 10_000.0)
    key = "rope_type" if "rope_type" in value else "type"
    kind = rope.choice(key, {kind: kind for kind in KINDS}, "default")
    scaling = None
    if kind == "linear":
        scaling = LinearScaling(positive(rope, "factor", None))
    if kind == "llama3":
        scaling = _llama3(settings, rope)
    if kind == "yarn":
        scaling = _yarn(settings, rope, base, size)
    return Rotary(base, scaling)


def positive(settings, name, default) -> float:
    """Returns a number above 0; if there is no default, the setting must be there."""
    value = settings.number(name, default)
    if value <= 0:
        raise settings.wrong(name, "a number above 0")
    return value


def _llama3(settings, rope):
    """Returns the scaling of Llama 3.1: the ramp is one of frequencies."""
    length = _original(settings, rope)
    low, high = (positive(rope, f"{x}_freq_factor", None) for x in ("low", "high"))
    if low >= high:
        raise rope.wrong("low_freq_factor", "below `high_freq_factor`")
    return Llama3Scaling(positive(rope, "factor", None), length / high, length / low)


def _yarn(settings, rope, base, size):
    """Returns the scaling of YaRN: the ramp is one of the pairs of features.

    The wavelength of pair i is `2 pi base^(i / pairs)`, so the ramp is one of logarithms.
    """
    if base <= 1:
        raise settings.wrong("rope_theta", "a number above 1 for positions of the type yarn")
    length, pairs = _original(settings, rope), size // 2
    if rope.get("factor") is None:
        factor = settings.count("max_position_embeddings") / length
    else:
        factor = positive(rope, "factor", None)

    def pair(name, turns):
        """The pair that turns so many times in a text of the original length."""
        turns = positive(rope, name, turns) if rope.get(name) else turns
        if not 1 / LONGEST < turns < LONGEST:
            raise rope.wrong(name, f"between 1 / {LONGEST} and {LONGEST}")
        return pairs * math.log(length / (2 * math.pi * turns)) / math.log(base)

    first, last = pair("beta_fast", 32.0), pair("beta_slow", 1.0)
    if rope.flag("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, size - 1)
    last += 0.001 * (first == last)  # as in `transformers`
    if first > last:
        raise rope.wrong("beta_slow", f"a number below `beta_fast` that fits {length} positions")
    short, long = (2 * math.pi * base ** (number / pairs) for number in (first, last))
    return YarnScaling(factor, short, long, _scale(rope, factor))


def _scale(rope, factor):
    """Returns the factor of rotated heads."""
    if rope.get("attention_factor") is not None:
        return positive(rope, "attention_factor", None)

    def scale(name):
        weight = positive(rope, name, None) if name else 1.0
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1

    if rope.get("mscale") and rope.get("mscale_all_dim"):
        return scale("mscale") / scale("mscale_all_dim")
    return scale(None)


def _original(settings, rope):
    """Returns the maximum length of the texts that the model was first trained on."""
    length = settings.get(ORIGINAL) or rope.get(ORIGINAL) or settings.get("max_position_embeddings")
    checked = CheckpointSettings({ORIGINAL: length}, rope.path)
    if checked.count(ORIGINAL) > LONGEST:
        raise checked.wrong(ORIGINAL, f"at most {LONGEST}")
    return length
