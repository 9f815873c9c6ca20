"""A CTranslate2 model as a translator. The one door to `ctranslate2`."""

import json
import pathlib

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.hypotheses import NONE
from keras_transformer.export.runtime import VOCABULARY, reason
from keras_transformer.tasks.translation import encode, to_n_best, to_translations
from keras_transformer.text.tokenizer import Tokenizer

MODEL, CONFIG = "model.bin", "config.json"


class CTranslate2Translator:
    """A folder written by `export_ctranslate2`; nothing else is needed.

    Args:
        path: The folder.
        num_threads: Threads that CTranslate2 may use. `None`: its default.
        compute_type: Of `ctranslate2.Translator`: `"float32"` computes in that with the weights of
            a quantised model as well.
        **search: Options of `ctranslate2.Translator.translate_batch`, such as `beam_size`.
            Without any it searches greedily, as `greedy_decode` does.

    Raises:
        ValueError: If ctranslate2 is missing, or the folder is something else.

    Example:
        beam = {"beam_size": 4, "length_penalty": 1}  # that of `normalization="average"`
        CTranslate2Translator("model", **beam).translate_batch(["in 17 weeks"])
    """

    def __init__(self, path, num_threads=None, compute_type="default", **search):
        ctranslate2 = load_ctranslate2()
        path = pathlib.Path(path)
        for name in (MODEL, CONFIG, VOCABULARY):
            if not (path / name).is_file():
                raise ValueError(
                    f"{path} was not written by `keras-transformer export ctranslate2`, or is "
                    f"damaged: {name} is missing."
                )
        self.max_length = _max_length(path / CONFIG)
        self.tokenizer = Tokenizer.load(path / VOCABULARY)
        self._pieces = self.tokenizer.pieces(range(self.tokenizer.vocab_size))
        self._ids = {piece: number for number, piece in enumerate(self._pieces)}
        try:
            self._model = ctranslate2.Translator(
                str(path), intra_threads=num_threads or 0, compute_type=compute_type
            )
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{path} cannot be read by CTranslate2: {reason(error)}") from error
        self._search = {
            "beam_size": 1,
            "length_penalty": 0,
            "min_decoding_length": 0,
            "max_decoding_length": self.max_length,
            **search,
        }

    def translate(self, sentences):
        """Translates a list of strings as one batch.

        Returns:
            Dictionary of `translation`, `score` and `truncated` as `Translator.translate` gives
            them, and `ended`, boolean `[B]`: whether the end came before the limit.
        """
        ids, truncated, empty = self._encode(sentences)
        tokens, scores = self.decode(ids)
        return {
            "translation": tf.where(empty, "", self.tokenizer.decode(tokens)),
            "score": tf.where(empty, 0.0, scores),
            "truncated": truncated,
            "ended": tf.reduce_any(tf.equal(tokens, self.tokenizer.eos_id), axis=1),
        }

    def translate_batch(self, sentences):
        """Returns a `Translation` for each of a list of strings, decoded as one batch."""
        return to_translations(self.translate(sentences))

    def n_best_batch(self, sentences, n):
        """Returns a list of at most `n` `Translation`s for each of a list of strings.

        Raises:
            ValueError: If the beam has fewer than `n` hypotheses.
        """
        if not 1 <= n <= self._search["beam_size"]:
            raise ValueError(
                "`n` must be between 1 and the size of the beam. "
                f"Received: n={n}, beam_size={self._search['beam_size']}."
            )
        ids, truncated, empty = self._encode(sentences)
        tokens, scores = self._decode(ids, n)
        texts = self.tokenizer.decode(tokens.reshape(-1, self.max_length))
        nothing = tf.expand_dims(empty, 1)
        outputs = {
            "translation": tf.where(nothing, "", tf.reshape(texts, [-1, n])),
            "score": tf.where(nothing, 0.0, scores),
            "truncated": truncated,
        }
        return to_n_best(outputs, n)

    def _encode(self, sentences):
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        ids, truncated, empty = encode(self.tokenizer, batch, self.max_length)
        return ids.to_list(), truncated, empty

    def decode(self, sources):
        """Runs the model on token ids.

        Args:
            sources: List of lists of token ids, each ending in `eos_id`.

        Returns:
            Token ids `[B, max_length]`, int32, each row ending in `eos_id` and then padding
            (without `eos_id` where the limit came first), and scores `[B]`, float32. A source of
            `eos_id` alone gives padding alone: CTranslate2 does not translate nothing.
        """
        tokens, scores = self._decode(sources, 1)
        return tokens[:, 0], scores[:, 0]

    def _decode(self, sources, n):
        """Token ids `[B, n, max_length]` and scores `[B, n]` of the best `n` hypotheses."""
        # CTranslate2 adds the end of a source by itself.
        batch = [[self._pieces[token] for token in source[:-1]] for source in sources]
        results = self._model.translate_batch(
            batch,
            num_hypotheses=n,
            return_end_token=True,  # and counts it when it divides by the length
            return_scores=True,
            max_input_length=0,
            **self._search,
        )
        tokens = np.full((len(sources), n, self.max_length), self.tokenizer.pad_id, np.int32)
        scores = np.full((len(sources), n), NONE, np.float32)
        for rows, row_scores, result in zip(tokens, scores, results, strict=True):
            row_scores[: len(result.scores)] = result.scores
            for row, pieces in zip(rows, result.hypotheses, strict=False):  # there may be fewer
                row[: len(pieces)] = [self._ids[piece] for piece in pieces]
        return tokens, scores


def _max_length(path):
    try:
        return int(json.loads(path.read_bytes())["max_length"])
    except (ValueError, KeyError, TypeError) as error:  # neither JSON nor ours
        raise ValueError(
            f"{path} is damaged: it names no `max_length`. Export the model again."
        ) from error


def load_ctranslate2():
    """Returns the package `ctranslate2`.

    Raises:
        ValueError: If it is not installed; the message says how to.
    """
    try:
        import ctranslate2
    except ImportError as error:
        raise ValueError(
            "CTranslate2 models need the package ctranslate2. Install it with: "
            'pip install "keras-transformer-kit[ctranslate2]"'
        ) from error
    return ctranslate2
