"""LoRA: low-rank adapters on the projections of attention, and their merge into the kernels."""

import numpy as np

from keras_transformer.config.parts import PARTS, STACKS
from keras_transformer.layers.multi_head import MultiHeadAttention
from keras_transformer.models.parts import ADAPTERS

# The attribute of the layer with each projection.
LAYERS = {"query": "query", "key": "key", "value": "value", "output": "output_projection"}


def add_adapters(model, settings, copied) -> None:
    """Adds adapters to copied stacks of a model and freezes everything else that was copied.

    A projection computes `x (W + alpha / rank * A B)` with `A` `[D, R]` and `B` `[R, U]`, of which
    only the latter two are trained. `B` begins with zeros, so that the model begins unchanged. It
    is Keras's `Dense.enable_lora`. Parts that were not copied, such as a new head, are trained
    whole.

    Args:
        model: A `ConfiguredModel`; call this before `compile`.
        settings: A `LoraSettings`.
        copied: Names of the parts that begin with the weights of another run. `None`: all.

    Raises:
        ValueError: If a copied stack has no attention to adapt, or the rank is too high for a
            projection.

    Reference: Hu et al. (2021), section 4.

    Differs from the paper: `A` begins with Keras's `he_uniform` instead of normal values, and there
    is no dropout before the adapters.
    """
    copied = PARTS if copied is None else copied
    for name in copied:
        for variable in (model.parts.weights(name) or {}).values():
            variable.trainable = False
    stacks = [name for name in STACKS if name in copied and getattr(model.parts, name)]
    attention = {name: _attention_layers(getattr(model.parts, name)) for name in stacks}
    missing = [name for name, layers in attention.items() if not layers]
    if missing or not stacks:
        raise ValueError(
            "[training.lora] needs attention in every stack that `model.start_from` provides, "
            "because nothing else there is trained. Received without attention: "
            f"{', '.join(missing or copied)}."
        )
    projections = [
        getattr(layer, LAYERS[target])
        for layers in attention.values()
        for layer in layers
        for target in settings.targets
    ]
    for projection in projections:
        size = min(projection.kernel.shape)
        if settings.rank > size:
            raise ValueError(
                f"`training.lora.rank` must be at most {size}, the smaller side of "
                f"{projection.path}/kernel. Received: training.lora.rank={settings.rank}."
            )
        projection.enable_lora(settings.rank, lora_alpha=settings.alpha)


def merged_weights(model) -> list[np.ndarray]:
    """Returns the weights of a model without its adapters, arrays in the order of `get_weights`.

    The adapters are added to the kernels: `W + alpha / rank * A B`, computed in float64. Without
    adapters these are the weights of the model.

    Args:
        model: A `ConfiguredModel`, with or without adapters.
    """
    change = {id(_kernel(dense)): _change(dense) for dense in _adapted(model)}
    return [
        weight.numpy() + change[id(weight)] if id(weight) in change else weight.numpy()
        for weight in model.weights
        if weight.name not in ADAPTERS
    ]


def _kernel(dense):
    """Returns the variable of a layer's kernel; the property `kernel` includes the adapters."""
    return next(weight for weight in dense.weights if weight.name == "kernel")


def _change(dense):
    """Returns what the adapters of a layer add to its kernel, float64 `[D, U]`."""
    first, second = (
        np.array(part.numpy(), "float64") for part in (dense.lora_kernel_a, dense.lora_kernel_b)
    )
    return dense.lora_alpha / dense.lora_rank * first @ second


def _attention_layers(part):
    """Returns the attention layers of a stack, each once."""
    layers = []
    for layer in getattr(part, "roles", {"": part}).values():
        layers += [layer, *layer._flatten_layers(include_self=False)]
    return list({id(x): x for x in layers if isinstance(x, MultiHeadAttention)}.values())


def _adapted(model):
    """Returns the layers of a model that have adapters, each once."""
    layers = model._flatten_layers(include_self=False)
    return {id(x): x for x in layers if getattr(x, "lora_enabled", False)}.values()
