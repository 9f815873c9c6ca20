"""Models with several likely continuations, for tests of the searches, and their logits."""

import functools

import numpy as np
import tensorflow as tf
from support import KV, D, F, H, K, randomise, sentences, small_config

from keras_transformer import LanguageModel, Transformer
from keras_transformer.models import LanguageModelConfig

PAD, BOS, EOS = 0, 2, 3


@functools.cache
def talkative(norm="pre", vocab_size=19, **changes):
    """A model with several likely outputs, which differ in their words and lengths.

    Its learned positions have large weights and its own earlier tokens small ones, because random
    weights would otherwise repeat one token for ever. Padding and the start token are never its
    first choice, so that it can be compared with greedy search, which would emit them.
    """
    config = small_config(
        vocab_size=vocab_size,
        position="learned",
        attention_bias=True,
        norm=norm,
        tie="none",
        **changes,
    )
    model = randomise(Transformer(config))
    factors = {
        "positions": 20,
        "query/kernel": 4,
        "attention/output/kernel": 4,
        "target_embedding/table": 0.5,
        "beta": 0,
    }
    for weight in model.weights:
        for path, factor in factors.items():
            if weight.path.endswith(path):
                weight.assign(weight * factor)
    kernel = 2 * model.output_layer.kernel.numpy()  # [D, V]
    kernel[:, [PAD, BOS]] = 0
    kernel[:, EOS] *= {"pre": 2, "post": 1.5}[norm]
    model.output_layer.kernel.assign(kernel)
    return model


@functools.cache
def talkative_text():
    """A language model with several likely texts, which differ in their words and lengths."""
    config = LanguageModelConfig(
        vocab_size=19, num_layers=2, d_model=D, d_ff=F, num_heads=H, d_k=K, d_v=KV, dropout=0.0,
        max_length=29, position="learned", attention_bias=True, norm="pre", tie="none",
    )  # fmt: skip
    model = randomise(LanguageModel(config))
    factors = {"positions": 12, "query/kernel": 4, "attention/output/kernel": 4, "beta": 0}
    for weight in model.weights:
        for path, factor in factors.items():
            if weight.path.endswith(path):
                weight.assign(weight * factor)
    kernel = 2 * model.output_layer.kernel.numpy()  # [D, V]
    kernel[:, [PAD, BOS]] = 0
    kernel[:, EOS] *= 1.7
    model.output_layer.kernel.assign(kernel)
    return model


def text_prompts():
    """Returns prompts of 0 to 6 words, each ending in `EOS`."""
    prompt = sentences([3, 1, 6, 4, 1], width=8, seed=11)
    prompt[4] = 0
    for row in prompt:
        row[np.count_nonzero(row)] = EOS
    return prompt


def sources(vocab_size=19):
    source = sentences([5, 9, 2, 1, 12], vocab_size, width=13, seed=9)
    for row in source:
        row[np.count_nonzero(row)] = EOS
    return source


@functools.cache
def logits_of(model):
    """Returns a function that computes the logits of a whole target, without a cache."""
    tokens = tf.TensorSpec([None, None], tf.int32)
    return tf.function(
        lambda source, target: model({"source": source, "target": target}),
        input_signature=[tokens, tokens],
        autograph=False,
    )


def unpadded(row):
    """Returns the tokens of a result without the padding after them."""
    return row[: np.count_nonzero(row)].tolist()
