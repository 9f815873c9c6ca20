"""SentencePiece inside the TensorFlow graph.

What `encode` and `decode` put into a graph is TensorFlow's own operations and the three that
TensorFlow Serving and older releases of TensorFlow Text know: `SentencepieceOp`,
`SentencepieceTokenizeOp` and `SentencepieceDetokenizeOp`.
"""

import os
import typing
import zlib
from pathlib import Path

import sentencepiece
import tensorflow as tf
import tensorflow_text

from keras_transformer.text.language_codes import split_code, split_codes
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.tokenizers.tokenizer import Tokenizer
from keras_transformer.text.unknown_pieces import UnknownPieces

MODEL, TABLE = ".model", ".ids.json"  # endings of files; the second is the table of ids
RULES = ("banned_ids", "silent_ids", "forced_eos_id")


class SentencePieceTokenizer(Tokenizer):
    """A SentencePiece model as a `Tokenizer`.

    Args:
        model: A serialised SentencePiece model, as `learn_vocabulary` returns it.
        table: A `PieceTable`, where ids are not SentencePiece's own. `None`: they are.

    Attributes:
        model: The bytes it was made from; written to a file, `load` reads them.
        table: As above.
        vocab_size: Number of pieces, the four special ones included.
        pad_id, unk_id, bos_id, eos_id: Ids of padding, of the unknown piece, and of the pieces that
            begin and end a sentence, as the model or the table defines them.

    Raises:
        TypeError: If `model` is not bytes.
        ValueError: If `model` is not a SentencePiece model, or lacks a special piece, or `table` is
            not one of its pieces.

    Example:
        tokenizer = SentencePieceTokenizer.load("runs/demo/tokenizer.model")
        tokens = tokenizer.encode(["A dog runs.", ""])  # ragged, [[..., 3], [3]]
        tokenizer.decode(tokens)  # [b"A dog runs.", b""]

    Reference: Kudo and Richardson (2018), "SentencePiece".
    """

    title = "SentencePiece"
    endings = (MODEL, TABLE)

    def __init__(self, model, table=None, name=None):
        super().__init__(name=name)
        if not isinstance(model, bytes):
            raise TypeError(
                "`model` must be the bytes of a SentencePiece model (for a file, use "
                f"`SentencePieceTokenizer.load`). Received: model of type {type(model).__name__}."
            )
        processor = _read(model, () if table else ("pad", "bos", "eos"))
        self.model = model
        self.vocab_size = processor.vocab_size()
        if table is not None:
            _check_table(table, processor)
            self.vocab_size = table.size
        # In a function: a `tf.Module` would look through a table for what it could track.
        self._table = lambda: table
        hidden = None if table is None else UnknownPieces.of(model, table)
        self._unknown = lambda: hidden
        source = processor if table is None else table
        for name in ("pad_id", "unk_id", "bos_id", "eos_id"):
            number = getattr(source, name)
            setattr(self, name, number() if callable(number) else number)

    @property
    def table(self):
        """The `PieceTable`, or `None`."""
        return self._table()

    def _pieces(self):
        # Made in every graph that uses it. TensorFlow Text's resource belongs to the operation
        # that made it, and whoever sets a random seed (`keras.utils.set_random_seed`) makes
        # TensorFlow drop the operations it ran eagerly: a tokenizer that was shared between
        # graphs would then be gone from all of them ("Resource ... does not exist").
        with tf.device("CPU:0"):  # the operations have no kernel anywhere else
            # Under a name of its own: TensorFlow shares resources of equal names, and a graph may
            # have two vocabularies.
            name = f"sentencepiece_{zlib.crc32(self.model):08x}"
            return tensorflow_text.SentencepieceTokenizer(
                model=self.model, out_type=tf.int32, add_eos=True, name=name
            )

    @classmethod
    def load(cls, path):
        """Reads a model file, such as the `tokenizer.model` of a run.

        Args:
            path: The file.

        Returns:
            A `SentencePieceTokenizer`.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If it is not a usable SentencePiece model; the message names the file.
        """
        path = Path(os.fspath(path))
        if not path.is_file():
            raise FileNotFoundError(
                f"`path` must be a SentencePiece model file. Received: path={path}, which "
                f"{'is not a file' if path.exists() else 'does not exist'}."
            )
        try:
            return cls(path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def encode(self, strings):
        """Splits strings into pieces: see `Tokenizer.encode`. The empty string gives `[eos_id]`."""
        return self._encode(tf.convert_to_tensor(strings, tf.string))

    # Behind a plain method: a `tf.function` does not keep its object alive, so that
    # `SentencePieceTokenizer.load(path).encode(...)` would fail.
    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, name="strings")], autograph=False
    )
    def _encode(self, strings):
        if self.table is None:
            return self._pieces().tokenize(strings)
        codes, strings = split_codes(strings, self.table, self.unk_id)
        tokenizer = self._pieces()
        pieces = tokenizer.tokenize(strings)
        ids = pieces.with_values(tf.gather(tf.constant(self._ids()), pieces.values))
        if self._unknown():
            ids = self._with_unknown(tokenizer, strings, ids)
        return ids if codes is None else tf.concat([codes, ids], axis=1)

    def _with_unknown(self, tokenizer, strings, ids):
        """The ids `[B, (S)]` of strings, with those of unknown pieces that the vocabulary has.

        Only strings in which there are unknown pieces are cut again, now into texts.
        """
        unknown = ids.with_values(tf.equal(ids.values, self.unk_id))  # [B, (S)]
        some = tf.reduce_any(unknown, axis=1)  # [B]
        tokenizer.out_type = tf.string  # of the same resource, whose bytes the graph has once
        texts = tokenizer.tokenize(tf.boolean_mask(strings, some)).values
        of_those = tf.gather(some, ids.value_rowids())  # [number of ids]
        texts = tf.boolean_mask(texts, tf.boolean_mask(unknown.values, of_those))
        places = tf.where(unknown.values)
        values = tf.tensor_scatter_nd_update(ids.values, places, self._unknown().look_up(texts))
        return ids.with_values(values)

    def _ids(self):
        """The model's id for each of SentencePiece's."""
        return [self.unk_id if number < 0 else number for number in self.table.ids]

    def tokenize_with_offsets(self, strings):
        """Returns pieces and their places: see `Tokenizer.tokenize_with_offsets`.

        Without a table that has codes of languages. Of the character that a piece begins with only
        because SentencePiece marks the beginning of a word, the place is that of the space.
        """
        ids = self.tokenize(strings)
        _, begins, ends = self._pieces().tokenize_with_offsets(strings)
        return ids, begins[:, :-1], ends[:, :-1]

    def decode(self, tokens):  # noqa: D102
        if isinstance(tokens, tf.RaggedTensor):
            tokens = tokens.to_tensor(self.pad_id)
        return self._decode(tf.cast(tokens, tf.int32))

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32, name="tokens")], autograph=False
    )
    def _decode(self, tokens):
        ends = tf.cast(tf.equal(tokens, self.eos_id), tf.int32)
        keep = tf.equal(tf.cumsum(ends, axis=1), 0)  # [B, T], False from the first eos on
        keep &= tf.not_equal(tokens, self.pad_id) & tf.not_equal(tokens, self.bos_id)
        if self.table is not None:
            tokens = tf.gather(tf.constant(self.table.places), tokens)
            keep &= tokens >= 0  # the others are written into no text
        lengths = tf.reduce_sum(tf.cast(keep, tf.int64), axis=1)
        pieces = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(tokens, keep), lengths, validate=False
        )
        return self._pieces().detokenize(pieces)

    def sample(self, strings, alpha, seed):
        """Cuts strings into pieces at random: see `Tokenizer.sample`.

        Args:
            strings: List of strings.
            alpha: With a BPE model, the probability to leave out a merge; with a unigram model, the
                exponent on the probability of a segmentation.
            seed: Not for several threads at a time: SentencePiece has one seed for the process.

        Reference: Provilkov et al. (2020), BPE-Dropout; Kudo (2018), Subword Regularization.
        """
        processor = sentencepiece.SentencePieceProcessor(model_proto=self.model)
        codes = [[]] * len(strings)
        if self.table is not None:
            split = [split_code(string, self.table, self.unk_id) for string in strings]
            codes, strings = [code for code, _ in split], [rest for _, rest in split]
        sentencepiece.set_random_generator_seed(seed)
        # One thread, which is new and therefore begins with that seed.
        options = {"enable_sampling": True, "alpha": alpha, "nbest_size": -1, "num_threads": 1}
        if self.table is None:
            return processor.encode(strings, **options)
        rows = processor.encode(strings, out_type=str, **options)
        ids, unknown = self._ids(), self._unknown().ids
        known = {processor.id_to_piece(place): number for place, number in enumerate(ids)}
        return [
            [*code, *(unknown.get(piece, known.get(piece, self.unk_id)) for piece in row)]
            for code, row in zip(codes, rows, strict=True)
        ]

    def pieces(self, tokens):
        """Names pieces for people to look at: see `Tokenizer.pieces`."""
        processor = sentencepiece.SentencePieceProcessor(model_proto=self.model)
        if self.table is None:
            return [processor.id_to_piece(int(token)) for token in tokens]
        names, places = self.table.names, self.table.places
        return [
            processor.id_to_piece(places[token]) if places[token] >= 0 else names.get(token, "")
            for token in map(int, tokens)
        ]

    @property
    def rules(self):
        """Rules of the table for outputs: see `Tokenizer`."""
        if self.table is None:
            return {}
        rules = {name: getattr(self.table, name) for name in RULES}
        return {name: value for name, value in rules.items() if value not in ((), None)}

    def files(self):  # noqa: D102
        files = {MODEL: self.model}
        if self.table is not None:
            files[TABLE] = self.table.to_json()
        return files

    @classmethod
    def from_files(cls, files):  # noqa: D102
        table = files.get(TABLE)
        return cls(files[MODEL], None if table is None else PieceTable.from_json(table))


