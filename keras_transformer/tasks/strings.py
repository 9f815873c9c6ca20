"""Conversion of strings to inputs of a model, and of its outputs to strings."""

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_transformer.checks import check_count
from keras_transformer.decoding import score
from keras_transformer.decoding.hypotheses import NONE
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tasks.details import PLAIN
from keras_transformer.tasks.results import COLUMNS, COMPLETE, TOKEN_SCORES, TOKENS
from keras_transformer.tensors import Tensor
from keras_transformer.text.languages import with_front


def check_sentences(sentences, name="sentences") -> list[str]:
    """Returns strings as a list.

    Args:
        sentences: List, or another iterable, of strings.
        name: Name of the argument in errors.

    Raises:
        TypeError: If `sentences` is something else.
    """
    if isinstance(sentences, str | bytes) or not hasattr(sentences, "__iter__"):
        raise TypeError(f"`{name}` must be a list of strings. Received: {sentences!r}.")
    sentences = list(sentences)
    for number, sentence in enumerate(sentences):
        if not isinstance(sentence, str | bytes):
            raise TypeError(
                f"`{name}` must be a list of strings. Received: {sentence!r} at index {number}."
            )
    return sentences


def check_sentence(sentence) -> str:
    """Returns a string after checking that it is not empty.

    Raises:
        TypeError: If `sentence` is not a string.
        ValueError: If it is empty or white space.
    """
    if not isinstance(sentence, str):
        raise TypeError(f"`sentence` must be a string. Received: {sentence!r}.")
    if not sentence.strip():
        raise ValueError(f"`sentence` must not be empty. Received: {sentence!r}.")
    return sentence


def check_samples(sentences) -> list[str]:
    """Returns the sentences to check an export with as a list.

    Raises:
        TypeError: If `sentences` is not a list of strings.
        ValueError: If all of them are empty.
    """
    if isinstance(sentences, str) or not all(isinstance(sentence, str) for sentence in sentences):
        raise TypeError(f"`samples` must be a list of strings. Received: {sentences!r}.")
    if not any(sentence.strip() for sentence in sentences):
        raise ValueError(
            "`samples` must contain at least one sentence that is not empty, to check the "
            f"export with. Received: {len(sentences)} sentences."
        )
    return list(sentences)


def encode(tokenizer, sentences, max_length, masked=False) -> tuple[Tensor, Tensor, Tensor]:
    """Tokenises sentences for a model.

    Args:
        tokenizer: A `Tokenizer`.
        sentences: `[B]`, string.
        max_length: Maximum number of tokens, including the end token.
        masked: Whether mask tokens in sentences are recognised; see `Tokenizer.encode_masked`.

    Returns:
        Ragged token ids `[B, (S)]`, cut at `max_length`; whether each was truncated, `[B]`; and
        whether each is empty, `[B]`, for example white space of any script.
    """
    # SentencePiece needs minutes for a megabyte in an unknown script. Therefore, bytes that are
    # certainly beyond the limit are truncated first.
    limit = tokenizer.bytes_per_token * max_length
    read = tokenizer.encode_masked if masked else tokenizer.encode
    ids = read(tf.strings.substr(sentences, 0, limit))
    truncated = (ids.row_lengths() > max_length) | (tf.strings.length(sentences) > limit)
    empty = tf.equal(ids.row_lengths(), tokenizer.num_marks) & ~truncated
    words = ids[:, :-1][:, : max_length - 1]
    ends = tf.fill([tf.shape(sentences)[0], 1], tokenizer.eos_id)
    return tf.concat([words, tf.RaggedTensor.from_tensor(ends)], axis=1), truncated, empty


def encode_plain(tokenizer, sentences, max_length) -> tuple[list, np.ndarray, np.ndarray]:
    """Tokenises sentences as `encode` does, by the `PlainTokenizer` and without TensorFlow.

    Args:
        tokenizer: A `Tokenizer` that has a plain form.
        sentences: List of B strings.
        max_length: See `encode`.

    Returns:
        List of B lists of token ids; and two boolean arrays `[B]`, see `encode`.

    Raises:
        ValueError: See `utf8`.
    """
    limit = tokenizer.bytes_per_token * max_length
    texts = [*map(utf8, sentences)]
    rows = tokenizer.plain.rows([text[:limit] for text in texts])
    pairs = list(zip(rows, texts, strict=True))
    truncated = [len(row) > max_length or len(text) > limit for row, text in pairs]
    empty = [len(row) == tokenizer.num_marks for row in rows]
    ids = [[*row[:-1][: max_length - 1], tokenizer.eos_id] for row in rows]
    truncated = np.array(truncated, bool)
    return ids, truncated, np.array(empty, bool) & ~truncated


