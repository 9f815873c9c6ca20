"""Head that predicts the next token, with output weights tied to an embedding or separate."""

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.models.heads.head import Head, make_logits, with_mask
from keras_transformer.tensors import Tensor


class OutputWeights:
    """Base class of output weights: the matrix from hidden states to logits, and their bias.

    Args:
        layer: The layer with the matrix.
        logits: The layer that casts logits and adds the bias, if any.
        kernels: The `Kernels` to compute with.

    Attributes:
        is_tied: `True` if the matrix is the table of an embedding.
    """

    is_tied = False

    def __init__(self, layer, logits, kernels):
        self.layer, self.logits, self.kernels = layer, logits, kernels

    def project(self, hidden) -> Tensor:
        """Returns the logits `[B, T, V]` of hidden states `[B, T, D]`."""
        return self.logits(self._product(hidden))

    def _product(self, hidden):
        raise NotImplementedError

    @property
    def matrix(self) -> Tensor:
        """The output weights `[V, D]`."""
        raise NotImplementedError

    @property
    def bias(self) -> Tensor | None:
        """Bias of the logits, a variable `[V]`; `None` without a bias."""
        return getattr(self.logits, "bias", None)

    def of_tokens(self, tokens) -> Callable[[Tensor], Tensor]:
        """Returns a function from hidden states to the logits of some tokens.

        The weights of these tokens are gathered once for all calls of the function. After
        `model.quantize`, the function computes all logits and selects those of the tokens.

        Args:
            tokens: Token ids `[C]`, int32, with C known statically.

        Returns:
            Function from `[B, N, D]` to `[B, N, C]`.
        """
        if self.layer.quantization_mode:  # only the layer itself can use its quantised weights
            product = functools.partial(_selected, self.layer, tokens)
        else:
            weights, axis = self._weights()
            product = self.kernels.restrict(weights, tokens, axis, self.layer.compute_dtype)
        bias = None if self.bias is None else self.kernels.pick(self.bias, tokens)  # [C]
        dtypes = self.layer.compute_dtype, self.logits.compute_dtype
        return functools.partial(_some_logits, product, bias, *dtypes)

    def _weights(self):
        """Returns the variable of the weights and its axis of tokens."""
        raise NotImplementedError


class TiedWeights(OutputWeights):
    """The table of an embedding as output weights (section 3.4)."""

    is_tied = True

    def _product(self, hidden):
        return self.layer(hidden, reverse=True)

    @property
    def matrix(self) -> Tensor:  # noqa: D102
        return ops.convert_to_tensor(self.layer.table)

    def _weights(self):
        return self.layer.table, 0


class OwnWeights(OutputWeights):
    """Separate output weights: a `Dense` layer without a bias."""

    def _product(self, hidden):
        return self.layer(hidden)

    @property
    def matrix(self) -> Tensor:  # noqa: D102
        if self.layer.quantization_mode:  # the kernel contains integers without their scale
            rows = ops.eye(self.layer.input_spec.axes[-1], dtype=self.layer.compute_dtype)
            return ops.transpose(self.layer(rows))
        return ops.transpose(self.layer.kernel)

    def _weights(self):
        return self.layer.kernel, 1


def _selected(layer, tokens, hidden):
    """Returns the layer's logits `[B, N, C]` of C tokens for hidden states `[B, N, D]`."""
    return ops.take(layer(hidden), tokens, axis=-1)


def _some_logits(product, bias, compute_dtype, dtype, hidden):
    """Returns logits `[B, N, C]` of hidden states `[B, N, D]`; `bias` is `[C]` or `None`."""
    logits = ops.cast(product(ops.cast(hidden, compute_dtype)), dtype)
    return logits if bias is None else ops.add(logits, ops.cast(bias, dtype))


class NextTokenLogits(Head):
    """Logits of the next token at each position.

    Args:
        embedding: The embedding before the last stack; if weights are tied, its table is also the
            output weights.

    Attributes:
        weights: The `OutputWeights`.
    """

    def make_layers(self, config, policy, kernels, embedding) -> dict[str, Any]:  # noqa: D102
        logits = make_logits(policy, config.head.output_bias)
        if config.head.is_tied:
            output = embedding
            self.weights = TiedWeights(output, logits, kernels)
        else:
            output = keras.layers.Dense(
                config.output_size, use_bias=False, dtype=policy, name="output"
            )
            self.weights = OwnWeights(output, logits, kernels)
        return {"output_layer": output, "logits": logits}

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        return with_mask(self.weights.project(hidden), inputs, self.config)  # [B, T, V]
