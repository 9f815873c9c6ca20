"""References of the convolutional mixers: one position and one tap at a time, in float64."""

import numpy as np
from reference import layer_norm, scope, sigmoid


def gated_convolution(weights, x, real, causal):
    """Gehring et al. (2017), section 3.2: `A * sigmoid(B)` of a convolution with both halves."""
    out = convolution(scope(weights, "convolution"), x, real, causal, dilation=1)
    a, b = out[..., : x.shape[2]], out[..., x.shape[2] :]
    return a * sigmoid(b)


def dilated_convolution(weights, x, real, causal, dilation):
    """Kalchbrenner et al. (2016), Fig. 3, left: half as many features inside."""
    x = np.maximum(layer_norm(scope(weights, "input_norm"), x), 0)
    x = x @ weights["reduce/kernel"] + weights["reduce/bias"]
    x = np.maximum(layer_norm(scope(weights, "reduced_norm"), x), 0)
    x = convolution(scope(weights, "convolution"), x, real, causal, dilation)
    x = np.maximum(layer_norm(scope(weights, "output_norm"), x), 0)
    return x @ weights["expand/kernel"] + weights["expand/bias"]


def convolution(weights, x, real, causal, dilation):
    """A sum over taps; positions that are outside of the text or not `real` [B, T] add nothing."""
    (batch, length, features), kernel = x.shape, weights["kernel"]
    taps = kernel.reshape(-1, features, kernel.shape[1])
    now = len(taps) - 1 if causal else len(taps) // 2  # the tap on the position itself
    out = np.zeros((batch, length, kernel.shape[1]))
    for b, t in np.ndindex(batch, length):
        out[b, t] = weights["bias"]
        for n, tap in enumerate(taps):
            place = t + (n - now) * dilation
            if 0 <= place < length and real[b, place]:
                out[b, t] += x[b, place] @ tap
    return out
