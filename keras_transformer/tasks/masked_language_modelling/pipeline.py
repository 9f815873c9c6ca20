"""The pipeline of masked language modelling: the words that masks in a text may hide."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.masked_language_modelling.masking import require_mask
from keras_transformer.tasks.masked_language_modelling.model import MaskedLanguageModel
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.result import Choice, log_of
from keras_transformer.tasks.single_pass.text import MODULES, RULE, TextCodec, quoted
from keras_transformer.tasks.single_pass.text_pass import TextPass
from keras_transformer.tasks.strings import encode
from keras_transformer.tensors import Tensor

WORDS = 5  # for each mask, as in Hugging Face's pipeline
NONE = -1  # id of no token


@dataclasses.dataclass(frozen=True)
class Filling(Choice):
    """The words that a model predicts for the masks of a text.

    Args:
        words: For each of the M masks that were read, a tuple of the K most probable tokens, the
            best first. A token that continues a word is written as in the vocabulary, such as
            `##ing`; in byte-level BPE one that begins a word has a space before it.
        probabilities: Array `[M, K]`, float32.
        truncated: Whether the text was longer than the model's limit and was truncated.
    """

    words: tuple
    probabilities: np.ndarray = dataclasses.field(compare=False, repr=False)  # ty: ignore[incompatible-attribute-override]
    truncated: bool

    @property
    def text(self) -> str:
        """The words, each with its probability, mask by mask, separated by tabs."""
        pairs = [
            f"{_on_one_line(word)}\t{probability:.4f}"
            for row in zip(self.words, self.probabilities, strict=True)
            for word, probability in zip(*row, strict=True)
        ]
        return "\t".join(pairs)

    @property
    def choice(self) -> str:
        """The words without their probabilities."""
        return "\t".join(_on_one_line(word) for words in self.words for word in words)

    @property
    def best(self) -> list[str]:
        """List of the most probable word of each mask, without spaces around it."""
        return [words[0].strip() for words in self.words]

    def score_of(self, other: Any) -> float:
        """Returns the mean log-probability of another result's best words; 0 if there is no mask.

        If this result lacks such a word, the probability of its own last word is used instead: the
        missing word is at most as probable.
        """
        rows = zip(self._shares(), other.words, self.probabilities, strict=True)
        chosen = [shares.get(words[0], row[-1]) for shares, words, row in rows]
        return float(np.mean(log_of(chosen))) if chosen else 0.0

    def is_tied(self, other: Any, tolerance: float) -> bool:
        """Returns whether every word has nearly the same probability in both results.

        If one result lacks a word, the probability of that result's last word is used instead.
        """
        if len(self.words) != len(other.words):
            return False
        for ours, theirs in ((self, other), (other, self)):
            rows = zip(ours.words, ours.probabilities, theirs._shares(), strict=True)
            for number, (words, row, shares) in enumerate(rows):
                last = theirs.probabilities[number][-1]
                gaps = [p - shares.get(word, last) for word, p in zip(words, row, strict=True)]
                if max(gaps) > 2 * tolerance:
                    return False
        return True

    def _shares(self):
        """Returns the probabilities of the words of each mask, a list of dictionaries."""
        rows = zip(self.words, self.probabilities, strict=True)
        # Reversed, because two tokens may have the same text: the more probable one counts.
        return [dict(zip(words[::-1], row[::-1], strict=True)) for words, row in rows]


class MaskCodec(TextCodec):
    """Converts texts with masks to inputs of a model, and its outputs to words.

    Args:
        tokenizer: See `TextCodec`. It must have a mask token.
        max_length: See `TextCodec`.
    """

    verb, number, score_unit = "fill", "probability", "nats per mask"
    rule = RULE.format(
        "At each mask, `tokens` are the most probable ids, the best first. At any other position, "
        "and everywhere in any other row, ids are -1 and probabilities 0."
    )
    nothing = {"probabilities": 0.0, "tokens": NONE}

    def __init__(self, tokenizer, max_length):
        super().__init__(tokenizer, max_length)
        require_mask(self.tokenizer)
        self.mask = self.tokenizer.mask

    def parse(self, line) -> str:
        """Returns a line unchanged.

        Raises:
            ValueError: If it has no mask.
        """
        if self.mask not in line:
            raise ValueError(f"must have a mask, {self.mask}. Received: none.")
        return line

    def check_samples(self, examples) -> list:
        """Returns texts to check an export with; if a text has no mask, one replaces a word."""
        texts = super().check_samples(examples)
        return [self._with_mask(text, number) for number, text in enumerate(texts)]

    def _with_mask(self, text, number):
        words = text.split()
        if self.mask in text or not words:
            return text
        words[number % len(words)] = self.mask
        return " ".join(words)

    def encode(self, sentences) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns `source` and, as the rest, `places` and `truncated`.

        `places`, `[B, M]`, are the positions of the masks, -1 after the last one; `truncated`,
        `[B]`, whether the text was truncated.
        """
        ids, truncated, _ = encode(self.tokenizer, sentences, self.longest, masked=True)
        is_mask = ids.with_values(tf.equal(ids.values, self.tokenizer.mask_id))
        positions = tf.ragged.range(ids.row_lengths())  # [B, (S)]
        places = tf.ragged.boolean_mask(positions, is_mask.with_row_splits_dtype(tf.int64))
        rest = {"places": places.to_tensor(NONE), "truncated": truncated}
        return {"source": ids.to_tensor(self.tokenizer.pad_id)}, rest

    def outputs(self, prediction) -> dict[str, Tensor]:
        """Returns `tokens`, int32 `[..., K]`, and their `probabilities`, the most probable first.

        Args:
            prediction: Probabilities of all tokens, `[..., V]`.
        """
        probabilities, tokens = tf.math.top_k(prediction, min(WORDS, self.tokenizer.vocab_size))
        return {"probabilities": probabilities, "tokens": tokens}

    def named(self, outputs) -> dict[str, Any]:
        """Adds `words`, the texts of the tokens, empty where there is no mask."""
        tokens = tf.convert_to_tensor(outputs["tokens"])  # [B, S, K]
        words = tf.gather(tf.constant(self.tokenizer.words()), tf.maximum(tokens, 0))
        return {**outputs, "words": tf.where(tokens >= 0, words, "")}

    def answers(self, outputs, rest) -> dict[str, Any]:
        """Returns `words` `[B, M, K]`, empty after the last mask, and their `probabilities`."""
        named, places = self.named(outputs), rest["places"]  # [B, M]
        read = tf.expand_dims(places >= 0, 2)  # [B, M, 1]
        at_masks = {
            name: tf.gather(named[name], tf.maximum(places, 0), batch_dims=1)
            for name in ("words", "probabilities")
        }
        return {
            "words": tf.where(read, at_masks["words"], ""),
            "probabilities": tf.where(read, at_masks["probabilities"], 0.0),
            "masks": tf.reduce_sum(tf.cast(places >= 0, tf.int32), axis=1),
            "truncated": rest["truncated"],
        }

    @classmethod
    def results(cls, answers) -> list[Filling]:
        """Returns a `Filling` for each text."""
        columns = (answers[name] for name in ("words", "probabilities", "masks", "truncated"))
        return [
            Filling(
                tuple(tuple(word.decode() for word in row) for row in words[:count]),
                np.asarray(probabilities[:count]),
                bool(cut),
            )
            for words, probabilities, count, cut in zip(*columns, strict=True)
        ]

    def line_metadata(self) -> dict[str, Any]:  # noqa: D102
        return {"mask": self.mask}

    @classmethod
    def of_lines(cls, metadata) -> "MaskCodec":  # noqa: D102
        return _Lines(metadata["mask"])

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        values = super().metadata()
        tokens = {**values["tokens"], "mask": self.tokenizer.mask_id}
        return {**values, "tokens": tokens, "mask": self.mask}

    def guide(self, example) -> Guide:  # noqa: D102
        texts, strings = self.notes()
        return Guide(
            purpose="Predicts the words that masks in texts hide, with its tokenizer inside",
            request={"sentences": quoted([example])},
            axes={
                "source": "B, S",
                **dict.fromkeys(("words", "probabilities"), "B, M, K"),
                "tokens": "B, S, K",
            },
            notes=[
                texts,
                f"M: number of masks, `{self.mask}`, in the text with most of them; others have "
                "empty words at their end. `masks` is the number of each text. With token ids, "
                "there are words for each token, and S takes the place of M: those of tokens that "
                f"are not {self.tokenizer.mask_id}, the mask, are empty.",
                f"K: the {WORDS} most probable words, the best first.",
                strings,
            ],
            modules=MODULES,
        )

    def quality(self, results, references) -> dict[str, float]:
        """Returns `accuracy`, the percentage of texts whose best words equal the reference.

        Args:
            results: List of `Filling`s.
            references: List of the correct words, separated by white space.
        """
        pairs = zip(results, references, strict=True)
        return {"accuracy": 100 * float(np.mean([r.best == words.split() for r, words in pairs]))}


