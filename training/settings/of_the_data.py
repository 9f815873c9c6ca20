"""Fields of the models' configurations that are not settings: vocabularies and data decide them."""

OF_THE_VOCABULARY = (
    "vocab_size", "target_vocab_size", "pad_id", "bos_id", "eos_id", "banned_ids", "silent_ids",
    "forced_eos_id",
)  # fmt: skip
# Whether weights also fit that were trained with another value.
OF_THE_DATA = {
    "labels": False,
    "image_height": False,
    "image_width": False,
    "channels": False,
    "resize": True,
    "scored": True,
    "inputs": False,
    "target": False,
    "snow": False,
    "input_mean": True,
    "input_scale": True,
    "target_mean": True,
    "target_scale": True,
    "table": True,
}
