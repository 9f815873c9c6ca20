"""Rules for settings of fine-tuning, which depend on the other sections."""

from keras_transformer.config.parts import PARTS, STACKS


def check_tuning(settings, config) -> None:
    """Raises a `ValueError` if a setting of fine-tuning has no effect, or an unwanted one.

    Args:
        settings: The `Settings`.
        config: The configuration of the model.
    """
    parts = [name for name in PARTS if getattr(config, name) is not None]
    if settings.training.layer_decay is not None:
        _check_blocks(settings, config, parts)
    if settings.training.lora is not None:
        _check_adapters(settings, parts)
    if settings.training.freeze is not None:
        _check_frozen(settings, parts)


def _check_adapters(settings, parts):
    start, copied = settings.model.start_from, settings.model.parts
    if start is None:
        raise ValueError(
            "[training.lora] needs `model.start_from`: without it the adapters would change random "
            "weights."
        )
    if settings.training.freeze is not None:
        raise ValueError(
            "`training.freeze` has no effect with [training.lora], which freezes all weights of "
            "`model.start_from`; remove one of them."
        )
    stacks = [name for name in parts if name in STACKS]
    if copied is not None and not {*copied} & {*stacks}:
        raise ValueError(
            f"[training.lora] needs {' or '.join(stacks)} among `model.parts`: only attention that "
            f"begins with the weights of `model.start_from` has adapters. Received: "
            f"model.parts={copied}."
        )


def _check_blocks(settings, config, parts):
    for name in parts:
        if name in STACKS and not getattr(config, name).has_blocks:
            raise ValueError(
                f"`training.layer_decay` needs stacks of blocks: the {name} of this model has "
                f"recurrent layers. Received: training.layer_decay={settings.training.layer_decay}."
            )


def _check_frozen(settings, parts):
    freeze = settings.training.freeze
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
