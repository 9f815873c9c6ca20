"""Loaded .tflite files that return one token of a text a call."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_transformer.export.litert.packed import FixedSignature
from keras_transformer.export.litert.parallel import open_engines
from keras_transformer.export.litert.runtime import LiteRTFile
from keras_transformer.export.runtime import changed
from keras_transformer.export.streaming import OpenStreamer, ScoredText, past_name


def new_name(number: int) -> str:
    """Returns the name of the output with the heads of the tokens that a call has read."""
    return f"new_{number}"


class LiteRTStreamer(OpenStreamer, LiteRTFile):
    """A loaded .tflite file that returns one token of a text a call.

    Args:
        path, num_threads, num_parallel_calls, engines: See `LiteRTFile`.

    Raises:
        ValueError: See `LiteRTFile`.

    Attributes:
        signatures: The `FixedSignature`s. The `source_length` is the number of tokens that a call
            reads, the `target_length` that of the positions before them.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        num_threads: int | None = None,
        num_parallel_calls: int = 1,
        *,
        engines: Callable[..., list] = open_engines,
    ):
        LiteRTFile.__init__(self, path, None, num_threads, num_parallel_calls, engines=engines)
        self.take_streaming()

    def _chosen(self, search):
        return None, self._all_signatures  # the search is an input of all signatures

    def _empty_text(self):
        return KeptLiteRTText(self, self.run_signature, self.signatures, self.heads)

    def from_length(self, length: int) -> "LiteRTStreamer":
        """Returns the file without the signatures for fewer than `length` positions."""
        signatures = [one for one in self.signatures if one.target_length >= length]
        other = changed(self, signatures=signatures)
        other._text = other._empty_text()
        return other


class KeptLiteRTText(ScoredText):
    """A `KeptText` of a .tflite file.

    The heads are arrays for as many positions as the signature has that wrote the last ones.

    Args:
        opened: The `LiteRTStreamer`.
        run: Function that runs a signature: its name, then inputs by name.
        signatures: The `FixedSignature`s.
        heads: Sizes of the heads of a position: batch, groups and size, for each array.
    """

    def __init__(
        self,
        opened: LiteRTStreamer,
        run: Callable[..., dict[str, np.ndarray]],
        signatures: list[FixedSignature],
        heads: list[tuple[int, ...]],
    ):
        super().__init__(opened, None)
        self._run, self._heads, self._pad_id = run, heads, opened.target_tokenizer.pad_id
        self._signatures = sorted(
            signatures, key=lambda one: (one.target_length, -one.source_length)
        )

    def _keep_only(self, count):
        ids, heads = self._kept
        self._kept = ids[:count], heads

    def _next(self, inputs, settings):
        text = np.full([1, self._length], self._pad_id, np.int32)
        text[0, : len(inputs) - 1] = inputs[1:]
        settings = {**settings, "text": text, "count": np.array([len(inputs) - 1], np.int32)}
        while True:
            ids, heads = self._kept
            signature = self._signature(len(ids), len(inputs))
            size = signature.source_length
            start = min(len(ids), self._length - size)
            heads = self._with_room(heads, signature.target_length)
            past = {past_name(place): part for place, part in enumerate(heads)}
            begin = np.array([start], np.int32)
            outputs = self._run(signature.name, start=begin, **settings, **past)
            count = min(size, len(inputs) - start)
            for place, part in enumerate(heads):
                new = outputs[new_name(place)]
                part[:, :, start : start + count] = new[:, :, :count]
            self._kept = inputs[: start + count], heads
            if start + count == len(inputs):
                return int(outputs["token"][0]), float(outputs["score"][0])

    def _signature(self, read, count):
        """Returns the signature that reads the tokens from number `read` on, of `count` ones.

        It has the fewest positions that hold what it has read afterwards, and reads one token if
        there is only one, otherwise several.
        """
        for signature in self._signatures:
            size = signature.source_length
            written = min(read + size, count)
            if signature.target_length >= written and (size == 1) == (count - read == 1):
                return signature
        raise AssertionError("The last signatures hold all positions.")

    def _with_room(self, heads, length):
        """Returns arrays of heads for some number of positions, which hold those of `heads`."""
        if heads is not None and heads[0].shape[2] == length:
            return heads
        arrays: list[Any] = [
            np.zeros([rows, groups, length, size], np.float32) for rows, groups, size in self._heads
        ]
        for new, old in zip(arrays, heads or [], strict=False):
            common = min(length, old.shape[2])
            new[:, :, :common] = old[:, :, :common]
        return arrays
