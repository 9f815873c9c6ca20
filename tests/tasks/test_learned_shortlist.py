"""A shortlist is learned from the decoder's attention while it reads given translations."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from pipelines import classifier, tokenizer, translator

from keras_transformer import Transformer, TransformerConfig, Translator
from keras_transformer.tasks.shortlists import learn_shortlist

EOS = 3
PAIRS = {
    "the big dog": "a cat runs",
    "a cat and a dog": "the cat and the big dog",
    "runs": "a dog and a cat",
    "": "a dog",
    "the cat runs": "",
    "a cat": "the big dog",
}


def counted_by_hand(head):
    """Counts pair by pair and position by position, with `attention_weights` of the model."""
    pipeline, shares, frequency = translator(), collections.Counter(), collections.Counter()
    config, tokenizer = pipeline.model.config, pipeline.source_tokenizer
    for source, target in PAIRS.items():
        read, written = (tokenizer.encode([text]).to_list()[0] for text in (source, target))
        before = [config.tokens.bos_id, *written[:-1]]
        inputs = {"source": tf.constant([read]), "target": tf.constant([before])}
        weights = pipeline.model.attention_weights(inputs)["decoder/block_0/cross_attention"]
        weights = weights.numpy()
        weights = np.mean(weights[0], axis=0) if head is None else weights[0, head]  # [T, S]
        for place, token in enumerate(written[:-1]):
            frequency[token] += 1
            row = weights[place, :-1]
            for number in sorted(range(len(row)), key=lambda n: -row[n])[:3]:
                units = round(256 * float(row[number] / row.sum()))
                if units:
                    shares[read[number], token] += units
    return shares, frequency


@pytest.mark.parametrize(("head", "best"), [slow(1, 5), (None, 2)])
def test_the_shortlist_has_the_tokens_with_most_attention(head, best):
    seen = []
    shortlist = learn_shortlist(
        translator(),
        list(PAIRS),
        list(PAIRS.values()),
        first=4,
        best=best,
        head=head,
        batch_size=4,
        progress=seen.append,
    )
    shares, frequency = counted_by_hand(head)
    order = sorted((-count, token) for token, count in frequency.items() if token >= 4)
    frequent = [token for _, token in order[:best]]
    for piece in range(30):
        row = sorted(
            (-share, target)
            for (source, target), share in shares.items()
            if source == piece and target >= 4 and target not in frequent
        )
        kept = frequent if piece == EOS else [target for _, target in row[:best]]
        found = shortlist.ids[shortlist.offsets[piece] : shortlist.offsets[piece + 1]]
        assert found.tolist() == (sorted(kept) or ([0] if piece == 29 else []))
    assert seen == [4, 6]
    assert len(shortlist.ids) > len(frequent)
    shortlist.check_sizes(30, 30)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": ["a"]}, "Received: 2 sources, 1 targets"),
        ({"sources": [], "targets": []}, "Received: 0 sources, 0 targets"),
        ({"first": 31}, "`first` must be at most the size of the vocabulary, 30. Received"),
        ({"best": 0}, "`best` must be at least 1"),
        ({"layer": 1}, "`alignment` must be a pair"),
    ],
)
def test_wrong_arguments_are_reported(changes, message):
    arguments = {"sources": ["a", "cat"], "targets": ["a", "cat"], **changes}
    with pytest.raises(ValueError, match=message):
        learn_shortlist(translator(), **arguments)


def test_a_decoder_without_attention_to_the_source_has_no_shortlist():
    options = {"mixer": "dilated_convolution", "cross_attention": "same_position"}
    config = TransformerConfig(vocab_size=30, num_layers=1, d_model=16, d_ff=8, **options)
    pipeline = Translator(Transformer(config), tokenizer())
    with pytest.raises(ValueError, match=r"attention to the source.*cross_attention=SamePosition"):
        learn_shortlist(pipeline, ["a"], ["a"])


def test_a_model_without_a_decoder_has_no_shortlist():
    with pytest.raises(
        TypeError, match="an encoder and a decoder. Received: TextClassificationPipeline"
    ):
        learn_shortlist(classifier(), ["a"], ["a"])
