"""Removal of nodes whose outputs nothing reads."""

from onnx import AttributeProto, GraphProto


def pruned(nodes: list, outputs: list[str]) -> tuple[list, set[str]]:
    """Returns the nodes that some tensors depend on, in order, and the names of all they read.

    Args:
        nodes: List of nodes, each after those that it depends on.
        outputs: Names of the tensors.
    """
    read, kept = set(outputs), []
    for node in reversed(nodes):
        if read.isdisjoint(node.output):
            continue
        kept.append(node)
        read.update(node.input)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                read |= _prune_body(attribute.g)
    return kept[::-1], read


def _prune_body(body: GraphProto) -> set[str]:
    """Removes nodes from the body of a loop or branch; returns the names that it reads."""
    nodes, read = pruned(list(body.node), [output.name for output in body.output])
    del body.node[:]
    body.node.extend(nodes)
    own = {name for node in nodes for name in node.output} | {value.name for value in body.input}
    return read - own
