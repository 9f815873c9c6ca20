"""Check of a .tflite file that generates text: all of its searches must agree.

Sentences must also have the same outputs in a batch as on their own.
"""

import functools
import itertools
from typing import Any

import tensorflow as tf

from keras_transformer.export import rows_alone
from keras_transformer.export.litert.apart import engines_for
from keras_transformer.export.litert.fast_tokenizer import UNKNOWN
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.litert.strings_runtime import LiteRTStringTranslator
from keras_transformer.export.parity import compare, require_identical
from keras_transformer.export.reference import Output, outputs_of, with_tokens
from keras_transformer.export.words_check import WordsCheck
from keras_transformer.free_memory import return_free_memory
from keras_transformer.tasks.strings import encode


def require_rows_as_alone(loaded, sentences, what) -> None:
    """Compares the outputs of a full batch with those of its sentences on their own.

    Every signature that takes several sentences is checked.

    Args:
        loaded: A `LiteRTTranslator`.
        sentences: List of real sentences, which are repeated if there are too few to fill a batch.
        what: Name of the file, for the error.

    Raises:
        ExportError: If the outputs differ.
    """
    ids, _, _ = encode(loaded.tokenizers.source, tf.constant(sentences), loaded.max_length)
    ids = [tuple(row) for row in ids.to_list()]
    alone = functools.cache(lambda row: loaded.decode([row]))
    for signature in loaded.signatures:
        fitting = [row for row in ids if len(row) <= signature.source_length]
        fitting = fitting if loaded.pipeline.has_source else rows_alone.equally_long(fitting)
        if signature.batch_size == 1 or not fitting:
            continue
        batch = list(itertools.islice(itertools.cycle(fitting), signature.batch_size))
        decode = functools.partial(loaded.decode, signature=signature)
        pad_id, name = loaded.tokenizers.target.pad_id, f"{what}, {signature.name}"
        rows_alone.require_as_alone(decode, alone, batch, pad_id, name)


def check_searches(
    agreement, draft, name, greedy, beam=None, n_best=1, strings=False
) -> dict[str, Any]:
    """Compares every search of a file with the same search of the model in memory.

    Args:
        agreement: The `Agreement`.
        draft: The file.
        name: Name of the file in errors.
        greedy: The greedy search of the file. `None`: it has none.
        beam: The beam of the file. `None`: it has none.
        n_best: Number of hypotheses that the beam returns.
        strings: Whether the file also takes strings.

    Returns:
        The results of `Agreement` for greedy search, those for the beam under `beam`, and those for
        the signatures that take strings under `strings`. Without greedy search, the results are
        those for the beam, without `beam`.

    Raises:
        ExportError: If a search does not agree.
    """
    reports = []
    for search, count in ((greedy, 1), (beam, n_best)):
        if search is not None:
            reports.append(_check_search(agreement, draft, name, search, count, strings))
            if strings:
                _check_edges(agreement, draft, name, search)
    (report, by_strings), *of_beam = reports
    for results, results_by_strings in of_beam:
        report["beam"] = results
        if strings:
            by_strings["beam"] = results_by_strings
    if strings:
        report["strings"] = by_strings
    return report


def _check_search(agreement, draft, name, search, n_best, strings):
    """Returns the results of a search by token ids; and by strings, `None` without them."""
    expected = agreement.expected(search, n_best)
    return_free_memory()  # that of the search in memory
    with engines_for(agreement.pipeline.model) as engines:
        loaded = LiteRTTranslator(draft, search, engines=engines)
        by_ids = _outputs_by_ids(agreement, loaded)
        report = agreement.judge(search, expected, by_ids, name)
        require_rows_as_alone(loaded, agreement.samples, name)
        if loaded.takes_words:
            words = WordsCheck(agreement, search, expected)
            for signature in loaded.signatures:
                what, longest = f"{name}, {signature.name}", signature.source_length
                words.require_ids(loaded, what, longest, signature=signature)
    if not strings:
        return report, None
    with engines_for(agreement.pipeline.model) as engines:
        loaded = LiteRTStringTranslator(draft, search, engines=engines)
        by_strings = _outputs_by_strings(agreement, loaded)
    expected = [row[:1] for row in expected]
    by_strings = with_tokens(loaded.tokenizers.target, by_strings, by_ids, expected)
    return report, agreement.judge(search, expected, by_strings, name)


def _outputs_by_ids(agreement, loaded):
    """Returns the `Output`s of a `LiteRTTranslator` for the samples."""

    def translate(batch, signature):
        def decode(ids):
            return loaded.decode(ids.to_list(), signature=signature)

        participle = agreement.pipeline.participle
        what = f"{participle} with {signature.name if signature else 'the longer signatures'}"
        return outputs_of(decode, loaded, batch, agreement.progress, what)

    return _by_every_signature(loaded, translate, agreement.samples)


def _outputs_by_strings(agreement, loaded):
    """Returns the `Output`s of a `LiteRTStringTranslator` for the samples, without tokens."""

    def translate(batch, signature):
        results = loaded.answer_batch(batch, signature)
        return [[Output(result.text, result.score, result.truncated)] for result in results]

    return _by_every_signature(loaded, translate, agreement.samples)


def _check_edges(agreement, draft, name, search):
    """Requires the same translations by strings as by token ids for unusual inputs.

    An empty sentence, one that is too long and one with an unknown character are seldom among real
    sentences. Their translations must also be equal if the model is quantised.
    """
    sentence = next(filter(str.strip, agreement.samples))
    edges = ["", f"{sentence} " * agreement.pipeline.max_length, f"{sentence} {UNKNOWN}"]
    with engines_for(agreement.pipeline.model) as engines:
        by_ids, by_strings = (
            load(draft, search, engines=engines).answer_batch(edges)
            for load in (LiteRTTranslator, LiteRTStringTranslator)
        )
    tokenizer = agreement.pipeline.target_tokenizer
    require_identical(compare(edges, by_ids, by_strings, tokenizer), name)


def _by_every_signature(loaded, translate, sentences):
    """Translates sentences, which are divided among the signatures so that all of them run."""
    ids, _, _ = encode(loaded.tokenizers.source, tf.constant(sentences), loaded.max_length)
    lengths = ids.row_lengths().numpy()
    turns = zip(lengths, itertools.cycle(loaded.signatures))  # noqa: B905  (one is endless)
    chosen = [
        signature if length <= signature.source_length else None for length, signature in turns
    ]
    outputs = [None] * len(sentences)
    for signature in dict.fromkeys(chosen):
        numbers = [number for number, other in enumerate(chosen) if other == signature]
        results = translate([sentences[number] for number in numbers], signature)
        for number, result in zip(numbers, results, strict=True):
            outputs[number] = result
    return outputs