class SpecialIds(typing.NamedTuple):
    """What a SentencePiece model itself defines; an id is -1 where it does not."""

    size: int
    pad_id: int
    unk_id: int
    bos_id: int
    eos_id: int

    @classmethod
    def of(cls, model):
        """Returns those of a model's bytes.

        Raises:
            ValueError: If they are no SentencePiece model.
        """
        processor = _read(model, ())
        ids = (getattr(processor, name)() for name in cls._fields[1:])
        return cls(processor.vocab_size(), *ids)


def _check_table(table, processor):
    """Raises a `ValueError` unless a table is one of the pieces of a model."""
    pieces, end = processor.vocab_size(), processor.eos_id()
    if len(table.ids) != pieces:
        raise ValueError(
            f"`table` must have an id for each of the {pieces} pieces. "
            f"Received: {len(table.ids)} ids."
        )
    if table.pad_id in table.ids and not processor.is_control(table.ids.index(table.pad_id)):
        piece = processor.id_to_piece(table.ids.index(table.pad_id))
        raise ValueError(
            "`table` must give `pad_id` to no piece of a text, which would be taken for padding. "
            f"Received: pad_id={table.pad_id} for {piece!r}."
        )
    if end < 0 or table.ids[end] != table.eos_id:
        raise ValueError(
            "`table` must give the piece that ends a text the id `eos_id`. "
            f"Received: eos_id={table.eos_id}."
        )


def _read(model, special=("pad", "bos", "eos")):
    """A `sentencepiece` processor over `model`, once it is known to be whole."""
    try:
        if not model:  # SentencePiece would take it for "no model given" and load nothing
            raise RuntimeError("it is empty")
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise ValueError(
            "`model` must be a serialised SentencePiece model; this one is damaged or something "
            f"else. Received: {len(model)} bytes."
        ) from error
    missing = [name for name in special if getattr(processor, f"{name}_id")() < 0]
    if missing:
        raise ValueError(
            "`model` must define the special pieces pad, unk, bos and eos. Received: a "
            f"SentencePiece model of {processor.vocab_size()} pieces without "
            f"{' and '.join(missing)}."
        )
    return processor