class _Lines(MaskCodec):
    """A `MaskCodec` without a tokenizer: it reads the lines of text for a SavedModel."""

    def __init__(self, mask):
        self.mask = mask


class MaskFiller(TextPass):
    """A trained `MaskedLanguageModel` with its tokenizer.

    Args:
        model: A `MaskedLanguageModel`.
        tokenizer: The `Tokenizer` of the model, which must have a mask token.
        max_length: Maximum length of a text in tokens, including its end token; longer texts are
            truncated. `None`: the model's `max_length`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.
    """

    task = "masked_language_modelling"
    model_class = MaskedLanguageModel
    output = "words"
    codec_class = MaskCodec

    @classmethod
    def parse(cls, line: str) -> str:
        """Returns a line unchanged: `check_samples` masks a word if there is no mask."""
        return line

    def predict(self, **inputs: Tensor) -> dict[str, Tensor]:  # noqa: D102
        return self._best(**inputs)

    def respond(self, **request: Tensor) -> dict[str, Tensor]:  # noqa: D102
        inputs, rest = self.codec.encode(**request)
        return self.codec.answers(self._best(**inputs), rest)

    def probabilities(self, source: Tensor, places: Tensor) -> Tensor:
        """Returns the probabilities of all tokens at some positions of texts, in a graph.

        Args:
            source: Token ids `[B, S]`, int32.
            places: N pairs of text and position, int64 `[N, 2]`.

        Returns:
            float32 `[N, V]`; the mean of the models of an ensemble.
        """
        logits = []
        for model in self.models:
            hidden = tf.gather_nd(model.hidden_states(source, training=False), places)  # [N, E]
            logits.append(model.output_weights.project(tf.expand_dims(hidden, 0))[0])  # [N, V]
        return _mean(logits)

    def _best(self, source):
        """Returns the most probable tokens at each mask, `[B, S, K]`, and their probabilities."""
        is_mask = tf.equal(source, self.source_tokenizer.mask_id)  # [B, S]
        nothing = self.codec.nothing.items()
        if source.shape.is_fully_defined():  # for runtimes that need static shapes throughout
            shares = _mean([model(source, training=False) for model in self.models])  # [B, S, V]
            outputs = self.codec.outputs(shares)  # [B, S, K]
            at_mask = tf.expand_dims(is_mask, 2)  # [B, S, 1]
            return {name: tf.where(at_mask, outputs[name], value) for name, value in nothing}
        places = tf.where(is_mask)  # [N, 2]
        outputs = self.codec.outputs(self.probabilities(source, places))  # [N, K]
        best = {}
        for name, value in nothing:
            shape = tf.concat([tf.shape(source), tf.shape(outputs[name])[1:]], 0)
            empty = tf.fill(shape, tf.cast(value, outputs[name].dtype))  # [B, S, K]
            best[name] = tf.tensor_scatter_nd_update(empty, places, outputs[name])
        return best


def _mean(logits):
    """Returns the mean of the probabilities of several models, float32."""
    shares = [tf.nn.softmax(tf.cast(values, tf.float32)) for values in logits]
    return shares[0] if len(shares) == 1 else tf.add_n(shares) / len(shares)


def _on_one_line(word):
    """Returns a word without characters that would end its field or line."""
    return "".join(" " if character in "\t\r\n" else character for character in word)
