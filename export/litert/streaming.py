"""Contents of a .tflite file that returns one token of a text a call, for streams and chats."""

import dataclasses
import functools
import itertools
from typing import Any

import tensorflow as tf

from keras_transformer.decoding import Sample
from keras_transformer.decoding.next_token import NextToken, control_specs
from keras_transformer.export.agreement import Agreement
from keras_transformer.export.contents import about_generation, default_languages
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.apart import engines_for
from keras_transformer.export.litert.contents import FixedContents
from keras_transformer.export.litert.convert import convert_copy, finish, search_kernels
from keras_transformer.export.litert.int4_blocks import store_in_int4_blocks
from keras_transformer.export.litert.packed import FixedSignature
from keras_transformer.export.litert.streamed import LiteRTStreamer, new_name
from keras_transformer.export.streaming import about_streaming, check_streamed, past_name

PART = 32  # tokens of a prompt that a call reads
FIRST = 64  # positions of the smallest signatures; each has four times those of the one before


class LiteRTStreaming(FixedContents):
    """The next token of a language model, after keys and values that the program keeps.

    There are two signatures for each number of positions: one reads a part of a prompt, the other
    one token.

    Args:
        pipeline: A `TextGenerator` in float32.
        samples, limits, options, progress, left_out: See `LiteRTGeneration`.

    Raises:
        ExportError: If the file would be in `"int8_static"`.
        ValueError: If the search is a `Beam`, an option is wrong, or see `NextToken`.
    """

    def __init__(self, pipeline, samples, limits, options, progress, left_out):
        super().__init__(pipeline, samples, limits, options, progress)
        if self.quantize == "int8_static":
            raise ExportError("int8_static needs a model with an encoder; int8 needs none.")
        if self.batch_sizes != [1]:
            raise ValueError(
                "`batch_sizes` must be (1,) with `streaming`, which continues one text a call. "
                f"Received: batch_sizes={options.batch_sizes}."
            )
        self._search = pipeline.search if options.search is None else options.search
        check_streamed(self._search)
        self._options = options
        self._nothing = NextToken(pipeline.model, pipeline.max_length).nothing
        self._agreement = Agreement(pipeline, samples, self.limits, self.progress, left_out)
        sizes = dict.fromkeys((min(PART, pipeline.max_length), 1))
        self.signatures = [
            FixedSignature(f"next_{size}_{length}", 1, size, length)
            for length, size in itertools.product(self.lengths, sizes)
        ]

    def usual_lengths(self) -> list[int]:  # noqa: D102
        lengths, longest = [FIRST * 4**power for power in range(10)], self.pipeline.max_length
        return [length for length in lengths if length < longest] + [longest]

    def convert(self, path) -> bytes | bytearray:  # noqa: D102
        self.progress(f"converting {len(self.signatures)} signatures")
        in_blocks = self.quantize == "int4"
        quantize = "int8" if in_blocks else self.quantize
        kernels_of = functools.partial(search_kernels, self.pipeline.model, quantize, None, True)
        options = self.converter, self.pipeline, quantize, kernels_of, self._functions
        try:
            content = convert_copy(*options)
            return finish(store_in_int4_blocks(content) if in_blocks else content, quantize)
        except ExportError as error:
            raise ExportError(f"{path}: {error}") from error

    def _functions(self, pipeline, within):
        """Yields the names of the signatures and concrete functions; see `convert_copy`."""
        step = NextToken(pipeline.model, pipeline.max_length)
        for signature in self.signatures:
            function = within(functools.partial(_next_token, step, signature.source_length))
            specs = {spec.name: spec for spec in self._specs(signature.target_length)}
            traced = tf.function(function, autograph=False)
            yield signature.name, traced.get_concrete_function(**specs)

    def _specs(self, length):
        """Returns the `tf.TensorSpec`s of the inputs of a signature with `length` positions."""
        heads = [
            tf.TensorSpec([*part.shape[:2], length, part.shape[3]], part.dtype, past_name(number))
            for number, part in enumerate(self._nothing)
        ]
        numbers = [tf.TensorSpec([1], tf.int32, name) for name in ("count", "start", "limit")]
        text = tf.TensorSpec([1, self.pipeline.max_length], tf.int32, "text")
        return [text, *numbers, *control_specs(), *heads]

    def about(self) -> dict[str, Any]:  # noqa: D102
        return {
            **about_generation(self.pipeline),
            **default_languages(self.pipeline, self._options),
            **about_streaming(self.pipeline, self._nothing, self._search),
        }

    def check(self, draft, path) -> dict[str, Any]:
        """Compares the texts, which are divided among the signatures so that all run."""
        participle = self.pipeline.participle
        self.progress(f"{participle} {len(self.samples)} texts with every signature")
        search = self._search
        if isinstance(search, Sample) and not self.limits.is_exact:
            search = dataclasses.replace(search, temperature=0.0)  # chance is no loss of quality
        expected = self._agreement.expected(search, 1)
        with engines_for(self.pipeline.model) as engines:
            loaded = LiteRTStreamer(draft, engines=engines).with_search(search)
            exported = self._agreement.exported(
                loaded, f"{participle} with the file", _by_every_signature(loaded, self.lengths)
            )
        return self._agreement.judge(search, expected, exported, path)

    def open(self, draft) -> None:  # noqa: D102
        with engines_for(self.pipeline.model) as engines:
            LiteRTStreamer(draft, engines=engines).answer_batch(self.samples[:1])


def _by_every_signature(loaded, lengths):
    """Returns a function like `loaded.decode` with signatures for more positions in turn."""
    turns = itertools.cycle([loaded.from_length(length) for length in lengths])

    def decode(rows):
        pairs = [next(turns).decode([row], numbers=[place]) for place, row in enumerate(rows)]
        return tuple(tf.concat(parts, axis=0).numpy() for parts in zip(*pairs, strict=True))

    return decode


def _next_token(step, size, text, count, start, limit, **others):
    """Returns the outputs of a signature: see `NextToken.padded`.

    A condition must not be the last operation of a graph, as a loop: see `LoopSearches`.
    """
    names = [spec.name for spec in control_specs()]
    controls = {name: others.pop(name) for name in names}
    past = [others[past_name(number)] for number in range(len(others))]
    token, score, new = step.padded(text, count, past, start, limit, controls, size)
    outputs = {"token": tf.maximum(token, 0), "score": tf.minimum(score, 0.0)}
    return {**outputs, **{new_name(number): part for number, part in enumerate(new)}}
