"""Loaded .onnx files that return one token of a text a call."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from keras_transformer.decoding import Greedy, Sample
from keras_transformer.decoding.next_token import CONTROLS, GREEDY
from keras_transformer.decoding.search import check_search
from keras_transformer.export.metadata import METADATA, reading
from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.export.onnx.runtime import OnnxTranslator
from keras_transformer.export.runtime import Decoded
from keras_transformer.export.source_ids import check_source_ids
from keras_transformer.tasks.streams.kept_text import KeptText
from keras_transformer.text.chat_template import ChatTemplate

STREAMING = "streaming"  # key of the metadata


def past_name(number: int) -> str:
    """Returns the name of an input with heads of earlier tokens."""
    return f"past_{number}"


def present_name(number: int) -> str:
    """Returns the name of the output with the heads of all tokens."""
    return f"present_{number}"


class OnnxStreamer(OnnxTranslator):
    """A loaded .onnx file that returns one token of a text a call.

    Args:
        model: The `OnnxModel`.

    Raises:
        ValueError: If the file holds another kind of model or is damaged.

    Attributes:
        search: Any `Greedy` or `Sample`; that of the export is the default.
        chat_template: The `ChatTemplate` of an instruct model, or `None`.
        hides_start: See `TextGenerator.hides_start`.
    """

    opened_with = ("greedy", "sample", "max_output", "repetition_penalty")
    any_greedy = True

    def __init__(self, model: OnnxModel):
        super().__init__(model)
        with reading(self.path, METADATA):
            about = self.metadata[STREAMING]
            template = about["chat_template"]
            self.chat_template = None if template is None else ChatTemplate.from_dict(template)
            self.hides_start = bool(about["hides_start"])
            nothing = [np.zeros([a, b, 0, c], np.float32) for a, b, c in about["heads"]]
        bos_id = self.tokenizers.target.bos_id
        self._text = KeptOnnxText(model, bos_id, self.target_tokenizer.eos_id, nothing)

    @property
    def target_tokenizer(self) -> Any:
        """The `Tokenizer`."""
        return self.tokenizers.target

    def _checked(self, search):
        check_search(search, Greedy, Sample)
        return search

    def kept_text(self) -> "KeptOnnxText":
        """Returns a `KeptText` of the model, which has no tokens yet."""
        return self._text.another()

    def streamer(self, count: int) -> Any:  # noqa: D102
        from keras_transformer.tasks.streams.streamer import Streamer

        return Streamer(self, count)

    def find(
        self, sources: list[list[int]], n: int = 1, numbers: Sequence[int] | None = None
    ) -> Decoded:
        """Continues token ids, one text after the other; see `OnnxTranslator.find`."""
        check_source_ids(sources, self.tokenizers.source)
        self._check_lengths(sources)
        shape, pad_id = (len(sources), 1), self.tokenizers.target.pad_id
        tokens = np.full([*shape, self.max_length], pad_id, np.int32)
        scores, complete = np.zeros(shape, np.float32), np.zeros(shape, bool)
        numbers = range(len(sources)) if numbers is None else numbers
        text = self.kept_text()
        for row, (source, number) in enumerate(zip(sources, numbers, strict=True)):
            prompt, found = source[:-1], []  # without its end
            for token, score in text.scored(prompt, self.search, number):
                found.append(token)
                scores[row, 0] += score
            tokens[row, 0, : len(prompt) + len(found)] = [*prompt, *found]
            complete[row, 0] = found[-1] == self.tokenizers.target.eos_id
        return Decoded(tokens, scores, complete)


class KeptOnnxText(KeptText):
    """A `KeptText` of an .onnx file.

    Args:
        model: The `OnnxModel`.
        bos_id, eos_id: Ids of the tokens that begin and end a text.
        nothing: The heads of no token, a list of arrays.
    """

    def __init__(self, model: OnnxModel, bos_id: int, eos_id: int, nothing: list[np.ndarray]):
        super().__init__(bos_id, int(model.metadata["max_length"]), nothing)
        self._model, self._eos_id = model, eos_id

    def _generate(self, prompt, search, number):
        for token, _ in self.scored(prompt, search, number):
            yield token

    def scored(self, prompt: Sequence[int], search: Any, number: int) -> Iterator:
        """Yields the tokens of `generate`, each with its log-probability."""
        inputs, limit = [self._bos_id, *prompt], self._limit(prompt, search)
        ids, heads = self._kept
        common = self._common(inputs)
        if common < len(ids):
            heads = [np.ascontiguousarray(part.numpy()[:, :, :common]) for part in heads]
        controls = {**_controls(search, number), "limit": np.array([limit], np.int32)}
        while True:
            text = np.array([inputs[1:]], np.int32)
            past = {past_name(place): part for place, part in enumerate(heads)}
            outputs = self._model.run_values({"text": text, **past, **controls})
            heads = [outputs[present_name(place)] for place in range(len(heads))]
            self._kept = [*inputs], heads
            token = int(outputs["token"].numpy()[0])
            inputs.append(token)
            yield token, float(outputs["score"].numpy()[0])
            if token == self._eos_id or len(inputs) - 1 >= limit:
                return


def _controls(search, number):
    """Returns the settings of a search of a text with a number, as inputs by name."""
    sample = search
    if isinstance(search, Greedy):
        sample = Sample(repetition_penalty=search.repetition_penalty)
    values = {spec.name: getattr(sample, spec.name) for spec in CONTROLS}
    values["seed"] = [sample.seed, number]
    if isinstance(search, Greedy):
        values["temperature"] = GREEDY
    return {
        spec.name: np.array(
            np.broadcast_to(values[spec.name], spec.shape), spec.dtype.as_numpy_dtype
        )
        for spec in CONTROLS
    }
