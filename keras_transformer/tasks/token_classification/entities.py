"""Entities: spans of a raw text with their positions, from the labels of its tokens.

A text need not be split into words. Its words are those of the tokenizer: WordPiece and byte-level
BPE separate punctuation from letters, SentencePiece splits at white space only. The label of a word
is that of its first token. A span of words is an entity, whose offsets count the characters of the
text before any normalisation.
"""

import dataclasses
import json
import re
import unicodedata
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.token_classification.codec import (
    TokenClassification,
    TokenClassificationCodec,
)
from keras_transformer.tensors import Tensor

BEFORE = "\"'([{<«‹„“‚‘¿¡「『（【《〈"
AFTER = ".,;:!?…\"')]}>»›”’“‘、。！？，；：」』）】》〉"
ABBREVIATION = re.compile(r"(?:\w\.){2,}")  # such as U.S.


@dataclasses.dataclass(frozen=True)
class Entity:
    """A part of a text with a label.

    Args:
        label: Type of the span, such as `"LOC"`.
        start, end: Offsets in characters of the text: `text[start:end]` is the entity.
        score: Mean probability of the labels of its words.
        text: The entity as it is written in the text.
    """

    label: str
    start: int
    end: int
    score: float
    text: str


@dataclasses.dataclass(frozen=True)
class TextEntities(TokenClassification):
    """The entities of a text.

    Args:
        labels, truncated, probabilities: See `TokenClassification`; the words are those of the
            tokenizer.
        entities: Tuple of `Entity`s, in the order of the text.
    """

    entities: tuple[Entity, ...] = ()

    @property
    def text(self) -> str:
        """The entities as a list in JSON, as `predict --spans` writes them."""
        rows = [{**vars(one), "score": round(one.score, 5)} for one in self.entities]
        return json.dumps(rows, ensure_ascii=False)


class EntityCodec(TokenClassificationCodec):
    """A `TokenClassificationCodec` whose results are the entities of raw texts if it is asked for
    `spans`.

    Args:
        tokenizer, max_length, labels: See `TextLabelCodec`.

    Attributes:
        spans: Whether the results are `TextEntities` instead of the `TokenClassification`s of
            words that white space separates.
    """

    settings = ("spans",)
    spans = False

    def changed(self, *, spans) -> "EntityCodec":  # noqa: D102
        codec = type(self)(self.tokenizer, self.longest, self.labels)
        codec.spans = spans
        return codec

    def encode(self, sentences) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns `source`, and what `answers` needs; with `spans` the words and texts.

        `first`, `begins` and `ends`, `[B, W]`, are the index of each word's first token, -1 after
        the last word, and the bytes of the text at which the word begins and ends.
        """
        if not self.spans:
            return super().encode(sentences)
        tokenizer, marks = self.tokenizer, self.tokenizer.num_marks
        limit = tokenizer.bytes_per_token * self.longest
        read = tf.strings.substr(sentences, 0, limit)
        ids, begins, ends = tokenizer.tokenize_with_words(read)  # [B, (S)]
        longest = self.longest - marks
        truncated = (ids.row_lengths() > longest) | (tf.strings.length(sentences) > limit)
        row = ids.value_rowids()
        after = tf.equal(begins.values[1:], begins.values[:-1]) & tf.equal(row[1:], row[:-1])
        is_first = tf.concat([tf.ones_like(row, tf.bool)[:1], ~after], 0)
        places = tf.ragged.range(ids.row_lengths())  # [B, (S)]
        first = tf.ragged.boolean_mask(places, ids.with_values(is_first))  # [B, (W)]
        begins, ends = (
            tf.ragged.boolean_mask(side, ids.with_values(is_first)).to_tensor(0)
            for side in (begins, ends)
        )
        column = tf.ones([ids.nrows(), 1], tf.int32)
        end = tf.RaggedTensor.from_tensor(tokenizer.eos_id * column)
        ids = tf.concat([ids[:, :longest], end], 1)
        if tokenizer.starts_with_bos:
            ids = tf.concat([tf.RaggedTensor.from_tensor(tokenizer.bos_id * column), ids], 1)
            first += 1
        rest = {"first": first.to_tensor(-1), "begins": begins, "ends": ends}
        rest |= {"truncated": truncated, "sentences": sentences}
        return {"source": ids.to_tensor(tokenizer.pad_id)}, rest

    def answers(self, outputs, rest) -> dict[str, Any]:
        """Returns the answers for words; with `spans` also the places of the words."""
        added = {name: rest[name] for name in ("begins", "ends", "sentences") if self.spans}
        return {**super().answers(outputs, rest), **added}

    @classmethod
    def results(cls, answers) -> list[TokenClassification]:
        """Returns the `TextEntities` or the `TokenClassification` of each text."""
        classified, results = super().results(answers), []
        if "sentences" not in answers:
            return classified
        for row, result in enumerate(classified):
            places = zip(answers["begins"][row], answers["ends"][row], strict=True)
            fields = result.labels, result.truncated, result.probabilities
            found = _entities(result, answers["sentences"][row], list(places))
            results.append(TextEntities(*fields, entities=tuple(found)))
        return results


def _entities(result, encoded, places):
    """Yields the `Entity`s of a text.

    Args:
        result: The `TokenClassification` of its words.
        encoded: The text in bytes.
        places: The first byte of each word and the byte after it.
    """
    text, scores = encoded.decode("utf-8", "replace"), result.probabilities

    def offset(byte):
        return len(encoded[:byte].decode("utf-8", "replace"))

    for span in result.spans:
        (start, after), (before, end) = (
            map(offset, places[word]) for word in (span.begin, span.end - 1)
        )
        start += _front(text[start:after])
        end -= _back(text[before:end])
        while end < len(text) and unicodedata.category(text[end]).startswith("M"):
            end += 1  # an accent that the normalisation removes
        score = float(np.mean(scores[span.begin : span.end].max(axis=1)))
        yield Entity(span.type, start, end, score, text[start:end])


def _front(word):
    """Returns the number of quotes and brackets before a word; 0 if there is nothing else."""
    return len(word) - len(word.lstrip(BEFORE) or word)


def _back(word):
    """Returns the number of punctuation marks after a word; 0 if there is nothing else.

    The full stop of an abbreviation belongs to it.
    """
    bare = word.rstrip(AFTER)
    if not bare:
        return 0
    stop = ABBREVIATION.fullmatch(word[: len(bare) + 1].lstrip(BEFORE)) is not None
    return len(word) - len(bare) - stop
