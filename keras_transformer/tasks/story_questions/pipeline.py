"""The pipeline of questions about stories."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.checks import check_flag
from keras_transformer.options import OptionError
from keras_transformer.tasks.attention import HOPS, Attention, attentions
from keras_transformer.tasks.single_pass.text_labels import TextLabelPass
from keras_transformer.tasks.story_questions.codec import StoryAnswer, StoryCodec
from keras_transformer.tasks.story_questions.lines import pair_of
from keras_transformer.tasks.story_questions.model import StoryReader


class StoryAnswerer(TextLabelPass):
    """A trained `StoryReader` with its tokenizer.

    Args:
        model: A `StoryReader`.
        tokenizer: The `Tokenizer` of the model.
        max_length: Maximum length of a question and its story in tokens; the oldest sentences of a
            longer story are left out. `None`: the model's `max_length`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Example:
        from keras_transformer.pipelines import StoryAnswerer
        answerer = StoryAnswerer.from_run("runs/stories")
        answerer((["Ida went to the garden.", "Emil took the lamp."], "Where is Ida?"))
    """

    task = "story_questions"
    model_class = StoryReader
    request = ("story", "question")
    output = "label"
    codec_class = StoryCodec
    settings = ("hops",)
    hops = False

    def with_model(self, model: Any) -> "StoryAnswerer":  # noqa: D102
        pipeline = super().with_model(model)
        pipeline.hops = self.hops
        return pipeline

    def _set(self, name, value):
        check_flag(name, value)
        if value:
            self._require_memory()
        self.hops = value

    def _require_memory(self):
        self.require_one("have no attention weights in common")
        if self.model.config.encoder.has_blocks:
            raise OptionError("hops", "needs a memory network. Received: a Transformer.")

    def make_codec(self) -> StoryCodec:  # noqa: D102
        config = self.model.config
        size = getattr(config.encoder, "memory_size", None)
        return StoryCodec(self.tokenizers, self.max_length, config.head.labels, size)

    def answer_batch(self, examples: Sequence[Any], /) -> list:
        """Returns a `StoryAnswer` for each example, with the attention of the hops if it is set."""
        results = super().answer_batch(examples)
        if not self.hops or not results:
            return results
        inputs, _ = self.codec.encode(**self.codec.request(examples))
        weights = self._hops(inputs["source"])  # [B, K, M]
        return [
            self._with_hops(result, story, of_one)
            for result, (story, _), of_one in zip(results, examples, weights, strict=True)
        ]

    def _hops(self, source):
        """Returns the attention weights of all hops for token ids, `[B, K, M]`."""
        weights = self.model.attention_weights(source)
        return np.stack([w.numpy()[:, 0, 0] for w in weights.values()], axis=1).astype("float32")

    def _sentences(self, story):
        """Returns the sentences of a story that the memory holds."""
        sentences = [sentence for sentence in story.split("\n") if sentence.strip()]
        return sentences[-self.codec.memory_size :]

    def _with_hops(self, result, story, weights) -> StoryAnswer:
        sentences = self._sentences(story)
        hops = weights[:, : len(sentences)][:, ::-1]  # the most recent sentence comes first
        return dataclasses.replace(result, sentences=tuple(sentences), hops=hops)

    def attention(self, sentence: Any) -> dict[str, Attention]:
        """Returns the attention weights of the model for a story and a question.

        Args:
            sentence: A pair of story and question, or a line that contains both.

        Returns:
            Dictionary from `"hops"` to an `Attention` whose queries are the hops and whose keys are
            the sentences, `[1, 1, K, N]`. For a Transformer, see `TextPipeline.attention`.

        Raises:
            ValueError: If the line has another form, or the pipeline is an ensemble.
        """
        self.require_one("have no attention weights in common")
        inputs, pieces, truncated = self.reading(sentence)
        if self.model.config.encoder.has_blocks:
            return attentions(self.model.attention_weights(inputs), pieces, truncated)
        sentences = self._sentences(self._pair(sentence)[0])
        weights = self._hops(inputs)[0, :, : len(sentences)][:, ::-1]  # [K, N]
        queries = [f"hop {number}" for number in range(1, len(weights) + 1)]
        return {HOPS: Attention(HOPS, queries, sentences, weights[None, None], truncated=truncated)}

    def _pair(self, sentence):
        try:
            return pair_of(self.parse(sentence))
        except ValueError as error:
            raise ValueError(f"`sentence` {error}") from None

    def reading(self, sentence: Any) -> tuple[Any, dict[str, tuple[list[str], list[str]]], bool]:
        """Returns the tokens of question and story; see `TextPipeline.reading`."""
        story, question = self._pair(sentence)
        inputs, rest = self.codec.encode(tf.constant([story]), tf.constant([question]))
        ids = inputs["source"]  # [1, S]
        pieces = self.source_tokenizer.pieces(ids[0].numpy())
        return ids, {"encoder": (pieces, pieces)}, bool(rest["truncated"][0])
