"""Operations of a function that some of its tensors depend on."""


def needed_by(outputs: list, given: dict) -> dict:
    """Returns the operations that some tensors depend on, in order, and which of their outputs.

    Args:
        outputs: List of tensors.
        given: Dictionary whose keys are the names of tensors that are known.

    Returns:
        Dictionary from operations to sets of names of their outputs.
    """
    order, names, stack = {}, {}, [(tensor, False) for tensor in reversed(outputs)]
    while stack:
        tensor, finished = stack.pop()
        op = tensor.op
        if finished:
            order.setdefault(op, names[op])
            continue
        if tensor.name in given:
            continue
        is_new = op not in names
        names.setdefault(op, set()).add(tensor.name)
        if is_new:
            stack.append((tensor, True))
            stack.extend((source, False) for source in op.inputs)
    return order
