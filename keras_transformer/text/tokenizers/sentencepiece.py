"""SentencePiece inside the TensorFlow graph.

`encode` and `decode` use only operations of TensorFlow and three of TensorFlow Text that TensorFlow
Serving and older releases also have: `SentencepieceOp`, `SentencepieceTokenizeOp` and
`SentencepieceDetokenizeOp`.
"""

import dataclasses
import functools
import os
import zlib
from pathlib import Path

from keras_transformer.lazy_tensorflow import graph_method, tensorflow_text, tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.languages import Languages
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.plain import PlainSentencePiece, PlainTokenizer, unused_ids
from keras_transformer.text.ragged_rows import repeated, row_ids, row_sums
from keras_transformer.text.sentencepiece_model import (
    Processor,
    processor_of,
    read_model,
    with_table,
)
from keras_transformer.text.sentencepiece_package import sentencepiece
from keras_transformer.text.smaller_model import PLACEHOLDER, needed_pieces, smaller_model
from keras_transformer.text.string_table import StringTable
from keras_transformer.text.text_steps import PREFIXES, TextSteps
from keras_transformer.text.tokenizers.tokenizer import BYTES_PER_TOKEN, Tokenizer, strings_spec
from keras_transformer.text.white_space import words_of
from keras_transformer.text.written_codes import split_code, split_codes

BEGIN = "\u2581"  # begins a piece that follows a space
MASK = "<mask>"  # the mask token of a model without a table, if it is a control symbol there
MODEL, TABLE = ".model", ".ids.json"  # endings of the files of the model and of the table of ids


