"""Rules for settings of fine-tuning, which depend on the other sections."""

from keras_transformer.config.parts import PARTS


def check_tuning(settings, config):
    """Raises a `ValueError` if a setting of fine-tuning has no effect, or an unwanted one.

    Args:
        settings: The `Settings`.
        config: The configuration of the model.
    """
    freeze = settings.training.freeze
    if freeze is None:
        return
    parts = [name for name in PARTS if getattr(config, name, None) is not None]
    received = f"Received: training.freeze={freeze}"
    if settings.model.start_from is None:
        raise ValueError(
            "`training.freeze` needs `model.start_from`: parts that are not trained would keep "
            f"their random weights. {received}."
        )
    if missing := [name for name in freeze if name not in parts]:
        raise ValueError(
            f"`training.freeze` must be among {', '.join(parts)}, the parts of a model for "
            f"{settings.task.kind}. {received}; remove {', '.join(missing)}."
        )
    copied = settings.model.parts
    if copied and (new := [name for name in freeze if name not in copied]):
        raise ValueError(
            "`training.freeze` must be among `model.parts`: other parts begin with random weights. "
            f"{received}, model.parts={copied}; remove {', '.join(new)}."
        )
    if {*freeze} == {*parts}:
        raise ValueError(
            f"`training.freeze` must leave a part to train, one of {', '.join(parts)}. {received}."
        )
