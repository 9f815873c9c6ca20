"""Trains several seeds of one recipe at once on a GPU: `python benchmarks/seeds_jax.py FOLDER`.

Needs JAX and NumPy only; see seeds.py, which writes what this program reads, and makes runs of the
weights that it writes. Each seed has its own rows, dropout and cutoff; `jax.vmap` adds an axis for
the seeds to every operation. Layers compute in bfloat16, sums and weights are float32.

It covers the recipe of `multi30k_tokenized`: normalisation before each sublayer, no biases in
attention, ReLU, sinusoidal positions, one table for embeddings and output weights, no dropout but
the paper's, SimCut. seeds.py refuses other configurations.
"""

import argparse
import functools
import json
import math
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

WIDTHS = (14, 20, 28)  # of the buckets; the last bucket holds longer pairs
CHUNK = 200  # updates per call of the compiled function
AVERAGED, EVERY = 10, 100  # the last checkpoints, and the updates between them
PROJECTIONS = ("query", "key", "value", "output")


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


def make_batch_loss(model, settings):
    """Returns the loss of a batch as a function of weights, source and target ids, and a seed."""
    loss = make_loss(settings["simcut"], settings["label_smoothing"])
    pad, bos, eos = (settings[f"{name}_id"] for name in ("pad", "bos", "eos"))

    def kept(tokens, seed):
        second = chosen(settings["token_cutoff"], tokens.shape, seed)
        second |= (tokens == bos) | (tokens == eos)
        return jnp.concatenate([jnp.ones_like(second), second]).astype(jnp.float32)

    def batch_loss(weights, source, target, seed):
        starts = jnp.full((len(target), 1), bos)
        inputs = jnp.concatenate([starts, target[:, :-1]], axis=1)
        inputs = jnp.where(inputs == eos, pad, inputs)
        cut = kept(source, child(seed, 5)), kept(inputs, child(seed, 6))
        twice = [jnp.concatenate([tokens, tokens]) for tokens in (source, inputs)]
        x = model.states(weights, *twice, cut, child(seed, 7))
        real = (target != pad).astype(jnp.float32).reshape(-1)
        x = x.reshape(-1, x.shape[-1])
        return loss(x, weights["table"], target.reshape(-1), real / real.sum())

    return batch_loss


def learning_rate(update, settings):
    """Returns the rate of `kind = "linear"` at an update, counted from 1."""
    peak, final, warmup = settings["peak"], settings["final"], settings["warmup_steps"]
    share = (update - warmup) / (settings["updates"] - warmup)
    return jnp.where(update < warmup, peak * update / warmup, peak + (final - peak) * share)


