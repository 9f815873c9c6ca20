"""Trains several seeds of one recipe at once on a GPU: `python benchmarks/seeds_jax.py FOLDER`.

Needs only JAX, NumPy and seeds_model.py. See seeds.py, which writes what this program reads, and
makes runs of the weights that it writes. Each seed has its own rows, dropout and cutoff: `jax.vmap`
adds an axis for the seeds to every operation. Layers compute in bfloat16, sums and weights are
float32.

It covers the recipe of `multi30k_tokenized`: normalisation before each sublayer, no biases in
attention, ReLU, sinusoidal positions, one table for embeddings and output weights, no dropout but
the paper's, SimCut. seeds.py refuses other configurations.
"""

import argparse
import json
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from seeds_model import Model, arrays_of, child, chosen, make_loss, mixed, tree_of

WIDTHS = (14, 20, 28)  # of the buckets; the last bucket holds longer pairs
CHUNK = 200  # updates per call of the compiled function
AVERAGED, EVERY = 10, 100  # the last checkpoints, and the updates between them


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
