"""Devices that TensorFlow can use."""


def has_only_cpus() -> bool:
    """Returns whether TensorFlow has neither GPUs nor TPUs."""
    import tensorflow as tf  # not needed on other backends

    return all(device.device_type == "CPU" for device in tf.config.list_logical_devices())
