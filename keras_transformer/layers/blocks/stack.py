"""Stacks of blocks (section 3.1) and their caches."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

from keras_transformer.checks import check_flag
from keras_transformer.config.stack import StackConfig
from keras_transformer.layers.attending import ConfiguredLayer
from keras_transformer.layers.blocks.block import Block, CachedOutput
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.kernels import PADDED
from keras_transformer.tensors import Tensor


class Stack(ConfiguredLayer):
    """A sequence of `num_layers` blocks; pre-norm stacks normalise once more at the end.

    `final_norm` and `embedding_norm` add or remove a norm at the end and at the beginning.

    Args:
        config: The `StackConfig`.
        causal: Whether each position attends only to itself and earlier positions. `None`: the
            default of the class.
        **kwargs: `name`, `dtype`, `trainable` and `kernels` as in every layer of this package.

    Attributes:
        block_class: Class of the blocks.
    """

    block_class: ClassVar[type[Block]]

    def __init__(self, config: StackConfig, *, causal: bool | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.config, self.num_layers = config, config.num_layers
        if causal is not None:
            check_flag("causal", causal)
            self.causal = causal
        if self.block_class.cross:  # which reads `x` as queries of another sequence
            self.kernels = dataclasses.replace(self.kernels, packing=PADDED)
        shared = {"dtype": self.dtype_policy, "kernels": self.kernels, "causal": self.causal}
        self.blocks = []
        for number in range(config.num_layers):
            position = None
            if number and config.acting_position.shared:
                position = self.blocks[0].position.shared_with(self.blocks[0])
            block = self.block_class.from_stack(
                config, **shared, number=number, position=position, name=f"block_{number}"
            )
            self.blocks.append(block)
        self.position = self.blocks[0].position
        self.norm = self.embedding_norm = None
        if config.has_final_norm:
            self.norm = config.block.normalization.layer(self.dtype_policy, "norm")
        if config.embedding_norm:
            self.embedding_norm = config.block.normalization.layer(
                self.dtype_policy, "embedding_norm"
            )
            rate = config.block.dropout
            self.dropout = Dropout(rate, dtype=self.dtype_policy, name="dropout")

    @classmethod
    def from_stack(cls, config: StackConfig, **kwargs: Any) -> "Stack":
        """Returns a stack made from a configuration, which is also passed to its blocks.

        Args:
            config: The `StackConfig`.
            **kwargs: `name`, `dtype`, `trainable` and `kernels`; for an `Encoder` also `causal`.
        """
        layer = cls.__new__(cls)
        Stack.__init__(layer, config, **kwargs)
        return layer

    def rematerialized_call(self, layer_call: Callable, *args: Any, **kwargs: Any) -> Callable:
        """Returns `call`: in a `keras.RematScope`, the blocks are recomputed one by one."""
        return layer_call

    def _build(self, x_shape, memory_shape=None):
        shapes = {"x": x_shape} if memory_shape is None else {"x": x_shape, "memory": memory_shape}
        self.check_shapes(**shapes)
        for block in self.blocks:
            block.build(*shapes.values())
        for norm in (self.norm, self.embedding_norm):
            if norm is not None:
                norm.build(x_shape)

    def _run(self, x, *arguments, return_attention_scores=False, **options):
        """Returns the output of a call, with the call arguments of its blocks."""
        real = options.get("attention_mask")
        x = self.kernels.packing.pack(x, real)
        weights, x = {}, self._begin(x, options.get("training"))
        for block in self.blocks:
            if return_attention_scores:
                x, of_block = block(x, *arguments, return_attention_scores=True, **options)
                weights.update({f"{block.name}/{name}": value for name, value in of_block.items()})
            else:
                x = block(x, *arguments, **options)
        x = self.kernels.packing.unpack(self._end(x), real)  # [B, T, D]
        return (x, weights) if return_attention_scores else x

    def _begin(self, x, training=False):
        if self.embedding_norm is None:
            return x
        return self.dropout(self.embedding_norm(x), training=training)

    def _end(self, x):
        return x if self.norm is None else self.norm(x)

    def empty_cache(self, batch: Tensor, length: int, width: int = 1) -> tuple:
        """Returns a cache for `length` positions, filled with zeros.

        Args:
            batch: Number of sentences B, an integer or a scalar tensor.
            length: Number of positions L.
            width: Number of hypotheses per sentence N.

        Returns:
            For each block, two tensors `[B, G, L * N, K]` with its key and value heads; with
            another mixer, the tensors `[B, N, ...]` of its state.
        """
        return tuple(block.history().empty_cache(batch, length, width) for block in self.blocks)

    def extended_cache(self, cache: tuple, length: int, width: int) -> tuple:
        """Returns a cache for `length` more positions; the earlier ones become read-only.

        Each step writes to the cache of the new positions, which a runtime may have to copy. The
        read-only cache of the earlier positions is never copied.

        Args:
            cache: A cache from `empty_cache`, after a `step` at its last position.
            length: Number of further positions R.
            width: Number of hypotheses per sentence N.

        Returns:
            For each block, two tensors `[B, G, R * N, K]` of zeros, and two `[B, G, P * N, K]` with
            the P earlier positions; with another mixer, its unchanged state.
        """
        return tuple(
            block.history().extended_cache(of_block, length, width)
            for block, of_block in zip(self.blocks, cache, strict=True)
        )

    def compacted_cache(self, cache: tuple, chosen: Tensor, length: int, width: int) -> tuple:
        """Returns a cache of chosen entries, with room for `length` more positions.

        All blocks must have self-attention.

        Args:
            cache: A cache from `empty_cache` or `extended_cache`, after a `step`.
            chosen, length, width: See `MultiHeadSelfAttention.compacted_cache`.
        """
        return tuple(
            block.history().compacted_cache(of_block, chosen, length, width)
            for block, of_block in zip(self.blocks, cache, strict=True)
        )

    def read(
        self,
        x: Tensor,
        memory_heads: tuple | None = None,
        memory_attention_mask: Tensor | None = None,
        count: Tensor | None = None,
    ) -> tuple[tuple[Tensor, ...], ...]:
        """Returns the key and value heads of the first T positions, computed in one pass.

        Args:
            x: The embedded positions, `[B, T, D]`.
            memory_heads, memory_attention_mask: See `step`.
            count: Number of positions that a search continues after, a scalar integer. `None`: T.

        Returns:
            For each block, two tensors `[B, G, T, K]`, or the state of another mixer; see
            `recalled_cache`.
        """
        heads, x = [], self._begin(x)
        memories = memory_heads or [None] * len(self.blocks)
        for block, of_memory in zip(self.blocks, memories, strict=True):
            x, of_block = block.read(x, of_memory, memory_attention_mask, count)
            heads.append(of_block)
        return tuple(heads)

    def read_more(
        self, x: Tensor, past: tuple, start: Tensor | None = None
    ) -> tuple[Tensor, tuple[tuple[Tensor, ...], ...]]:
        """Runs a causal stack without memory at T positions after earlier ones, in one pass.

        All blocks must have self-attention: the state of another mixer is not continued here.

        Args:
            x: The embedded positions, `[B, T, D]`.
            past: For each block, key and value heads of the P earlier positions, `[B, G, P, K]`.
            start: See `MultiHeadSelfAttention.read_more`.

        Returns:
            The output `[B, T, D]`, and for each block the heads of all positions,
            `[B, G, P + T, K]`.
        """
        heads, x = [], self._begin(x)
        for block, of_block in zip(self.blocks, past, strict=True):
            x, of_block = block.read_more(x, of_block, start)
            heads.append(of_block)
        return self._end(x), tuple(heads)

    def recalled_cache(self, cache: tuple, heads: tuple, unread: Tensor, width: int) -> tuple:
        """Returns a cache with the positions whose heads or states `read` has returned.

        Args:
            cache: A cache from `empty_cache` or `extended_cache`, before a `step`.
            heads: The result of `read`.
            unread: See `MultiHeadSelfAttention.recalled_cache`.
            width: Number of hypotheses per sentence N.
        """
        return tuple(
            block.history().recalled_cache(of_block, of_heads, unread, width)
            for block, of_block, of_heads in zip(self.blocks, cache, heads, strict=True)
        )

    def project_memory(self, memory: Tensor) -> tuple:
        """Returns key and value heads of the memory for each block, each `[B, G, S, K]`."""
        return tuple(block.cross_attention.project_memory(memory) for block in self.blocks)

    def step(
        self,
        x: Tensor,
        cache: tuple,
        index: Tensor,
        memory_heads: tuple | None = None,
        memory_attention_mask: Tensor | None = None,
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        slot: Tensor | None = None,
    ) -> CachedOutput:
        """Runs the stack at one position; the cache holds the earlier ones.

        Args:
            x: The embedded position in each of the N hypotheses of a sentence, `[B, N, D]`.
            cache: The cache from `empty_cache`, `extended_cache` or the previous step.
            index: Index of the position, counted from 0: a scalar integer.
            memory_heads: Heads from `project_memory`. `None` if there is no memory.
            memory_attention_mask: Boolean `[B, 1, S]`.
            attention_mask: Boolean `[B, N, L * N]`; see `MultiHeadSelfAttention.step`. `None` with
                another mixer.
            return_attention_scores: Whether to also return the cross-attention weights.
            slot: See `MultiHeadSelfAttention.step`.

        Returns:
            A `CachedOutput`.
        """
        caches, weights, x = [], [], self._begin(x)
        slots = {} if slot is None else {"slot": slot}  # which not every block needs to know
        for block, block_cache, heads in zip(
            self.blocks, cache, memory_heads or [None] * len(self.blocks), strict=True
        ):
            x, new_cache, cross_weights = block.step(
                x,
                block_cache,
                index,
                heads,
                memory_attention_mask,
                attention_mask,
                return_attention_scores,
                **slots,
            )
            caches.append(new_cache)
            weights.append(cross_weights)
        has_weights = return_attention_scores and memory_heads is not None
        return CachedOutput(self._end(x), tuple(caches), tuple(weights) if has_weights else None)
