"""Checks of the positions of a stack."""

from typing import Any


def check_positions(stack: Any) -> None:
    """Checks the positions of a `StackConfig`.

    Raises:
        ValueError: If a position has no effect, or does not fit the stack.
    """
    for name in ("attention_position", "local_position"):
        _check_acting(name, getattr(stack, name))
    if stack.attention_position.attends and stack.position.attends:
        raise ValueError(
            "`attention_position` must be 'none' unless `position` is added to the embedding: other"
            f" positions act in self-attention themselves. Received: attention_position="
            f"{stack.attention_position!r}, position={stack.position!r}."
        )
    if stack.has_state:
        _check_state(stack)
    for position in {stack.position, stack.acting_position, stack.local_position} - {None}:
        position.check_stack(stack)
    has_position = stack.position.embeds or stack.position.attends
    if stack.hides_start and has_position and not stack.position.is_relative:
        raise ValueError(
            "`attends_to_start` must be true unless `position` depends on distances alone. "
            f"Received: position={stack.position!r}."
        )


def _check_acting(name, position):
    """Raises `ValueError` for a position that acts on embeddings alone."""
    if position is not None and position.embeds and not position.attends:
        raise ValueError(
            f"`{name}` must act in self-attention, but {position!r} is added to embeddings: write "
            f"`position`. Received: {name}={position!r}."
        )


def _check_state(stack):
    """Raises `ValueError` for options of self-attention of a stack with another mixer."""
    if stack.acting_position.attends:
        name = "attention_position" if stack.attention_position.attends else "position"
        raise ValueError(
            f"`{name}` must be added to the embedding, or 'none', with {stack.mixer!r}: other "
            f"positions act in self-attention. Received: {name}={stack.acting_position!r}."
        )
    if stack.hides_start:
        raise ValueError(
            f"`attends_to_start` must be true with {stack.mixer!r}, which is no self-attention. "
            "Received: attends_to_start=False."
        )
