"""Searches for tests, which return the best outputs without an axis of one, or a dictionary."""

import tensorflow as tf

from keras_transformer import Beam, Greedy
from keras_transformer.decoding import BestPath, Sample, SearchOptions


class Wide(Beam):
    """A beam that may have more hypotheses than the vocabulary has tokens, to find all outputs."""

    def check(self, vocabulary, longest, n_best=1):
        super().check(vocabulary._replace(size=max(vocabulary.size, self.size)), longest, n_best)


def by_greedy(model, source, max_length=None, cache_length=None, **options):
    """Returns tokens `[B, L]` and scores `[B]`."""
    options = SearchOptions(cache_length=cache_length, **options)
    return outputs(Greedy(max_length)(model, source, options), squeezed=True)


def by_beam(model, source, size=4, n_best=1, length_penalty=0.6, **options):
    """Returns tokens `[B, M, L]` and scores `[B, M]`; the source does not limit the length."""
    names = "normalization", "min_length", "max_length", "stopping"
    settings = {name: options.pop(name) for name in names if name in options}
    beam = Wide(size, length_penalty, extra_length=None, **settings)
    return outputs(beam(model, source, SearchOptions(n_best=n_best, **options)))


def by_sample(
    model, source, temperature=1.0, top_k=0, top_p=1.0, seed=(0, 0), max_length=None, **options
):
    """Returns tokens `[B, L]` and scores `[B]`; `seed` are two integers, or two for each row."""
    sample = Sample(temperature, top_k, top_p, tf.convert_to_tensor(seed), max_length)
    return outputs(sample(model, source, SearchOptions(**options)), squeezed=True)


def by_best_path(model, source, max_length=None, cache_length=None):
    """Returns tokens `[B, L]` and scores `[B]`."""
    options = SearchOptions(cache_length=cache_length)
    return outputs(BestPath(max_length)(model, source, options), squeezed=True)


def outputs(found, squeezed=False):
    """Returns tokens and scores; with further results a dictionary of all but `complete`."""
    results = found._replace(complete=None)._asdict()
    results = {name: value for name, value in results.items() if value is not None}
    if squeezed:
        results = {name: value[:, 0] for name, value in results.items()}
    return results if len(results) > 2 else tuple(results.values())
