"""Options of a configuration as flat arguments of a block or a stack."""

from keras_transformer import activations
from keras_transformer.config.stack import OPTIONS_OF_BLOCK, OPTIONS_OF_STACK, StackConfig

# Options of a stack that are the work of the embedding before it.
OF_EMBEDDING = ("d_model", "sinusoid_layout", "sinusoid_endpoint", "position_offset")
# Options that a stack has and a single block does not.
OF_STACK = (
    *("num_layers", "final_norm", "embedding_norm", "first_norm"),
    *("share_positions", "global_every", "local_rotary_base"),
)
OPTIONS = {
    name: field
    for name, field in {**OPTIONS_OF_BLOCK, **OPTIONS_OF_STACK}.items()
    if name not in OF_EMBEDDING
}


def split_options(arguments, options=OPTIONS):
    """Returns the `StackConfig` of some keyword arguments, and those that are of any Keras layer.

    Args:
        arguments: Dictionary of keyword arguments.
        options: Names of those that are options of the stack or of its blocks.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range.
    """
    given = {name: value for name, value in arguments.items() if name in options}
    if "activation" in given:
        given["activation"] = activations.name_of(given["activation"])
    others = {name: value for name, value in arguments.items() if name not in options}
    return StackConfig.from_flat(d_model=None, **given), others


def block_options(*leave_out):
    """Returns the options of a single block, without some."""
    return {name: field for name, field in OPTIONS.items() if name not in (*OF_STACK, *leave_out)}


def split_block_options(arguments, options):
    """Returns what `split_options` does, for a block, which refuses the norms of a stack.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range, or a norm of a stack is given.
    """
    config, others = split_options(arguments, {*options, "final_norm", "embedding_norm"})
    if config.final_norm is not None or config.embedding_norm:
        raise ValueError(
            "`final_norm` and `embedding_norm` have no effect on a block: a stack normalises at "
            f"its end and beginning. Received: final_norm={config.final_norm}, "
            f"embedding_norm={config.embedding_norm}."
        )
    return config, others
