"""Byte-level BPE, the tokenizer of GPT-2, RoBERTa, Llama 3 and Qwen2, in the TensorFlow graph."""

import json
import zlib
from collections.abc import Iterable
from typing import Any

from keras_transformer.lazy_tensorflow import graph_method, tensorflow_text, tf
from keras_transformer.tensors import Tensor
from keras_transformer.text import word_patterns
from keras_transformer.text.byte_pairs import (
    CHARACTERS,
    NO_UTF_8,
    check_merges,
    merge_ranks,
    merged,
    sentencepiece_model,
    text_of,
    utf8_bytes,
)
from keras_transformer.text.byte_vocabulary import (
    check_found,
    check_no_text,
    check_special,
    split_words,
)
from keras_transformer.text.code_points import decode_with_places
from keras_transformer.text.found_tokens import FoundTokens, WholeWords
from keras_transformer.text.nfc import code_points as nfc_code_points
from keras_transformer.text.nfc import nfc
from keras_transformer.text.ragged_rows import repeated, row_ids, row_sums
from keras_transformer.text.smaller_model import PLACEHOLDER
from keras_transformer.text.tokenizers.tokenizer import (
    BYTES_PER_TOKEN,
    Tokenizer,
    ids_of,
    strings_spec,
)

FILE = ".bpe.json"
NORMALIZATIONS = {"nfc": nfc}
SPECIAL = {"pad": "<pad>", "unk": "<unk>", "bos": "<s>", "eos": "</s>"}  # RoBERTa's