def utf8(text) -> bytes:
    """Returns a string as bytes, and bytes as they are.

    Raises:
        ValueError: If a string contains a surrogate, which no text in UTF-8 can have.
    """
    try:
        return text if isinstance(text, bytes) else text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"Each text must be a valid unicode string, without surrogates. Received: {text!r}."
        ) from None


def is_valid(text) -> bool:
    """Returns whether bytes are valid UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_utf8(strings) -> Tensor:
    """Returns which of `[B]` strings are valid UTF-8 by the rules of Python's decoder, `[B]`."""
    return tf.equal(tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8", "ignore"), strings)


def generate_strings(tokenizers, max_length, decode, sentences, blank=True) -> dict[str, Any]:
    """Encodes strings, searches, and decodes the outputs.

    A string that is not UTF-8 has empty outputs with the score `NONE`, the score of an output that
    does not exist. Lines of a file that are not UTF-8 are treated in the same way.

    Args:
        tokenizers: The `Tokenizers` of inputs and outputs.
        max_length: Maximum number of tokens of an input.
        decode: Function from ragged token ids `[B, (S)]` to a `Found`, or to token ids `[B, M, L]`
            and scores `[B, M]`.
        sentences: `[B]`, string.
        blank: Whether an empty input has an empty output, with a score of 0.

    Returns:
        Dictionary of `text`, string `[B, M]`, and `score`, float32 `[B, M]`; `truncated` and
        `empty`, boolean `[B]`, and `source`, ragged, the results of `encode`; and `found`, the
        result of `decode`.
    """
    read = read_strings(tokenizers.source, max_length, sentences, blank)
    result = decode(read["source"])
    written = write_strings(tokenizers.target, *result[:2], read["empty"], read.pop("valid"))
    return {**written, **read, "found": result}


def read_strings(tokenizer, max_length, sentences, blank=True) -> dict[str, Any]:
    """Encodes strings for a search: the first half of `generate_strings`.

    Args:
        tokenizer: The `Tokenizer` of inputs.
        max_length, sentences, blank: See `generate_strings`.

    Returns:
        Dictionary of `source`, `truncated` and `empty`, see `generate_strings`; and `valid`,
        boolean `[B]`: whether a string is UTF-8.
    """
    valid = is_utf8(sentences)  # [B]
    sentences = tf.where(valid, sentences, "")
    source, truncated, empty = encode(tokenizer, sentences, max_length)
    empty = empty & blank | ~valid
    return {"source": source, "truncated": truncated, "empty": empty, "valid": valid}


def write_strings(tokenizer, tokens, scores, empty, valid) -> dict[str, Tensor]:
    """Decodes the outputs of a search: the second half of `generate_strings`.

    Args:
        tokenizer: The `Tokenizer` of outputs.
        tokens: Token ids, int32 `[B, M, L]`.
        scores: Scores, float32 `[B, M]`.
        empty, valid: Results of `read_strings`.

    Returns:
        Dictionary of `text` and `score`; see `generate_strings`.
    """
    texts = tokenizer.decode(tf.reshape(tokens, [-1, tokens.shape[-1] or tf.shape(tokens)[-1]]))
    nothing = tf.expand_dims(empty, 1)  # [B, 1]
    return {
        "text": tf.where(nothing, "", tf.reshape(texts, tf.shape(scores))),
        "score": tf.where(nothing, tf.expand_dims(tf.where(valid, 0.0, NONE), 1), scores),
    }


def map_sorted(function, sentences, batch_size, key=len, progress=None) -> list:
    """Calls a function with batches of sentences of similar length.

    Args:
        function: Function from a list of sentences to a list of as many results.
        sentences: List of sentences.
        batch_size: Maximum number of sentences in a batch.
        key: Function that returns the length of a sentence.
        progress: Function that is called after each batch with the number of sentences so far, or
            `None`.

    Returns:
        List of the results in the order of `sentences`.
    """
    check_count("batch_size", batch_size)
    order = sorted(range(len(sentences)), key=lambda number: key(sentences[number]))
    results = [None] * len(sentences)
    for begin in range(0, len(order), batch_size):
        numbers = order[begin : begin + batch_size]
        batch = [sentences[number] for number in numbers]
        for number, result in zip(numbers, function(batch), strict=True):
            results[number] = result
        if progress is not None:
            progress(begin + len(batch))
    return results


def map_numbered(function, sentences, numbers, batch_size, progress=None) -> list:
    """Calls a function with batches of sentences of similar length, and their numbers.

    Args:
        function: Function from a list of sentences and a list of their numbers to a list of as many
            results.
        sentences: List of sentences.
        numbers: One integer for each sentence. `None`: its index.
        batch_size, progress: See `map_sorted`.

    Returns:
        List of the results in the order of `sentences`.

    Raises:
        ValueError: If the length of `numbers` is wrong.
    """
    numbers = range(len(sentences)) if numbers is None else list(numbers)
    if len(numbers) != len(sentences):
        raise ValueError(
            "`numbers` must have one number for each sentence. "
            f"Received: {len(numbers)} numbers, {len(sentences)} sentences."
        )

    def call(pairs):
        texts, chosen = zip(*pairs, strict=True)
        return function(texts, chosen)

    pairs = list(zip(sentences, numbers, strict=True))
    return map_sorted(call, pairs, batch_size, lambda pair: len(pair[0]), progress)


# Shared by all pipelines: a process crashed when threads traced several graphs at the same time.
TRACING = threading.RLock()


def traced_once(trace) -> Callable:
    """Returns a version of `trace` that traces each graph once, for all threads.

    The result is a function and not an object, so that a SavedModel does not track it.

    Args:
        trace: Function that returns a `tf.function` with an input signature, or a concrete
            function.
    """

    @functools.cache
    def traced(*arguments):
        graph = trace(*arguments)
        if hasattr(graph, "get_concrete_function"):
            graph.get_concrete_function()  # trace now: the first call is outside of the lock
        return graph

    def graph(*arguments):
        with TRACING:  # with `functools.cache` alone, every thread would trace a graph of its own
            return traced(*arguments)

    return graph


def trace_search(translator, search, n_best, details=PLAIN) -> Callable:
    """Returns a function of sentences, their languages if any, and the `inputs` of a search.

    Args:
        translator: A `Generator`.
        search: The search.
        n_best: Number M of outputs.
        details: The `Details`. Values of the constraints are the last arguments of the function.
    """
    front = _front(translator)

    def translate(sentences, *values):
        languages, values = values[: len(front)], values[len(front) :]
        chosen, given = (
            search.with_values(values[: len(search.inputs)]),
            values[len(search.inputs) :],
        )
        asked = details.asked(given)
        outputs = _translate(translator, sentences, chosen, *languages, n_best=n_best, **asked)
        result = {name: outputs[name] for name in (*COLUMNS, COMPLETE)}
        if details.token_scores:
            found = outputs["found"]
            result |= {TOKENS: found.tokens, TOKEN_SCORES: found.token_scores}
        return result

    sentences = tf.TensorSpec([None], tf.string, name="sentences")
    signature = [sentences, *front, *search.inputs, *details.inputs]
    return tf.function(translate, input_signature=signature, autograph=False)


def trace_score(translator) -> Callable:
    """Returns a function of sentences, their translations, and the languages if any."""

    def score_pairs(sources, targets, *front):
        pad_id, longest = translator.model.config.tokens.pad_id, translator.max_length
        tokenizers = translator.tokenizers.with_any_languages()
        (source, source_truncated), (target, target_truncated) = (
            _encoded(tokenizer, texts, longest, front)  # ragged [B, (S)] or [B, (T)]; [B]
            for tokenizer, texts in zip(tokenizers, (sources, targets), strict=True)
        )
        source, target = source.to_tensor(pad_id), _padded(_whole(target, target_truncated), pad_id)
        _, scores = score(translator.whole, source, target)
        real = tf.not_equal(target, pad_id)  # [B, T]
        return {
            "score": scores,
            "tokens": tf.reduce_sum(tf.cast(real, tf.int32), axis=1),
            "truncated": tf.logical_or(source_truncated, target_truncated),
        }

    signature = [*[tf.TensorSpec([None], tf.string)] * 2, *_front(translator)]
    return tf.function(score_pairs, input_signature=signature, autograph=False)


def _encoded(tokenizer, texts, longest, front):
    """Returns ragged ids with the languages in `front`, and whether each text was truncated."""
    ids, truncated, _ = encode(tokenizer, texts, longest)
    if front and tokenizer.languages is not None:
        given = front[0][:, : tokenizer.languages.size]
        ids = with_front(ids, given, tokenizer.languages, texts)
    return ids, truncated


def _front(translator):
    """Returns the specification of the ids of languages in front of a source, a list."""
    languages = translator.tokenizers.languages
    if languages is None:
        return []
    return [tf.TensorSpec([None, languages.size], tf.int32, name="languages")]


def trace_alignment(translator, search, layer, head) -> Callable:
    """Returns a function of the same arguments as that of `trace_search`, for one translation each.

    It also returns the attention weights of the translations.

    Args:
        translator: A `Translator`.
        search: A `Greedy`.
        layer: Number of the decoder's layer whose attention to the source is returned.
        head: Number of its head; `None` is the mean of all heads.
    """
    front = _front(translator)

    def align(sentences, *values):
        languages, values = values[: len(front)], values[len(front) :]
        chosen = search.with_values(values)
        asked = {"alignment": (layer, head), "constraints": None}
        outputs = _translate(translator, sentences, chosen, *languages, **asked)
        pad_id, target = (
            translator.model.config.tokens.pad_id,
            tf.squeeze(outputs["found"].tokens, 1),
        )
        return {
            **{name: outputs[name] for name in (*COLUMNS, COMPLETE)},
            "source": translator.model.read_source(outputs["source"].to_tensor(pad_id)),  # [B, S]
            "target": tf.where(tf.expand_dims(outputs["empty"], 1), pad_id, target),  # [B, L]
            "weights": tf.squeeze(outputs["found"].alignment, 1),  # [B, L, S]
        }

    signature = [tf.TensorSpec([None], tf.string), *front, *search.inputs]
    return tf.function(align, input_signature=signature, autograph=False)


def _translate(translator, sentences, search, languages=None, **asked):
    """Returns the outputs of a search with the translator's model; see `Generator.generate`."""

    def find(source):  # [B, S]
        return search(translator.searched, source, translator.options(**asked))

    return translator.generate(sentences, find, languages)


def trace_text_score(generator) -> Callable:
    """Returns a function of texts that scores each from its first token on.

    If no token begins a text for the model, or for one of several, it scores each from its second
    token on.
    """
    hides_start = generator.hides_start

    def score_texts(texts):
        config, longest = generator.model.config, generator.max_length
        ids, truncated, _ = encode(generator.target_tokenizer, texts, longest)
        ids = _whole(ids, truncated)
        text = _padded(ids, config.tokens.pad_id)  # [B, T]
        tokens = tf.cast(ids.row_lengths(), tf.int32)
        prompt = tf.fill([tf.shape(text)[0], 1], config.tokens.eos_id)  # an empty prompt
        if hides_start:
            prompt = text[:, :1]
            tokens -= tf.cast(
                (tokens > 0) & tf.not_equal(prompt[:, 0], config.tokens.eos_id), tf.int32
            )
        _, scores = score(generator.whole, prompt, text)
        return {"score": scores, "tokens": tokens, "truncated": truncated}

    return tf.function(
        score_texts, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
    )


def _whole(ids, truncated):
    """Returns ragged ids in which truncated texts have no end token."""
    lengths = ids.row_lengths() - tf.cast(truncated, tf.int64)
    return tf.RaggedTensor.from_tensor(ids.to_tensor(), lengths=lengths)


def _padded(ids, pad_id):
    """Returns ragged ids as a tensor `[B, T]` with at least one column, also without any token."""
    padded = ids.to_tensor(pad_id)
    missing = tf.cast(tf.equal(tf.shape(padded)[1], 0), tf.int32)
    return tf.pad(padded, [[0, 0], [0, missing]], constant_values=pad_id)
