"""`Tokenizer` made of operators that LiteRT can run: those of TensorFlow Text for LiteRT."""

from collections.abc import Callable

import tensorflow as tf
import tensorflow_text

from keras_transformer.export.errors import ExportError
from keras_transformer.tensors import Tensor
from keras_transformer.text.sentencepiece_package import sentencepiece, sentencepiece_model_pb2
from keras_transformer.text.tokenizers import SentencePieceTokenizer

UNKNOWN = "\ue000"  # a private-use character, which no vocabulary has
_SPACE = "▁"  # as SentencePiece writes a space
_SURFACE = " \u2047 "  # as it writes an unknown token
_Piece = sentencepiece_model_pb2.ModelProto.SentencePiece
_KINDS = {_Piece.NORMAL, _Piece.UNKNOWN, _Piece.CONTROL}


class FastTokenizer:
    """`Tokenizer` of a single sentence, with tensors of fixed shape.

    LiteRT has no operators for text. TensorFlow Text has some, which must be registered in the
    runtime. They support SentencePiece's unigram models with the usual treatment of spaces.

    Args:
        tokenizer: The `Tokenizer`.
        max_length: Maximum source length of the `Translator`, in tokens, including the end of the
            sentence.

    Attributes:
        pad_id, eos_id: Ids of padding and of the end of a sentence, as in the `Tokenizer`.

    Raises:
        ExportError: If the operators do not support the vocabulary.
    """

    def __init__(self, tokenizer, max_length):
        if tokenizer.title != SentencePieceTokenizer.title:
            raise ExportError(
                "`tokenizer` needs a SentencePiece vocabulary. Received: a vocabulary "
                f"of {tokenizer.title}. Export without the tokenizer."
            )
        if tokenizer.table is not None:
            raise ExportError(
                "`tokenizer` needs a vocabulary whose ids are SentencePiece's own; this one has "
                "a table of different ids. Export without the tokenizer."
            )
        proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model)
        _check(proto)  # otherwise the operators crash the process or return other tokens
        self._tokenizer = tokenizer
        self.pad_id, self.eos_id = tokenizer.pad_id, tokenizer.eos_id
        self._limit = tokenizer.bytes_per_token * max_length
        self._space = [entry.piece for entry in proto.pieces].index(_SPACE)
        self._encoder = tensorflow_text.FastSentencepieceTokenizer(tokenizer.model)
        # The operator drops a space at the beginning of a text, even that of an unknown token. This
        # additional token begins with two.
        proto.pieces.add(piece=_SPACE + _SURFACE.replace(" ", _SPACE), type=_Piece.NORMAL)
        self._decoder = tensorflow_text.FastSentencepieceTokenizer(proto.SerializeToString())

    def encode(self, sentence, length) -> tuple[Tensor, Tensor, Tensor]:
        """Tokenises a sentence with the same result as `keras_transformer.tasks.strings.encode`.

        Args:
            sentence: String, `[1]`.
            length: Maximum number S of tokens including the end of the sentence, an integer.

        Returns:
            Token ids `[1, S]`, int32, which end in `eos_id` and are then padded; true if the
            sentence was truncated, `[1]`; and true if there is nothing to translate, `[1]`.
        """
        splitter = tensorflow_text.ByteSplitter()
        size = tf.cast(splitter.split(sentence).row_splits[1:], tf.int32)  # [1], in bytes
        end = tf.expand_dims(tf.minimum(size, self._limit), 1)  # [1, 1]
        begin = splitter.split_by_offsets(sentence, tf.zeros([1, 1], tf.int32), end).flat_values
        words = self._encoder.tokenize(tf.reshape(begin, [1])).flat_values  # [n]
        count = self._count(words)  # [1]
        truncated = (count >= length) | (size > self._limit)
        empty = tf.equal(count, 0) & ~truncated
        count = tf.minimum(count, length - 1)
        places = tf.range(length)
        words = tf.concat([words, tf.zeros([length], tf.int32)], axis=0)[:length]  # [S]
        rest = tf.where(tf.equal(places, count), self.eos_id, self.pad_id)
        source = tf.where(places < count, tf.reshape(words, [length]), rest)
        return tf.reshape(source, [1, length]), truncated, empty

    def _count(self, words):
        """Returns the number of tokens, `[1]`, without the spaces at the end.

        Unlike SentencePiece, TensorFlow Text makes a token of the character "▁" at the end of a
        text.
        """
        places = tf.range(1, tf.shape(words)[0] + 1)
        places = tf.where(tf.equal(words, self._space), 0, places)
        return tf.reduce_max(tf.concat([[0], places], axis=0), keepdims=True)

    def decode(self, tokens) -> Tensor:
        """Decodes tokens to a text with the same result as `Tokenizer.decode`.

        Args:
            tokens: Token ids `[T]`, int32, with a static T.

        Returns:
            The text, a string `[1]`.
        """
        known = self._tokenizer
        length = tokens.shape[0]
        nothing = tf.equal(tokens, self.pad_id) | tf.equal(tokens, known.bos_id)
        nothing |= tf.equal(tokens, self._space)
        begin = _length_of_start(nothing)
        end = _length_of_start(tf.not_equal(tokens, self.eos_id))
        tokens = tf.gather(tokens, tf.minimum(tf.range(length) + begin, length - 1))
        unknown = tf.equal(tokens, known.unk_id) & tf.equal(tf.range(length), 0)
        tokens = tf.where(unknown, known.vocab_size, tokens)
        splits = tf.stack([0, tf.maximum(end - begin, 0)])
        pieces = tf.RaggedTensor.from_row_splits(tokens, splits, validate=False)
        return tf.reshape(self._decoder.detokenize(pieces), [1])

    def require_same_pieces(self, sentences) -> None:
        """Compares the tokens with those of the `Tokenizer`, for sentences and for every token.

        Raises:
            ExportError: If they differ. The message names the first text with other tokens.
        """
        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto(self._tokenizer.model)
        pieces = map(processor.id_to_piece, range(self._tokenizer.vocab_size))
        texts = [*sentences, *(f"{piece}{UNKNOWN}".replace(_SPACE, " ") for piece in pieces)]
        expected = self._tokenizer.encode(texts).to_list()
        for text, ours, theirs in zip(
            texts, expected, self._encoder.tokenize(texts).to_list(), strict=True
        ):
            while theirs and theirs[-1] == self._space:  # see `_count`
                theirs.pop()
            if ours[:-1] != theirs:
                raise ExportError(
                    "`tokenizer` needs the same tokens as in training: TensorFlow Text's operators "
                    f"for LiteRT split {text!r} into {theirs}, not {ours[:-1]}. Export without the "
                    "tokenizer."
                )