class SentencePieceTokenizer(Tokenizer):
    """A `Tokenizer` with a SentencePiece model.

    Args:
        model: Bytes of a SentencePiece model, such as `learn_vocabulary` returns.
        table: A `PieceTable` if the token ids are not those of SentencePiece. `None`: they are.
        name: Name of the `tf.Module`.

    Attributes:
        model: See above. `load` reads a file of these bytes.
        table: See above.
        vocab_size: Number of tokens, including special ones.
        pad_id, unk_id, bos_id, eos_id: Ids of padding, of an unknown token, and of the tokens that
            begin and end a text, as defined by the model or the table.

    Raises:
        TypeError: If `model` is not bytes.
        ValueError: If `model` is not a SentencePiece model or lacks a special piece, or if `table`
            does not fit it.

    Example:
        tokenizer = SentencePieceTokenizer.load("runs/demo/tokenizer.model")
        tokens = tokenizer.encode(["A dog runs.", ""])  # ragged, [[..., 3], [3]]
        tokenizer.decode(tokens)  # [b"A dog runs.", b""]

    Reference: Kudo and Richardson (2018), "SentencePiece".
    """

    title = "SentencePiece"
    endings = (MODEL, TABLE)

    def __init__(self, model: bytes, table: PieceTable | None = None, name: str | None = None):
        super().__init__(name)
        if not isinstance(model, bytes):
            raise TypeError(
                "`model` must be the bytes of a SentencePiece model (for a file, use "
                f"`SentencePieceTokenizer.load`). Received: model of type {type(model).__name__}."
            )
        processor = processor_of(model, () if table else ("pad", "bos", "eos"))
        self.model = model
        self.vocab_size = processor.vocab_size()
        if table is not None:
            table.check(processor)
            self.vocab_size = table.size
            self.starts_with_bos = table.starts_with_bos
        # Wrapped in a function, because a `tf.Module` searches its attributes for variables.
        self._table = lambda: table
        source = processor if table is None else table
        for name in ("pad_id", "unk_id", "bos_id", "eos_id"):
            number = getattr(source, name)
            setattr(self, name, number() if callable(number) else number)
        self.mask_id = _mask_of(processor) if table is None else table.mask_id

    @property
    def table(self) -> PieceTable | None:
        """The `PieceTable`, or `None`."""
        return self._table()

    @functools.cached_property
    def _unknown(self):
        ids = {} if self.table is None else unused_ids(self.model, self.table)
        return StringTable(ids, exact=False)

    @functools.cached_property
    def bytes_per_token(self) -> int:
        """Maximum number of bytes of a text that become one token."""
        processor = Processor(model_proto=self.model)
        pieces = map(processor.id_to_piece, range(processor.vocab_size()))
        return max(BYTES_PER_TOKEN, *(len(piece.encode()) for piece in pieces))

    @property
    def languages(self) -> Languages | None:  # noqa: D102
        return None if self.table is None else self.table.languages

    def with_languages(  # noqa: D102
        self, source: str | None = None, target: str | None = None
    ) -> "Tokenizer":
        table = self.table
        if table is None or table.languages is None:
            return super().with_languages(source, target)
        languages = table.languages.replaced(source, target)
        return type(self)(self.model, dataclasses.replace(table, languages=languages))

    @property
    def normalizes(self) -> bool:
        """`True` if the SentencePiece model changes texts, apart from writing spaces as marks."""
        spec = read_model(self.model).normalizer_spec
        changes = spec.precompiled_charsmap or spec.remove_extra_whitespaces
        return bool(changes or spec.add_dummy_prefix)

    def without_prefix(self) -> "Tokenizer":  # noqa: D102
        return self._bare

    @functools.cached_property
    def _bare(self):
        table = self.table
        if table is None or {*PREFIXES}.isdisjoint(table.steps):
            return self
        rest = tuple(step for step in table.steps if step not in PREFIXES)
        return type(self)(self.model, dataclasses.replace(table, steps=rest))

    def _pieces(self):
        # Created anew in every graph. The resource of TensorFlow Text belongs to the operation that
        # created it, and setting a random seed (`keras.utils.set_random_seed`) makes TensorFlow
        # drop the operations that ran eagerly. A tokenizer shared between graphs would then be
        # missing in all of them ("Resource ... does not exist").
        with tf.device("CPU:0"):  # the operations have kernels on the CPU only
            # The name depends on the model, because TensorFlow shares resources of equal names and
            # a graph may have two vocabularies.
            name = f"sentencepiece_{zlib.crc32(self.model):08x}"
            return tensorflow_text.SentencepieceTokenizer(
                model=with_table(self.model), out_type=tf.int32, add_eos=True, name=name
            )

    @classmethod
    def load(cls, path: str | os.PathLike) -> "SentencePieceTokenizer":
        """Reads a model file, such as the `tokenizer.model` of a run.

        Args:
            path: Path of the file.

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

    @functools.cached_property
    def plain(self) -> PlainTokenizer | None:  # noqa: D102
        return PlainSentencePiece.of(self)

    def encode(self, strings: Tensor) -> "tf.RaggedTensor":
        """Encodes strings: see `Tokenizer.encode`. The empty string becomes `[eos_id]`."""
        ids = self._encode(tf.convert_to_tensor(strings, tf.string))
        if not self.starts_with_bos:
            return ids
        begins = tf.fill([ids.nrows(), 1], self.bos_id)
        return tf.concat([tf.RaggedTensor.from_tensor(begins), ids], axis=1)

    def tokenize(self, strings: Tensor) -> "tf.RaggedTensor":  # noqa: D102
        return self.encode(strings)[:, self.num_marks - 1 : -1]

    def tokenize_with_words(
        self, strings: Tensor
    ) -> "tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]":
        """Returns tokens and the offsets of their words: see `Tokenizer.tokenize_with_words`.

        Words are what white space separates. A word without tokens is left out.
        """
        strings = tf.convert_to_tensor(strings, tf.string)
        row, begins, ends = words_of(strings)  # [W]
        texts = tf.strings.substr(tf.gather(strings, row), begins, ends - begins)
        pieces = self.tokenize(texts)  # [W, (P)]
        repeats = pieces.row_lengths()
        rows = tf.size(strings, tf.int64)
        return tuple(
            tf.RaggedTensor.from_value_rowids(x, repeated(row, repeats), rows, validate=False)
            for x in (pieces.values, repeated(begins, repeats), repeated(ends, repeats))
        )

    @graph_method(strings_spec)
    def _encode(self, strings):
        if self.table is None:
            return self._pieces().tokenize(strings)
        codes, strings = split_codes(strings, self.table, self.unk_id)
        strings = TextSteps(self.table.steps)(self._with_code(strings))
        tokenizer = self._pieces()
        pieces = tokenizer.tokenize(strings)
        ids = pieces.with_values(tf.gather(tf.constant(self._ids()), pieces.values))
        if self._unknown:
            ids = self._with_unknown(tokenizer, strings, ids)
        if self.languages is not None and self.languages.codes is None:
            front = tf.tile([self.languages.prefix], [tf.shape(strings)[0], 1])  # [B, 1 or 2]
            return tf.concat([tf.RaggedTensor.from_tensor(front), ids], axis=1)
        return ids if codes is None else tf.concat([codes, ids], axis=1)

    def _with_code(self, strings):
        """Returns strings `[B]` that begin with the codes of their languages, if those are text."""
        languages = self.languages
        if languages is None or languages.codes is None:
            return strings
        if languages.target is None:
            known = languages.codes.are_in(strings)
            chosen = tf.debugging.Assert(tf.reduce_all(known), [languages.missing("target")])
            with tf.control_dependencies([chosen]):
                strings = tf.identity(strings)
        return languages.codes.written(strings, languages.with_any().target)

    def _with_unknown(self, tokenizer, strings, ids):
        """Returns ids `[B, (S)]` with those of the unknown pieces that the vocabulary has.

        Only strings with unknown pieces are tokenised again, to get the texts of these pieces.
        """
        unknown = ids.with_values(tf.equal(ids.values, self.unk_id))  # [B, (S)]
        affected = row_sums(tf.cast(unknown, tf.int32)) > 0  # [B]
        tokenizer.out_type = tf.string  # same resource, so that the graph has its bytes only once
        texts = tokenizer.tokenize(tf.boolean_mask(strings, affected)).values
        in_affected = tf.gather(affected, row_ids(ids))  # [number of ids]
        texts = tf.boolean_mask(texts, tf.boolean_mask(unknown.values, in_affected))
        places = tf.where(unknown.values)
        numbers = self._unknown.look_up(texts)
        numbers = tf.where(numbers < 0, self.unk_id, numbers)
        values = tf.tensor_scatter_nd_update(ids.values, places, numbers)
        return ids.with_values(values)

    def _fronts(self, strings):
        """Returns the ids in front of each string, and the strings without codes of their own."""
        languages = self.languages
        if languages is None or languages.codes is None:
            front = [] if languages is None else languages.prefix
            return [[self.bos_id] if self.starts_with_bos else front] * len(strings), strings
        pairs = [languages.codes.split(string) for string in strings]
        pairs = [
            (code, rest) if code in languages.ids else (None, string)
            for (code, rest), string in zip(pairs, strings, strict=True)
        ]
        fronts = [languages.replaced(target=code).prefix for code, _ in pairs]
        return fronts, [rest for _, rest in pairs]

    def _ids(self):
        """Returns the model's id of each SentencePiece id."""
        ids = () if self.table is None else self.table.ids
        return [self.unk_id if number < 0 else number for number in ids]

    def tokenize_with_offsets(
        self, strings: Tensor
    ) -> "tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]":
        """Returns tokens and their offsets: see `Tokenizer.tokenize_with_offsets`.

        Not for a table with codes in texts or with steps. SentencePiece's mark at the beginning of
        a word has the offset of the space before the word.
        """
        ids = self.tokenize(strings)
        _, begins, ends = self._pieces().tokenize_with_offsets(strings)
        return ids, begins[:, :-1], ends[:, :-1]

    def join(self, tokens: Tensor, keep: Tensor) -> Tensor:  # noqa: D102
        if self.table is not None:
            tokens = tf.gather(tf.constant(self.table.places), tokens)
            keep &= tokens >= 0  # other tokens are not text
        lengths = tf.reduce_sum(tf.cast(keep, tf.int64), axis=1)
        pieces = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(tokens, keep), lengths, validate=False
        )
        texts = self._pieces().detokenize(pieces)
        if self.table is not None and not {*PREFIXES}.isdisjoint(self.table.steps):
            texts = tf.strings.regex_replace(texts, "^ ", "")
        return texts

    def sample(self, strings: Tensor, alpha: float, seed: int) -> list[list[int]]:
        """Tokenises strings at random: see `Tokenizer.sample`.

        Not thread-safe, because SentencePiece has one seed for the process.

        Args:
            strings: List of strings.
            alpha: For a BPE model, the probability that a merge is skipped; for a unigram model,
                the exponent of the probability of a segmentation.
            seed: Integer from 0 to below 2**31.

        Reference: Provilkov et al. (2020), BPE-Dropout; Kudo (2018), Subword Regularization.
        """
        processor = Processor(model_proto=self.model)
        codes, strings = self._fronts(strings)
        if self.table is not None and self.table.codes:
            split = [split_code(string, self.table, self.unk_id) for string in strings]
            codes, strings = [code for code, _ in split], [rest for _, rest in split]
        if self.table is not None and self.table.steps:
            steps = TextSteps(self.table.steps)
            strings = [x.decode() for x in steps(tf.constant(strings, tf.string)).numpy()]
        sentencepiece.set_random_generator_seed(seed)
        # A new thread begins with this seed.
        options = {"enable_sampling": True, "alpha": alpha, "nbest_size": -1, "num_threads": 1}
        if self.table is None:
            return processor.encode(strings, **options)
        rows = processor.encode(strings, out_type=str, **options)
        ids, unknown = self._ids(), self._unknown.numbers
        known = {processor.id_to_piece(place): number for place, number in enumerate(ids)}
        return [
            [*code, *(unknown.get(piece, known.get(piece, self.unk_id)) for piece in row)]
            for code, row in zip(codes, rows, strict=True)
        ]

    def pieces(self, tokens: Tensor) -> list[str]:
        """Returns readable names of tokens: see `Tokenizer.pieces`."""
        processor = Processor(model_proto=self.model)
        if self.table is None:
            return [processor.id_to_piece(int(token)) for token in tokens]
        names, places = self.table.names, self.table.places
        return [
            processor.id_to_piece(places[token]) if places[token] >= 0 else names.get(token, "")
            for token in map(int, tokens)
        ]

    def words(self) -> list[str]:  # noqa: D102
        return [piece.replace(BEGIN, "") for piece in super().words()]

    def begins_words(self) -> list[bool] | None:  # noqa: D102
        if read_model(self.model).trainer_spec.treat_whitespace_as_suffix:
            return None
        return [piece.startswith(BEGIN) for piece in self.pieces(range(self.vocab_size))]

    def needed(self, used: set[int]) -> set[int]:  # noqa: D102
        places = range(self.vocab_size) if self.table is None else self.table.places
        pieces = needed_pieces(self.model, {places[n] for n in used if places[n] >= 0})
        special = {self.pad_id, self.unk_id, self.bos_id, self.eos_id}
        if self.table is None:
            return used | special | pieces
        names = self.table.names.items()
        named = {number for number, name in names if not PLACEHOLDER.fullmatch(name)}
        if self.languages is not None:
            named |= {*self.languages.ids.values(), *self.languages.before}
        return used | special | named | ({self.table.ids[place] for place in pieces} - {-1})

    def restricted(self, ids: list[int]) -> "SentencePieceTokenizer":
        """Returns a tokenizer with some of the tokens: see `Tokenizer.restricted`.

        Pieces that the model has no id for remain: without them, texts would be segmented
        differently.
        """
        table = self.table
        if table is None:
            return type(self)(smaller_model(self.model, ids))
        kept = {*ids, -1}
        places = [place for place, number in enumerate(table.ids) if number in kept]
        return type(self)(smaller_model(self.model, places), table.restricted(ids, places))

    def files(self) -> dict[str, bytes]:  # noqa: D102
        files = {MODEL: self.model}
        if self.table is not None:
            files[TABLE] = self.table.to_json()
        return files

    @classmethod
    def from_files(cls, files: dict[str, bytes]) -> "SentencePieceTokenizer":  # noqa: D102
        table = files.get(TABLE)
        return cls(files[MODEL], None if table is None else PieceTable.from_json(table))


def _mask_of(processor):
    """Returns the id of the mask token of a model, or `None` if it has none."""
    number = processor.piece_to_id(MASK)
    return number if processor.is_control(number) else None
