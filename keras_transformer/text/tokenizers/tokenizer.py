"""`Tokenizer`, the interface of a vocabulary: strings to token ids and back, in the graph."""

import hashlib

import tensorflow as tf


class Tokenizer(tf.Module):
    """A vocabulary that runs in the graph: in `tf.data`, in a SavedModel, or eagerly.

    What it needs travels with the object: whatever holds a `Tokenizer` as an attribute (another
    `tf.Module`, say) saves the vocabulary together with the graph that uses it.

    Attributes:
        title: Name of the method, for documents.
        endings: Endings of the names of its files. The first file is always there, and its ending
            tells the kinds of tokenizers apart.
        vocab_size: Number of tokens, special ones included.
        pad_id, unk_id, bos_id, eos_id: Ids of padding, of an unknown token, and of the tokens that
            begin and end a text.
        starts_with_bos: Whether a text that is encoded begins with `bos_id`.
        rules: Fields of a model's configuration that follow from the vocabulary, a dictionary.
    """

    title = ""
    endings = ()
    vocab_size = pad_id = unk_id = bos_id = eos_id = None
    starts_with_bos = False
    rules = {}

    @property
    def num_marks(self):
        """Number of ids that mark the beginning and the end of an encoded text, 1 or 2."""
        return 1 + self.starts_with_bos

    def encode(self, strings):
        """Splits strings into tokens, each text closed by `eos_id`.

        Call arguments:
            strings: UTF-8 strings, [B]. Bytes that are not UTF-8 become U+FFFD.

        Returns:
            A `tf.RaggedTensor` of int32, [B, (S)], whose rows end in `eos_id`.
        """
        raise NotImplementedError

    def tokenize(self, strings):
        """Splits strings into tokens, without any that mark beginnings or ends.

        Call arguments:
            strings: As in `encode`.

        Returns:
            A `tf.RaggedTensor` of int32, [B, (S)]; the empty string has no tokens.
        """
        return self.encode(strings)[:, :-1]

    def tokenize_with_offsets(self, strings):
        """Returns what `tokenize` returns, and the places of the tokens.

        Call arguments:
            strings: As in `encode`.

        Returns:
            Three `tf.RaggedTensor`s of int32, [B, (S)]: ids; and the bytes of the string, counted
            from 0, at which each token begins and before which it ends.
        """
        raise NotImplementedError

    def decode(self, tokens):
        """Joins tokens into strings.

        Call arguments:
            tokens: Integers, [B, T], dense or ragged. In each row everything from the first
                `eos_id` on is dropped, and so are `pad_id` and `bos_id` wherever they stand.

        Returns:
            Strings, [B]. A row with nothing left gives the empty string.
        """
        raise NotImplementedError

    def pieces(self, tokens):
        """Names tokens for people to look at: `["▁A", "▁dog", "</s>"]`. Not part of any graph.

        Args:
            tokens: Sequence of ids.

        Returns:
            A list of strings, one for each id.
        """
        raise NotImplementedError

    def sample(self, strings, alpha, seed):
        """Splits strings into tokens at random; not part of any graph.

        Args:
            strings: List of strings.
            alpha: How much to vary, above 0 and below 1.
            seed: Integer from 0 to below 2**31; with equal arguments it gives equal tokens.

        Returns:
            A list of lists of ids, without `eos_id`.

        Raises:
            ValueError: If the method has no random segmentations.
        """
        raise ValueError(
            f"`subword_sampling` must be 0: {self.title} has no random segmentations. "
            f"Received: {alpha}."
        )

    def files(self):
        """Returns what it is kept in: a dictionary from `endings` to bytes."""
        raise NotImplementedError

    @classmethod
    def from_files(cls, files):
        """Returns the tokenizer that `files` described.

        Args:
            files: Dictionary from `endings` to bytes, of those files that there are.

        Raises:
            ValueError: If they are not such a vocabulary.
        """
        raise NotImplementedError

    def identity(self):
        """Returns a checksum of everything that the ids depend on, a string."""
        checksum = hashlib.sha256(type(self).__name__.encode())
        for ending, content in self.files().items():
            checksum.update(b"%s\0%d\0%s" % (ending.encode(), len(content), content))
        return checksum.hexdigest()