def make_updates(examples, widths, settings):
    """Returns a compiled function of a state and of the rows of `CHUNK` batches."""
    batch_loss = make_batch_loss(Model(settings), settings)
    source, target = (jnp.asarray(side, jnp.int16) for side in examples)
    map_tree, updates = jax.tree_util.tree_map, settings["updates"]

    def branch(width):
        def one(weights, rows, seed):
            rows = rows[: settings["batch_tokens"] // width]
            sides = (side[rows, :width].astype(jnp.int32) for side in (source, target))
            return jax.value_and_grad(batch_loss)(weights, *sides, seed)

        return jax.vmap(one)

    branches = [branch(width) for width in widths]

    def update(state, batch):
        weights, mean, square, average, seeds = state
        bucket, rows, number = batch
        step = mixed(seeds * jnp.uint32(7919) + number.astype(jnp.uint32) * jnp.uint32(104_729))
        loss, gradients = lax.switch(bucket, branches, weights, rows, step)
        n, (beta_1, beta_2) = number.astype(jnp.float32), settings["betas"]
        mean = map_tree(lambda m, g: beta_1 * m + (1 - beta_1) * g, mean, gradients)
        square = map_tree(lambda s, g: beta_2 * s + (1 - beta_2) * g * g, square, gradients)

        def adam(weight, m, s):
            s = jnp.sqrt(s / (1 - beta_2**n)) + settings["epsilon"]
            return weight - learning_rate(n, settings) * m / (1 - beta_1**n) / s

        weights = map_tree(adam, weights, mean, square)
        count = AVERAGED - (updates - number) // EVERY  # checkpoints in the average
        takes = ((updates - number) % EVERY == 0) & (count > 0)
        average = lax.cond(
            takes,
            lambda: map_tree(lambda a, w: a + (w - a) / jnp.maximum(count, 1), average, weights),
            lambda: average,
        )
        return (weights, mean, square, average, seeds), loss

    return jax.jit(lambda state, batches: lax.scan(update, state, batches), donate_argnums=0)


class Batches:
    """Rows of batches of similar length; the buckets follow each other alike for all seeds."""

    def __init__(self, lengths, widths, batch_tokens, seeds):
        self.draw, self.seeds = np.random.default_rng(seeds[0]), seeds
        bounds = zip((0, *widths), widths, strict=False)
        self.pools = [np.flatnonzero((low < lengths) & (lengths <= high)) for low, high in bounds]
        self.sizes = [batch_tokens // width for width in widths]
        batches = [len(pool) / size for pool, size in zip(self.pools, self.sizes, strict=True)]
        self.odds = np.array(batches) / sum(batches)
        self.queues = {(seed, bucket): [] for seed in seeds for bucket in range(len(widths))}

    def take(self, seed, bucket):
        """Returns the next rows of a seed: each row once, then in another order."""
        queue, size = self.queues[seed, bucket], self.sizes[bucket]
        while len(queue) < size:
            queue = np.concatenate([queue, self.draw.permutation(self.pools[bucket])])
        self.queues[seed, bucket] = queue[size:]
        return queue[:size]

    def chunk(self, first):
        """Returns the buckets, the rows and the numbers of `CHUNK` updates."""
        buckets = self.draw.choice(len(self.odds), CHUNK, p=self.odds).astype(np.int32)
        rows = np.zeros([CHUNK, len(self.seeds), max(self.sizes)], np.int32)
        for step, bucket in enumerate(buckets):
            for place, seed in enumerate(self.seeds):
                rows[step, place, : self.sizes[bucket]] = self.take(seed, bucket)
        return buckets, rows, np.arange(first, first + CHUNK, dtype=np.int32)


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


def load(folder):
    """Returns the settings, both sides `[examples, length]`, and the first weights by seed."""
    settings = json.loads((folder / "recipe.json").read_text())
    with np.load(folder / "examples.npz") as file:
        sides = file["source"], file["target"]
    seeds = sorted(int(path.stem.split("-")[1]) for path in folder.glob("first-*.npz"))
    first = {seed: dict(np.load(folder / f"first-{seed}.npz")) for seed in seeds}
    return settings, sides, first


def train(folder):
    """Trains all seeds and writes `mean-SEED.npz`, the average of the last checkpoints."""
    settings, sides, first = load(folder)
    longest = sides[0].shape[1]
    widths = (*(width for width in WIDTHS if width < longest), longest)
    lengths = np.maximum(*((side != settings["pad_id"]).sum(1) for side in sides))
    batches = Batches(lengths, widths, settings["batch_tokens"], list(first))
    trees = [tree_of(arrays) for arrays in first.values()]
    weights = jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves), *trees)
    zeros = [jax.tree_util.tree_map(jnp.zeros_like, weights) for _ in range(3)]
    state = (weights, *zeros, jnp.asarray([*first], jnp.uint32))
    updates, begin = make_updates(sides, widths, settings), time.monotonic()
    for number in range(1, settings["updates"] + 1, CHUNK):
        state, losses = updates(state, batches.chunk(number))
        seconds, loss = time.monotonic() - begin, float(losses.mean())
        print(f"update {number + CHUNK - 1:,}  loss {loss:.3f}  {seconds:.0f} s", flush=True)
    for place, (seed, arrays) in enumerate(first.items()):
        average = jax.tree_util.tree_map(lambda leaf, at=place: leaf[at], state[3])
        np.savez(folder / f"mean-{seed}.npz", **arrays_of(average, arrays))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="what `seeds.py prepare` has written")
    train(parser.parse_args().folder)
