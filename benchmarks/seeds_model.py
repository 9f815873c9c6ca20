"""The Transformer and SimCut's loss as functions of weights, in JAX: see seeds_jax.py."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def mixed(x):
    """Returns the final mix of MurmurHash3, uint32."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def child(seed, number):
    """Returns another seed, uint32; `None` without a seed."""
    if seed is None:
        return None
    return mixed(seed + jnp.uint32(number * 0x9E3779B9 & 0xFFFFFFFF))


def chosen(rate, shape, seed):
    """Returns random booleans that are false with probability `rate`.

    They are hashes of a counter: cheaper than `jax.random`, and quick to vectorise over seeds.
    """
    counter = lax.iota(jnp.uint32, math.prod(shape)).reshape(shape) * jnp.uint32(0x9E3779B1)
    bits = mixed(mixed(counter + seed) ^ (seed * jnp.uint32(0x27D4EB2F) + jnp.uint32(1)))
    return bits >> 16 >= round(rate * 2**16)


class Model:
    """The Transformer as a function of a dictionary of weights.

    Args:
        settings: Sizes, ids and rates; see `seeds.py`.
        dtype: Dtype of the layers.
    """

    def __init__(self, settings, dtype=jnp.bfloat16):
        self.dtype = dtype
        self.heads, self.rate = settings["num_heads"], settings["dropout"]
        self.epsilon, self.pad = settings["layer_norm_epsilon"], settings["pad_id"]

    def drop(self, x, seed):
        """Applies dropout; none without a seed."""
        if seed is None or not self.rate:
            return x
        scale = jnp.asarray(1 / (1 - self.rate), x.dtype)
        return jnp.where(chosen(self.rate, x.shape, seed), x * scale, jnp.zeros_like(x))

    def norm(self, x, weights):
        centred = x.astype(jnp.float32)
        centred -= centred.mean(-1, keepdims=True)
        variance = jnp.square(centred).mean(-1, keepdims=True)
        scaled = centred * lax.rsqrt(variance + self.epsilon)
        return (scaled * weights["gamma"] + weights["beta"]).astype(self.dtype)

    def attend(self, x, memory, weights, allowed):
        """Returns multi-head attention `[B, T, D]`; `allowed` is `[B or 1, T or 1, S]`."""

        def heads(name, of):
            y = of @ weights[name].astype(self.dtype)
            return y.reshape(*y.shape[:2], self.heads, -1)

        query, key, value = heads("query", x), heads("key", memory), heads("value", memory)
        scores = jnp.einsum("bthk,bshk->bhts", query, key).astype(jnp.float32)
        scores = jnp.where(allowed[:, None], scores / math.sqrt(query.shape[-1]), -1e9)
        shares = jax.nn.softmax(scores).astype(self.dtype)
        joined = jnp.einsum("bhts,bshk->bthk", shares, value).reshape(x.shape)
        return joined @ weights["output"].astype(self.dtype)

    def feed_forward(self, x, weights):
        weights = {name: weight.astype(self.dtype) for name, weight in weights.items()}
        inner = jax.nn.relu(x @ weights["inner"] + weights["inner_bias"])
        return inner @ weights["outer"] + weights["outer_bias"]

    def embed(self, weights, tokens, kept, seed):
        x = weights["table"][tokens] * math.sqrt(weights["table"].shape[1])
        if kept is not None:
            x *= kept[..., None]
        return self.drop((x + sinusoids(*x.shape[1:])).astype(self.dtype), seed)

    def run(self, x, stack, allowed, memory, memory_allowed, seed):
        """Runs a stack; each kind of weight has an axis for the blocks."""

        def block(carry, weights):
            x, seed = carry
            y = self.norm(x, weights["self_attention_norm"])
            y = self.attend(y, y, weights["self_attention"], allowed)
            x += self.drop(y, child(seed, 1))
            if memory is not None:
                y = self.norm(x, weights["cross_attention_norm"])
                y = self.attend(y, memory, weights["cross_attention"], memory_allowed)
                x += self.drop(y, child(seed, 2))
            y = self.norm(x, weights["feed_forward_norm"])
            x += self.drop(self.feed_forward(y, weights["feed_forward"]), child(seed, 3))
            return (x, child(seed, 4)), None

        (x, _), _ = lax.scan(block, (x, seed), stack["blocks"])
        return self.norm(x, stack["norm"])

    def states(self, weights, source, target, kept=(None, None), seed=None):
        """Returns the states before the output weights, `[B, T, D]`; dropout needs a seed."""
        real = (source != self.pad)[:, None]  # [B, 1, S]
        x = self.embed(weights, source, kept[0], child(seed, 1))
        memory = self.run(x, weights["encoder"], real, None, None, child(seed, 2))
        x = self.embed(weights, target, kept[1], child(seed, 3))
        causal = jnp.tril(jnp.ones([1, *[target.shape[1]] * 2], bool))
        return self.run(x, weights["decoder"], causal, memory, real, child(seed, 4))


