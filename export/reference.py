"""Searches of the model in memory, with which the searches of an export are compared."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.hypotheses import exists
from keras_transformer.export.extent import counted
from keras_transformer.export.place import silent
from keras_transformer.export.searches import ModelSearch, traced
from keras_transformer.tasks.results import Generated
from keras_transformer.tasks.strings import generate_strings, map_sorted

BATCH_SIZE = 32


@dataclasses.dataclass(frozen=True)
class Output(Generated):
    """A generated text with its tokens.

    Args:
        tokens: Tuple of token ids up to and including `eos_id`, or without it if the output reached
            the limit; empty for a hypothesis that does not exist. `None`: not known.
        guessed: Whether the tokens were derived from the text. The search may have generated other
            tokens with the same text, or no `eos_id` because it reached the limit.
    """

    tokens: tuple | None = None
    guessed: bool = False


class Reference:
    """A search of the model in memory.

    Args:
        pipeline: A `Translator`.
        search: A `Greedy` or `Beam`. `None`: the greedy search of the pipeline.
        n_best: Number M of hypotheses for each sentence.
        progress: See `export_saved_model`.
    """

    def __init__(self, pipeline, search=None, n_best=1, progress=silent):
        search = pipeline.greedy if search is None else search
        self.search, self._progress, self._pipeline = search, progress, pipeline
        self._decode = traced(ModelSearch(pipeline, search, n_best))

    def outputs(self, sentences) -> list:
        """Returns a list of M `Output`s, the best first, for each of a list of strings."""
        pipeline = self._pipeline
        pad_id = pipeline.source_tokenizer.pad_id

        def decode(ids):
            found = self._decode(ids.to_tensor(pad_id))
            return found["tokens"], found["scores"]

        progress, search = self._progress, type(self.search).__name__.lower()
        what = f"{pipeline.participle} with the model in memory ({search})"
        return outputs_of(decode, pipeline, sentences, progress, what)


def outputs_of(decode, pipeline, sentences, progress=silent, what="generating") -> list:
    """Generates outputs for a list of strings with a search that takes token ids.

    Args:
        decode: Function of ragged token ids `[B, (S)]`. Returns token ids `[B, M, L]` and scores
            `[B, M]`.
        pipeline: A `Generator` or a loaded export, whose `tokenizers`, `max_length` and `blank` are
            used.
        sentences: List of strings.
        progress: See `export_saved_model`.
        what: Name of the stage, for `progress`.

    Returns:
        List of M `Output`s for each sentence.
    """

    def answer(batch):
        outputs = generate_strings(
            pipeline.tokenizers, pipeline.max_length, decode, tf.constant(batch), pipeline.blank
        )
        names = ("text", "score", "truncated", "empty")
        columns = (outputs[name].numpy() for name in names)
        rows = zip(np.asarray(outputs["found"][0]), *columns, strict=True)
        return [_outputs(pipeline.tokenizers.target, *row) for row in rows]

    return map_sorted(counted(answer, progress, what, len(sentences)), sentences, BATCH_SIZE)


def tokens_of(tokenizer, row) -> tuple[Any, ...]:
    """Returns the tokens of a row `[L]` as a tuple, up to `eos_id` or the padding."""
    row = np.asarray(row)
    ends = np.flatnonzero(row == tokenizer.eos_id)
    length = ends[0] + 1 if len(ends) else np.count_nonzero(row != tokenizer.pad_id)
    return tuple(row[:length].tolist())


def with_tokens(tokenizer, outputs, *known) -> list:
    """Fills in missing tokens.

    They are copied from a known output with the same text; otherwise the text is tokenised.

    Args:
        tokenizer: A `Tokenizer`.
        outputs: List of `Output`s for each sentence.
        *known: Outputs of other searches for the same sentences, with tokens.

    Returns:
        `outputs` with tokens.
    """
    filled = []
    for number, row in enumerate(outputs):
        tokens = {
            output.text: output.tokens
            for rows in reversed(known)
            for output in reversed(rows[number])
        }
        filled.append([_filled(tokenizer, output, tokens) for output in row])
    return filled


def best_of(outputs) -> list:
    """Returns the first output of each sentence."""
    return [best for best, *_ in outputs]


def _filled(tokenizer, output, known):
    if output.tokens is not None:
        return output
    nothing = output.text == "" and output.score == 0  # the translation of an empty sentence
    if nothing or not exists(output.score):
        return dataclasses.replace(output, tokens=())
    tokens = known.get(output.text)
    if tokens is None:
        tokens = tuple(tokenizer.encode([output.text]).to_list()[0])
    return dataclasses.replace(output, tokens=tokens, guessed=True)


def _outputs(tokenizer, tokens, texts, scores, truncated, empty):
    """Returns the `Output`s of one sentence."""
    if empty:
        return [Output("", 0.0, bool(truncated), ()) for _ in texts]
    return [
        Output(
            text.decode("utf-8", "replace"),
            float(score),
            bool(truncated),
            tokens_of(tokenizer, row) if exists(score) else (),
        )
        for text, score, row in zip(texts, scores, tokens, strict=True)
    ]