class ByteBPETokenizer(Tokenizer):
    """A `Tokenizer` with a byte-level BPE vocabulary.

    It returns the same ids as Hugging Face's `tokenizers`, except that the name of a special token
    in a text, such as `</s>`, is treated as ordinary text; `encode_masked` recognises masks. No
    text is unknown, because every byte is a token. Some published vocabularies lack a few: such a
    byte is dropped from words before merging, as in `tokenizers`. `encode` and `decode` use only
    operations of TensorFlow and of SentencePiece, see `SentencePieceTokenizer`; with `found`, also
    `RegexSplitWithOffsets` of TensorFlow Text.

    Args:
        pieces: The tokens in the order of their ids, strings of the characters that stand for
            bytes: `"Ġdog"` begins with a space.
        merges: Pairs of tokens that are merged, the first ones first.
        special: Dictionary from `"pad"`, `"unk"`, `"bos"` and `"eos"` to tokens. A text ends in
            `eos`. It may also have `"mask"`. `None`: RoBERTa's tokens without it.
        starts_with_bos: Whether an encoded text begins with `bos`.
        prefix_space: Whether a text that does not begin with a space gets one.
        mask_strips: Whether `encode_masked` removes white space before a mask.
        found: Tokens that are found in texts before words are split, such as runs of spaces; they
            are among `pieces`.
        pattern: Name of the pattern that splits texts into words, one of `PATTERNS` in
            `keras_transformer.text.word_patterns`.
        normalization: `"nfc"`: texts are converted to Unicode's composed normal form first. `None`:
            they are not.
        whole_words: Tokens that replace a word equal to them, even if merges would make other
            tokens of it, as with `ignore_merges` in Hugging Face's tokenizers.
        no_text: Tokens that are decoded to nothing, such as timestamps; they are among `pieces`.
        name: Name of the `tf.Module`.

    Attributes:
        vocab_size: Number of tokens.
        pad_id, unk_id, bos_id, eos_id, mask_id: Ids of the special tokens.
        dropped_bytes: Bytes of UTF-8 that have no token, a tuple of integers.

    Raises:
        ValueError: If a special token is missing, a token occurs twice, or merges do not fit the
            tokens.

    Reference: Radford et al. (2019), "Language Models are Unsupervised Multitask Learners", section
        2.2; Sennrich et al. (2016).
    """

    title = "byte-level BPE"
    endings = (FILE,)

    def __init__(
        self,
        pieces: Iterable[str],
        merges: Iterable[tuple[str, str]],
        special: dict[str, str] | None = None,
        starts_with_bos: bool = True,
        prefix_space: bool = False,
        mask_strips: bool = False,
        found: Iterable[str] = (),
        pattern: str = "gpt2",
        normalization: str | None = None,
        whole_words: Iterable[str] = (),
        no_text: Iterable[str] = (),
        name: str | None = None,
    ):
        super().__init__(name)
        special, pieces = special or SPECIAL, tuple(pieces)
        merges = tuple(tuple(pair) for pair in merges)
        ids = ids_of(pieces)
        letters = [letter for letter in CHARACTERS if letter in ids]
        self.dropped_bytes = tuple(
            byte
            for byte, letter in enumerate(CHARACTERS)
            if letter not in ids and byte not in NO_UTF_8
        )
        ranks = merge_ranks(pieces, merges, letters)
        check_special(special, ids, ranks)
        for role, piece in special.items():
            setattr(self, f"{role}_id", ids[piece])
        never_made = check_merges(merges, ranks)
        self._pattern = word_patterns.get(pattern)
        if normalization not in (None, *NORMALIZATIONS):
            raise ValueError(
                f"`normalization` must be one of {', '.join(NORMALIZATIONS)}, or None. "
                f"Received: normalization={normalization!r}."
            )
        self.pattern, self.normalization = pattern, normalization
        whole = split_words(whole_words, ids, ranks, never_made)
        self._whole_words = WholeWords({piece: ids[piece] for piece in whole})
        self.no_text, found = tuple(no_text), tuple(found)
        check_no_text(self.no_text, ids, ranks)
        check_found(found, ids, special)
        tokens = FoundTokens({piece: ids[piece] for piece in found})
        self._found = lambda: tokens
        model = sentencepiece_model(pieces, ranks, special["unk"])
        # Wrapped in functions, because a `tf.Module` searches its attributes for variables.
        self._content = lambda: (pieces, merges, dict(special), whole)
        self._ranks = lambda: ranks
        self._model = lambda: model
        self.starts_with_bos, self.prefix_space = starts_with_bos, prefix_space
        self.mask_strips = mask_strips
        self.vocab_size = len(pieces)
        self._longest = max((len(text_of(piece)) for piece in ranks), default=1)

    @property
    def bytes_per_token(self) -> int:  # noqa: D102
        return max(BYTES_PER_TOKEN, self._longest)

    def encode(self, strings: Tensor) -> "tf.RaggedTensor":
        """Encodes strings: see `Tokenizer.encode`."""
        pieces = self.tokenize(strings)  # [B, (S)]
        column = tf.ones([pieces.nrows(), 1], tf.int32)
        parts = [pieces, tf.RaggedTensor.from_tensor(self.eos_id * column)]
        if self.starts_with_bos:
            parts.insert(0, tf.RaggedTensor.from_tensor(self.bos_id * column))
        return tf.concat(parts, axis=1)

    def tokenize(self, strings: Tensor) -> "tf.RaggedTensor":  # noqa: D102
        return self._tokenize(tf.convert_to_tensor(strings, tf.string))[0]

    def tokenize_words(self, words: Tensor, first: Tensor) -> "tf.RaggedTensor":  # noqa: D102
        return self.tokenize(tf.where(first, words, tf.strings.join([" ", words])))

    def tokenize_with_offsets(
        self, strings: Tensor
    ) -> "tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]":
        """Returns tokens and their offsets: see `Tokenizer.tokenize_with_offsets`.

        A space before a word belongs to the first token of the word, as do its bytes; a token may
        begin or end within the bytes of a character.
        """
        return self._tokenize(tf.convert_to_tensor(strings, tf.string))[:3]

    def tokenize_with_words(
        self, strings: Tensor
    ) -> "tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]":
        """Returns tokens and the offsets of their words: see `Tokenizer.tokenize_with_words`."""
        ids, *_, begins, ends = self._tokenize(tf.convert_to_tensor(strings, tf.string))
        return ids, begins, ends

    @graph_method(strings_spec)
    def _tokenize(self, strings):
        """Ids, and the bytes at which each token and its word begin and end, ragged `[B, (S)]`."""
        return (self._tokenize_between if self._found().ids else self._tokenize_plain)(strings)

    def _tokenize_between(self, strings):
        """Tokenises the texts between tokens that are found."""
        parts, starts = self._found().split(strings)  # [B, (C)]
        numbers = self._found().look_up(parts.values)  # [C of all]
        is_found = numbers >= 0
        texts = tf.where(is_found, "", parts.values)
        ids, *places = self._tokenize_plain(texts)  # [C of all, (S)]
        lengths = tf.strings.length(parts.values)
        is_space = tf.equal(tf.strings.length(tf.strings.strip(parts.values)), 0)
        none, word = tf.zeros_like(lengths), tf.where(is_space, lengths, 0)
        rows = []
        for of_parts, of_found in zip(
            (ids, *places), (numbers, none, lengths, word, lengths), strict=True
        ):
            own = tf.RaggedTensor.from_row_lengths(
                tf.boolean_mask(of_found, is_found), tf.cast(is_found, tf.int64), validate=False
            )
            joined = tf.concat([of_parts, own], axis=1)  # one of both is empty in each row
            if rows:  # offsets in a part
                moved = joined.values + tf.gather(starts.values, row_ids(joined))
                joined = joined.with_values(moved)
            rows.append(parts.with_values(joined).merge_dims(1, 2))
        return tuple(rows)

    def _tokenize_plain(self, strings):
        """Tokenises texts without other tokens: see `_tokenize`."""
        added = tf.zeros_like(tf.strings.length(strings))
        if self.prefix_space:
            first = tf.strings.substr(strings, 0, 1)
            bare = tf.not_equal(first, " ") & tf.not_equal(first, "")
            strings = tf.where(bare, tf.strings.join([" ", strings]), strings)
            added = tf.cast(bare, tf.int32)
        points, place, after = decode_with_places(strings)
        if self.normalization is not None:
            points, place, after = NORMALIZATIONS[self.normalization](points, place, after)
        starts = self._pattern.word_starts(points)  # [B, (N)]
        characters, of_point, counts = utf8_bytes(points.values)
        words = tf.cumsum(tf.cast(starts.values, tf.int32)) - 1  # of each code point
        of_row = row_sums(tf.cast(starts, tf.int64))  # words of each text, [B]
        of_byte = tf.gather(words, of_point)  # [M]
        texts = _letters_of_words(characters, of_byte, tf.reduce_sum(of_row))  # [W]
        whole = self._whole_words.look_up(texts)
        kept = None
        if self.dropped_bytes:
            drops = tf.constant([byte in self.dropped_bytes for byte in range(256)])
            is_kept = ~tf.gather(drops, characters) | (tf.gather(whole, of_byte) >= 0)
            kept = tf.boolean_mask(tf.range(tf.size(characters)), is_kept)
            texts = _letters_of_words(
                tf.gather(characters, kept), tf.gather(of_byte, kept), tf.reduce_sum(of_row)
            )
        tokens = self._whole_words.join(whole, self._merger().tokenize(texts))  # [W, (P)]
        ids = tf.RaggedTensor.from_row_lengths(tokens, of_row, validate=False).merge_dims(1, 2)
        # Tokens are bytes without a gap, apart from dropped ones: the sums of their sizes are their
        # places.
        sizes_of = tf.constant([len(text_of(piece)) for piece in self._content()[0]])
        ends = tf.cumsum(tf.gather(sizes_of, ids.values))
        begins, lasts = ends - tf.gather(sizes_of, ids.values), ends - 1
        if kept is not None:
            begins, lasts = tf.gather(kept, begins), tf.gather(kept, lasts)
        # The place of each byte in the strings that were given, where U+FFFD has other bytes.
        shift = tf.gather(added, row_ids(points))
        place, after = place - shift, after - shift  # [N]
        of_words = _places_of_words(points.values, place, after, words, tokens.nrows())
        number = tf.range(tf.size(of_point)) - tf.gather(
            tf.cumsum(counts, exclusive=True), of_point
        )
        is_end = tf.equal(number + 1, tf.gather(counts, of_point))
        place, after = tf.gather(place, of_point), tf.gather(after, of_point)  # [M]
        first = tf.clip_by_value(place + number, 0, after)
        last = tf.where(is_end, after, tf.clip_by_value(place + number + 1, 0, after))
        begin, end = tf.gather(first, begins), tf.gather(last, lasts)
        of_words = (repeated(x, tokens.row_lengths()) for x in of_words)
        return ids, *(ids.with_values(x) for x in (begin, end, *of_words))

    def _merger(self):
        """Returns TensorFlow Text's tokenizer, created anew in every graph."""
        model = self._model()
        with tf.device("CPU:0"):  # it has a kernel on the CPU only
            # TensorFlow shares resources of equal names: it depends on the model.
            name = f"byte_bpe_{zlib.crc32(model):08x}"
            return tensorflow_text.SentencepieceTokenizer(model=model, out_type=tf.int32, name=name)

    def join(self, tokens: Tensor, keep: Tensor) -> Tensor:
        """Joins tokens to strings: see `Tokenizer.join`. Invalid UTF-8 becomes U+FFFD."""
        texts = self._texts()
        texts = tf.where(keep, tf.gather(tf.constant(texts), tokens), "")  # [B, T]
        joined = tf.strings.reduce_join(texts, axis=1)
        return tf.strings.unicode_transcode(joined, "UTF-8", "UTF-8", errors="replace")

    def pieces(self, tokens: Tensor) -> list[str]:  # noqa: D102
        return [self._content()[0][int(token)] for token in tokens]

    def words(self) -> list[str]:  # noqa: D102
        return [text.decode("utf-8", "replace") for text in self._texts()]

    def _texts(self):
        """Returns the bytes that each token adds to a text; none for those of `no_text`."""
        silent = {*self.no_text}
        return [b"" if piece in silent else text_of(piece) for piece in self._content()[0]]

    def begins_words(self) -> list[bool]:
        """Returns which tokens begin with white space: see `Tokenizer.begins_words`."""
        return [text_of(piece)[:1].isspace() for piece in self._content()[0]]

    def needed(self, used: set[int]) -> set[int]:  # noqa: D102
        pieces = self._content()[0]
        ids, ranks = {piece: number for number, piece in enumerate(pieces)}, self._ranks()
        silent = {*self.no_text}  # such as timestamps without a name, which are in order
        needed = {
            number
            for number, piece in enumerate(pieces)
            if piece not in ranks and (piece in silent or not PLACEHOLDER.fullmatch(piece))
        }
        new = [pieces[number] for number in used]
        while new:
            piece = new.pop()
            if ids[piece] not in needed:
                needed.add(ids[piece])
                # All that its merges pass through: another pair may make the same piece.
                new += ["".join(pair) for pair in merged(piece, ranks)[1]]
        return needed

    def restricted(self, ids: list[int]) -> "ByteBPETokenizer":  # noqa: D102
        content = json.loads(self.files()[FILE])
        content["pieces"] = [content["pieces"][number] for number in ids]
        kept = {*content["pieces"]}
        content["merges"] = [pair for pair in content["merges"] if {*pair, "".join(pair)} <= kept]
        for name in ("found", "whole_words", "no_text"):
            content[name] = [piece for piece in content.get(name, ()) if piece in kept]
        return self.from_files({FILE: json.dumps(content).encode()})

    def files(self) -> dict[str, bytes]:  # noqa: D102
        pieces, merges, special, whole_words = self._content()
        content = {
            "special": special,
            "starts_with_bos": self.starts_with_bos,
            "prefix_space": self.prefix_space,
            **({"mask_strips": True} if self.mask_strips else {}),
            **({"found": [*self._found().ids]} if self._found().ids else {}),
            **({"pattern": self.pattern} if self.pattern != "gpt2" else {}),
            **({"normalization": self.normalization} if self.normalization else {}),
            **({"whole_words": whole_words} if whole_words else {}),
            **({"no_text": self.no_text} if self.no_text else {}),
            "pieces": pieces,
            "merges": merges,
        }
        return {FILE: json.dumps(content, ensure_ascii=False).encode()}

    def code_points(self) -> dict[str, Any]:
        """Returns the pattern of words, and the classes of the normal form if there is one.

        `"words"` is a regular expression without names of classes, and the others are lists of
        first and last code points: see `WordPattern.portable` and `nfc.code_points`.
        """
        classes = nfc_code_points() if self.normalization == "nfc" else {}
        return {"words": self._pattern.portable(), **classes}

    @classmethod
    def from_files(cls, files: dict[str, bytes]) -> "ByteBPETokenizer":  # noqa: D102
        try:
            fields = json.loads(files[FILE])
            names = ("mask_strips", "found", "pattern", "normalization", "whole_words", "no_text")
            options = {name: fields[name] for name in names if name in fields}
            marks = fields["special"], fields["starts_with_bos"], fields["prefix_space"]
            return cls(fields["pieces"], fields["merges"], *marks, **options)
        except (TypeError, KeyError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as e:
            raise ValueError(f"the byte-level BPE vocabulary is damaged ({e}).") from e


def _letters_of_words(characters, words, count):
    """Returns the characters that stand for the bytes of words, strings `[W]`.

    Args:
        characters: Bytes, int32 `[M]`.
        words: Number of the word of each.
        count: Number of words W.
    """
    lengths = tf.math.unsorted_segment_sum(tf.ones_like(words), words, count)
    table = tf.constant([ord(character) for character in CHARACTERS])
    points = tf.RaggedTensor.from_row_lengths(tf.gather(table, characters), lengths, validate=False)
    return tf.strings.unicode_encode(points, "UTF-8")


def _places_of_words(points, place, after, words, count):
    """Returns the bytes at which words begin, after a space, and end, `[W]` each.

    A word of spaces begins at its end.

    Args:
        points: Code points `[N]`.
        place, after: The bytes at which each of them begins and ends, `[N]`.
        words: Number of the word of each, `[N]`.
        count: Number of words W.
    """
    ends = tf.math.unsorted_segment_max(after, words, count)
    begins = tf.where(tf.equal(points, ord(" ")), place.dtype.max, place)
    return tf.minimum(tf.math.unsorted_segment_min(begins, words, count), ends), ends