@functools.lru_cache
def sinusoids(length, width):
    """Returns the sinusoidal positions of section 3.5, interleaved, `[length, width]`."""
    angles = np.arange(length)[:, None] * 10_000.0 ** (-np.arange(width // 2) / (width // 2))
    waves = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return waves.reshape(length, width).astype(np.float32)


def make_loss(weight, smoothing):
    """Returns SimCut's loss of states, with its gradients in closed form.

    The logits of two passes are read a few times only; automatic differentiation would read and
    write them 20 times, which took half of an update.

    Args:
        weight: Weight of the divergence.
        smoothing: Label smoothing.
    """

    def forward(x, table, target, share):
        rows = table.astype(x.dtype)
        logits = (x @ rows.T).astype(jnp.float32).reshape(2, -1, len(table))
        logs = logits - jax.nn.logsumexp(logits, axis=-1, keepdims=True)
        hits = jnp.take_along_axis(logs[0], target[:, None], axis=-1)[:, 0]
        entropy = -(1 - smoothing) * hits - smoothing * logs[0].mean(-1)
        numbers = lax.broadcasted_iota(jnp.int32, logs.shape[1:], 1)
        wanted = jnp.where(numbers == target[:, None], 1 - smoothing, 0) + smoothing / len(table)
        p, apart = jnp.exp(logs), logs[0] - logs[1]
        divergence = (p[0] * apart).sum(-1)
        first = p[0] - wanted + weight * p[0] * (apart - divergence[:, None])
        by_logits = jnp.stack([first, weight * (p[1] - p[0])]) * share[:, None]
        by_logits = by_logits.reshape(-1, len(table)).astype(x.dtype)
        by_table = jnp.matmul(by_logits.T, x, preferred_element_type=jnp.float32)
        value = ((entropy + weight * divergence) * share).sum()
        return value, (by_logits @ rows, by_table)

    def backward(gradients, by_value):
        by_x, by_table = gradients
        return (by_value * by_x).astype(by_x.dtype), by_value * by_table, None, None

    loss = jax.custom_vjp(lambda *arguments: forward(*arguments)[0])
    loss.defvjp(forward, backward)
    return loss


def tree_of(arrays):
    """Returns the weights of `Model` from those of Keras, a dictionary from paths to arrays."""

    def stack(side):
        paths = {path.split("/", 2)[2] for path in arrays if path.startswith(f"{side}/block_0/")}
        count = len({path.split("/")[1] for path in arrays if path.startswith(f"{side}/block_")})
        blocks = {}
        for path in paths:
            layer, *rest = path.split("/")
            name = rest[0] if rest[-1] != "bias" else f"{rest[0]}_bias"
            values = [arrays[f"{side}/block_{number}/{path}"] for number in range(count)]
            blocks.setdefault(layer, {})[name] = np.stack(values)
        norm = {name: arrays[f"{side}/norm/{name}"] for name in ("gamma", "beta")}
        return {"blocks": blocks, "norm": norm}

    tree = {side: stack(side) for side in ("encoder", "decoder")}
    return {**tree, "table": arrays["embedding/table"]}


def arrays_of(tree, like):
    """Returns weights of Keras from those of `Model`; `like` has the paths."""

    def find(path):
        side, block, *rest = path.split("/")
        if block == "table":
            return tree["table"]
        if block == "norm":
            return tree[side]["norm"][rest[0]]
        name = rest[1] if rest[-1] != "bias" else f"{rest[1]}_bias"
        return tree[side]["blocks"][rest[0]][name][int(block.removeprefix("block_"))]

    return {path: np.asarray(find(path)) for path in like}
