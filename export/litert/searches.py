"""Functions of a .tflite file that search: with the loop in the graph, or unrolled into steps."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from keras_transformer.decoding import Beam, Greedy, SearchOptions, Unrolled
from keras_transformer.decoding.unrolled import STATE
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert import kernels
from keras_transformer.export.litert.packed import FixedSignature
from keras_transformer.export.unrolled import UnrolledSearch, names_of
from keras_transformer.export.words import WordInputs
from keras_transformer.layers.kernels import write
from keras_transformer.tasks.memory import cache_memory
from keras_transformer.tensors import Tensor

# Cache sizes to grow through: of searches with one hypothesis, of beams, and of searches with more
# than `MANY` hypotheses in all. Every stage makes a file larger by 50 to 200 kB, but with many
# hypotheses most of a step's time goes into reading and copying the cache. The stages of a beam
# hold only entries in use, see `CompactStaged`. Static int8 has a single stage: with two parts of a
# cache, the converter would round the attention weights, see `finish_static_int8`.
SINGLE, BEAM = (16, 128, 192, 384), (16, 64, 128, 192, 384)
OF_MANY = (8, 16, 32, 64, 128, 192, 384)
MANY = 8
# Bytes of the largest cache from which a beam drops entries: LiteRT holds what the loops inside a
# loop read several times. With OPUS-MT's shape, 32 sentences and a beam of 4, a cache of 200 MB, a
# file took 833 instead of 597 MB of memory and the same time.
LARGEST = 2**26
LOOPS = {"While", "StatelessWhile"}  # operations of TensorFlow


class LoopSearches:
    """Searches whose loops are in the file: one function for each signature.

    Args:
        beam: The `Beam` of the signatures with a beam. `None`: default settings.
        greedy: The `Greedy` of the others, whose maximum length a signature states. `None`: default
            settings.
        grows: Whether the cache grows in stages.
        words: The `WordInputs` of the signatures with a beam and of the others. `None`: there are
            none.
        token_scores: See `SearchOptions`.

    Attributes:
        write: Function that writes into a cache: see `Kernels`.
    """

    write = staticmethod(kernels.write)

    def __init__(
        self,
        beam: Beam | None = None,
        greedy: Greedy | None = None,
        grows: bool = True,
        words: tuple[WordInputs, WordInputs] | None = None,
        token_scores: bool = False,
    ):
        self._kinds, self._grows = (beam or Beam(), greedy or Greedy()), grows
        self._words, self._token_scores = words, token_scores

    def functions(self, pipeline, signature, within) -> Iterator[tuple[str, Any]]:
        """Yields the names of the functions of a signature that takes token ids, and the functions.

        Args:
            pipeline: A `Generator`.
            signature: The `FixedSignature`.
            within: See `convert_copy`.
        """
        find = self.find_of(pipeline)(signature)
        function, words = _of_words(pipeline, find, signature, self._words)
        yield signature.name, trace(within(function), signature, _source(signature), more=words)

    def find_of(self, pipeline) -> Callable[..., Callable[..., Any]]:
        """Returns a function from a signature to its search, from inputs to a `Found`."""
        return lambda signature: functools.partial(
            _find,
            *(pipeline, self._kinds, self._cache_stages(signature), signature),
            token_scores=self._token_scores,
            compact=_compacts(pipeline, signature),
        )

    def described(self, signature) -> FixedSignature:
        """Returns the signature with what a program needs to run it."""
        return signature

    def _cache_stages(self, signature):
        if not self._grows:
            return ()
        if signature.batch_size * (signature.beam_size or 1) > MANY:
            return OF_MANY
        return BEAM if signature.beam_size else SINGLE


class UnrolledSearches:
    """Searches whose loops are in the program that runs the file: two functions for each signature.

    A cache is written by a select. By its source, LiteRT's delegate for GPUs runs no update of a
    slice, which would divide the graph of a step at each layer.

    Args:
        beam, greedy, words, token_scores: See `LoopSearches`.

    Attributes:
        write: See `LoopSearches`.
    """

    write = staticmethod(write)

    def __init__(
        self,
        beam: Beam | None = None,
        greedy: Greedy | None = None,
        words: tuple[WordInputs, WordInputs] | None = None,
        token_scores: bool = False,
    ):
        self._kinds, self._token_scores = (beam or Beam(), greedy or Greedy()), token_scores
        self._words = words
        self._found: dict[str, UnrolledSearch] = {}

    def functions(self, pipeline, signature, within) -> Iterator[tuple[str, Any]]:
        """Yields the names of both functions of a signature, and the functions.

        Args:
            pipeline, signature, within: See `LoopSearches.functions`.

        Raises:
            ExportError: If the model has loops of its own.
        """
        unrolled = Unrolled()
        find = functools.partial(
            _find, pipeline, self._kinds, unrolled, signature, token_scores=self._token_scores
        )
        function, words = _of_words(pipeline, find, signature, self._words)
        source = _source(signature)
        encode, step = names_of(signature.name)

        def one_step(state, **inputs):
            return unrolled.step(function, state, **inputs)

        start = functools.partial(unrolled.begin, function)
        begin = trace(within(start), signature, source, more=words)
        require_no_loops(begin, encode)
        given = begin.structured_outputs
        yield encode, begin
        state = [tf.TensorSpec(one.shape, one.dtype, name) for name, one in given.items()]
        after = trace(within(_with_state(one_step)), signature, source, more=[*words, *state])
        self._found[signature.name] = UnrolledSearch.of(
            signature.name, given, after.structured_outputs
        )
        yield step, after

    def described(self, signature) -> FixedSignature:
        """Returns the signature with its `UnrolledSearch`, after its functions were made."""
        return dataclasses.replace(signature, unrolled=self._found[signature.name])


def require_no_loops(function, name) -> None:
    """Raises an `ExportError` if a concrete function has a loop."""
    graph = function.graph.as_graph_def()
    nodes = (graph.node, *(inner.node_def for inner in graph.library.function))
    if any(node.op in LOOPS for these in nodes for node in these):
        raise ExportError(
            f"`unrolled` cannot be used, because {name} has a loop: a recurrent network in the "
            "model reads one position of its input after another."
        )


def _with_state(step):
    """Returns a function whose inputs by name are those of a search and the tensors of a state."""

    def function(**inputs):
        state = {name: inputs.pop(name) for name in [*inputs] if name.startswith(f"{STATE}_")}
        return step(state, **inputs)

    return function


def with_integers(function) -> Callable[..., dict[str, Tensor]]:
    """Returns a function whose boolean outputs are int32: LiteRT.js has no boolean tensors."""

    def integers(**inputs):
        return {
            name: tf.cast(value, tf.int32) if value.dtype == tf.bool else value
            for name, value in function(**inputs).items()
        }

    return integers


def trace(function, signature, first, limit="max_length", more=()) -> Any:
    """Returns the concrete function of a signature, a graph in which every shape is known.

    With unknown shapes, the tokens from XNNPACK depended on what else the process had run.

    Args:
        function: Function of the inputs, by name.
        signature: The `FixedSignature`.
        first: The `tf.TensorSpec` of the first input.
        limit: Name of a beam's input that limits the length of outputs.
        more: The `tf.TensorSpec`s of further inputs.
    """
    inputs = [first, *more]
    if signature.beam_size is not None:
        # Not scalars: not every runtime has tensors without an axis.
        inputs.append(tf.TensorSpec([signature.batch_size], tf.int32, name=limit))
        inputs.append(tf.TensorSpec([1], tf.float32, name="length_penalty"))
    function = tf.function(function, autograph=False)
    return function.get_concrete_function(**{spec.name: spec for spec in inputs})


def _of_ids(pipeline, find):
    """Returns the function from token ids of a file with a search."""
    _, of_ids = pipeline.signatures(find)
    return with_integers(of_ids.lenient)


def _of_words(pipeline, find, signature, words):
    """Returns the function from token ids of a signature, and the specs of its words.

    `find` is as in `_of_ids`, `words` as in `LoopSearches`.
    """
    if words is None:
        return _of_ids(pipeline, find), ()
    words = words[signature.beam_size is None]
    function = words.taken_by(_of_ids(pipeline, functools.partial(find, words=words)))
    return function, words.specs(signature.batch_size)


def _compacts(pipeline, signature):
    """Returns the value of `SearchOptions.compact`."""
    config, width = pipeline.model.config, signature.beam_size
    if width is None or config.decoder.has_state:
        return True
    rows = signature.batch_size * width
    return cache_memory(config, rows, signature.target_length) <= LARGEST


def _source(signature):
    shape = signature.batch_size, signature.source_length
    return tf.TensorSpec(shape, tf.int32, name="source")


def _find(
    pipeline,
    kinds,
    cache_stages,
    signature,
    source,
    words=None,
    token_scores=False,
    compact=True,
    **numbers,
):
    """Returns the `Found` of a signature; `numbers` are the inputs besides the source.

    `kinds` are the `Beam` and the `Greedy` of the file, `words` the `WordInputs`.

    The search must not be the last operation of a graph: if an output comes from the loop itself,
    the CompiledModel API and browsers return garbage. `Signature.lenient` adds a selection of rows
    at the end of the graph.
    """
    beam, greedy = kinds
    given = {} if words is None else {name: numbers.pop(name) for name in words.names}
    search: Any = dataclasses.replace(greedy, max_length=signature.max_length)
    if signature.beam_size is not None:
        unlimited = {"extra_length": None, "max_length": None, "max_length_ratio": None}
        numbers = {**unlimited, **numbers}  # the program limits lengths: see `beam_inputs`
        search = dataclasses.replace(beam, size=signature.beam_size, **numbers)

    def find(constraints):
        options = SearchOptions(
            n_best=signature.n_best,
            cache_length=signature.target_length,
            alignment=signature.alignment,
            cache_stages=cache_stages,
            compact=compact,
            constraints=constraints,
            token_scores=token_scores,
        )
        return search(pipeline.searched, source, options)

    if words is None:
        found = find(pipeline.built_in)
    elif isinstance(cache_stages, Unrolled):  # the state of its step always has that of the rules
        found = find(words.constraints(given))
    else:
        found = words.searched(find, given)
    if signature.beam_size is None:  # squeezed here, so that the converter removes both operations
        found = found._make(None if field is None else tf.squeeze(field, 1) for field in found)
    return found