def operators() -> list[Callable]:
    """Returns a list of functions that register TensorFlow Text's operators with LiteRT."""
    from tensorflow_text.core.pybinds import tflite_registrar  # ty: ignore[import-not-found]

    return tflite_registrar.SELECT_TFTEXT_OPS


def _length_of_start(condition):
    """Returns the number of elements at the start of `[T]` before the first that is false."""
    failed = tf.cumsum(tf.cast(~condition, tf.int32))
    return tf.reduce_sum(tf.cast(tf.equal(failed, 0), tf.int32))


def _check(proto):
    trainer, normalizer = proto.trainer_spec, proto.normalizer_spec
    if trainer.model_type != trainer.UNIGRAM:
        kind = trainer.ModelType.Name(trainer.model_type)
        raise ExportError(
            "`tokenizer` needs a vocabulary that is a unigram model: TensorFlow Text's operators "
            f"for LiteRT do not support {kind} models such as this one. Train a run with "
            'vocabulary.model_type = "unigram", or export without the tokenizer.'
        )
    kinds = {_Piece.Type.Name(piece.type) for piece in proto.pieces if piece.type not in _KINDS}
    spaces = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
    reasons = {
        f"has pieces of type {', '.join(sorted(kinds))}": kinds,
        "has no rules of normalisation": not normalizer.precompiled_charsmap,
        "has rules for decoding": proto.denormalizer_spec.precompiled_charsmap,
        "treats spaces differently": trainer.treat_whitespace_as_suffix
        or not all(getattr(normalizer, name) for name in spaces),
        "has no piece for a space": all(piece.piece != _SPACE for piece in proto.pieces),
        f"decodes the unknown token to {trainer.unk_surface!r}": trainer.unk_surface != _SURFACE,
    }
    for reason, applies in reasons.items():
        if applies:
            raise ExportError(
                "`tokenizer` needs a vocabulary that TensorFlow Text's operators for LiteRT "
                f"support. This vocabulary {reason}. Export without the tokenizer."
            )
