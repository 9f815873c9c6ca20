"""Blocks one after the other (section 3.1), and the cache of all of them."""

from keras_transformer.checks import check_flag
from keras_transformer.layers.attending import AttendingLayer
from keras_transformer.layers.blocks.block import Step
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.normalization import make_norm
from keras_transformer.layers.positions.shared import SharedPosition


class Stack(AttendingLayer):
    """`num_layers` blocks one after the other; pre-norm stacks normalise once more at the end.

    `final_norm` and `embedding_norm` decide whether a stack normalises at its end and beginning.

    Args:
        config: The `StackConfig`.
        causal: Whether a position attends only to itself and earlier ones. `None`: as the class
            has it.
        **kwargs: `name`, `dtype`, `trainable` and `kernels` as in every layer of this package.
    """

    block_class = None
    causal = False

    def __init__(self, config, *, causal=None, **kwargs):
        super().__init__(**kwargs)
        self.config, self.num_layers = config, config.num_layers
        if causal is not None:
            check_flag("causal", causal)
            self.causal = causal
        of_layers = {"dtype": self.dtype_policy, "kernels": self.kernels, "causal": self.causal}
        self.blocks = []
        for number in range(config.num_layers):
            position = SharedPosition(self.blocks[0]) if number and config.share_positions else None
            block = self.block_class.from_stack(
                config, **of_layers, number=number, position=position, name=f"block_{number}"
            )
            self.blocks.append(block)
        self.norm = self.embedding_norm = None
        if config.has_final_norm:
            self.norm = make_norm(config.block, self.dtype_policy, "norm")
        if config.embedding_norm:
            self.embedding_norm = make_norm(config.block, self.dtype_policy, "embedding_norm")
            rate = config.block.dropout
            self.dropout = Dropout(rate, dtype=self.dtype_policy, name="dropout")

    @classmethod
    def from_stack(cls, config, **kwargs):
        """Returns a stack with a configuration as it is, which its blocks get as well.

        Args:
            config: The `StackConfig`.
            **kwargs: `causal`, for an `Encoder`, `name`, `dtype`, `trainable` and `kernels`.
        """
        layer = cls.__new__(cls)
        Stack.__init__(layer, config, **kwargs)
        return layer

    def _build(self, x_shape, *memory_shape):
        self.check_shapes(**dict(zip(("x", "memory"), (x_shape, *memory_shape), strict=False)))
        for block in self.blocks:
            block.build(x_shape, *memory_shape)
        for norm in (self.norm, self.embedding_norm):
            if norm is not None:
                norm.build(x_shape)

    def _run(self, x, *arguments, return_weights, **options):
        """The stack; the arguments are those of a call of its blocks."""
        weights, x = {}, self._begin(x, options.get("training"))
        for block in self.blocks:
            if return_weights:
                x, of_block = block(x, *arguments, return_weights=True, **options)
                weights.update({f"{block.name}/{name}": value for name, value in of_block.items()})
            else:
                x = block(x, *arguments, **options)
        x = self._end(x)
        return (x, weights) if return_weights else x

    def _begin(self, x, training=False):
        if self.embedding_norm is None:
            return x
        return self.dropout(self.embedding_norm(x), training=training)

    def _end(self, x):
        return x if self.norm is None else self.norm(x)

    def empty_cache(self, batch, length, width=1):
        """Returns a cache for `length` positions: what every block keeps of them, zeros.

        Args:
            batch: Number of sentences B, an integer or a scalar tensor.
            length: Number of positions L, a Python integer.
            width: Number of hypotheses of a sentence N, a Python integer.

        Returns:
            For every block two tensors `[B, G, L, N * K]`, key and value heads; of an SSRU one
            `[B, N, D]`, its state.
        """
        return tuple(block.history().empty_cache(batch, length, width) for block in self.blocks)

    def extended_cache(self, cache, length):
        """Returns a cache for `length` more positions; those there are do not change any more.

        Every step writes to the cache of its positions, and copies it where a runtime cannot
        write in place. It only reads the positions that are set aside.

        Args:
            cache: What `empty_cache` or a step at the last position returned.
            length: Number of positions R, a Python integer.

        Returns:
            For every block two tensors `[B, G, R, N * K]`, zeros, and two `[B, G, P, N * K]` of all
            earlier positions; of an SSRU its state as it is.
        """
        return tuple(
            block.history().extended_cache(of_block, length)
            for block, of_block in zip(self.blocks, cache, strict=True)
        )

    def project_memory(self, memory):
        """Returns key and value heads of the memory for every block, each `[B, G, S, K]`."""
        return tuple(block.cross_attention.project_memory(memory) for block in self.blocks)

    def step(
        self,
        x,
        cache,
        index,
        memory_heads=None,
        memory_allowed=None,
        allowed=None,
        return_weights=False,
    ):
        """The stack at one position.

        Args:
            x: The position in each of the N hypotheses of a sentence, embedded, `[B, N, D]`.
            cache: What `empty_cache`, `extended_cache` or the previous step returned.
            index: Number of the position, counting from 0; scalar integer.
            memory_heads: What `project_memory` returned. `None` where there is no memory.
            memory_allowed: Boolean `[B, 1, S]`.
            allowed: Boolean `[B, N, L * N]`; see `MultiHeadSelfAttention.step`. `None` with SSRUs.
            return_weights: Whether the `Step` has the weights of the attentions to the memory.

        Returns:
            A `Step`.
        """
        caches, weights, x = [], [], self._begin(x)
        for block, of_block, heads in zip(
            self.blocks, cache, memory_heads or [None] * len(self.blocks), strict=True
        ):
            x, new_cache, of_memory = block.step(
                x, of_block, index, heads, memory_allowed, allowed, return_weights
            )
            caches.append(new_cache)
            weights.append(of_memory)
        asked = return_weights and memory_heads is not None
        return Step(self._end(x), tuple(caches), tuple(weights) if asked else None)

    def get_config(self):
        """Returns the constructor's arguments."""
        flat = self.config.to_flat()
        return {**super().get_config(), **{name: flat[name] for name in self.options}}
