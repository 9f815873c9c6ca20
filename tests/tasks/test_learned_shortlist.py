"""A shortlist is learned from what the decoder attends to while it reads given translations."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from pipelines import classifier, translator

from keras_transformer.tasks.shortlists import learn_shortlist

PAIRS = {
    "the big dog": "a cat runs",
    "a cat and a dog": "the cat and the big dog",
    "runs": "a dog and a cat",
    "": "a dog",
    "the cat runs": "",
    "a cat": "the big dog",
}


def counted_by_hand(head):
    """Pair by pair and position by position, with `attention_weights` of the model."""
    pipeline, counts = translator(), collections.Counter()
    config, tokenizer = pipeline.model.config, pipeline.source_tokenizer
    for source, target in PAIRS.items():
        read, written = (tokenizer.encode([text]).to_list()[0] for text in (source, target))
        before = [config.bos_id, *written[:-1]]
        inputs = {"source": tf.constant([read]), "target": tf.constant([before])}
        weights = pipeline.model.attention_weights(inputs)["decoder/block_0/cross_attention"]
        weights = np.mean(weights[0], axis=0) if head is None else weights[0, head]  # [T, S]
        for place, token in enumerate(written[:-1]):
            if len(read) > 1:
                counts[read[int(np.argmax(weights[place, :-1]))], token] += 1
    return counts


@pytest.mark.parametrize(("head", "best"), [(None, 50), (1, 50), (None, 1)])
def test_the_lists_hold_what_attends_most_often(head, best):
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
    counts = counted_by_hand(head)
    assert len(counts) > 10
    for piece in range(30):
        row = sorted(
            (-count, target)
            for (source, target), count in counts.items()
            if source == piece and target >= 4
        )
        found = shortlist.ids[shortlist.offsets[piece] : shortlist.offsets[piece + 1]]
        assert found.tolist() == sorted(target for _, target in row[:best])
    assert seen == [4, 6]
    shortlist.check_sizes(30, 30)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": ["a"]}, "Received: 2 sources, 1 targets"),
        ({"sources": [], "targets": []}, "Received: 0 sources, 0 targets"),
        ({"first": 31}, "`first` must be at most the number of pieces, 30. Received: first=31"),
        ({"best": 0}, "`best` must be at least 1"),
        ({"layer": 1}, "`alignment` must be a pair"),
    ],
)
def test_wrong_arguments_are_named(changes, message):
    arguments = {"sources": ["a", "cat"], "targets": ["a", "cat"], **changes}
    with pytest.raises(ValueError, match=message):
        learn_shortlist(translator(), **arguments)


def test_a_model_without_a_decoder_has_none():
    with pytest.raises(TypeError, match="an encoder and a decoder. Received: Classifier"):
        learn_shortlist(classifier(), ["a"], ["a"])
