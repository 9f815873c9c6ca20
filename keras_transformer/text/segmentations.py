"""Ways to write a text in tokens, found in the graph."""

from collections.abc import Sequence

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.string_table import StringTable

NONE = 2**30  # tokens of a way that does not exist


class Segmentations:
    """The ways of the fewest tokens in which a vocabulary can write a text.

    Of ways with equally many tokens, those whose first tokens are longer come first.

    Args:
        pieces: Text of each token; `""` for tokens that no text is written with.
        pad_id: The id of the padding.
        most: Number W of ways of a text, at most.
    """

    def __init__(self, pieces: Sequence[str], pad_id: int, most: int):
        numbers = {piece: number for number, piece in enumerate(pieces) if piece}
        self._table = StringTable(numbers, exact=False)
        self._longest = max(map(len, numbers), default=1)
        self._pad_id, self._most = pad_id, most

    def __call__(self, texts: Tensor) -> Tensor:
        """Returns the ways as token ids `[N, W, T]`, int32, padded; T is the longest text's length.

        Ways that do not exist are padding alone.

        Call arguments:
            texts: UTF-8 strings `[N]`.
        """
        characters = tf.strings.unicode_split(texts, "UTF-8")
        lengths = tf.cast(characters.row_lengths(), tf.int32)  # [N]
        longest = tf.maximum(tf.reduce_max(lengths), 1)  # T
        shape = tf.stack([tf.size(lengths), longest])
        characters = characters.to_tensor("", shape=tf.cast(shape, tf.int64))  # [N, T]
        tokens = self._tokens(characters, lengths)  # [N, T, C]
        # The best ways to write the text from each of the C places after the current one, the
        # nearest place first.
        shape = tf.stack([tf.size(lengths), tf.shape(tokens)[2], self._most])
        counts = tf.fill(shape, NONE)  # [N, C, W], numbers of tokens
        ways = tf.fill(tf.concat([shape, [longest]], 0), self._pad_id)  # [N, C, W, T]

        def step(place, counts, ways):
            ends = tf.reshape(tf.equal(lengths, place + 1), [-1, 1, 1])
            counts = tf.where(ends & self._is_first(counts), 0, counts)  # a single way: no token
            best, tokens_of_best = self._prepended(tokens[:, place], counts, ways)
            counts = tf.concat([tf.expand_dims(best, 1), counts[:, :-1]], 1)
            return (
                place - 1,
                counts,
                tf.concat([tf.expand_dims(tokens_of_best, 1), ways[:, :-1]], 1),
            )

        state = longest - 1, counts, ways
        *_, ways = tf.while_loop(lambda place, *_: place >= 0, step, state)
        return ways[:, 0]

    def _is_first(self, counts):
        """Returns a mask `[C, W]` of the first way from the nearest place."""
        near = tf.equal(tf.range(tf.shape(counts)[1]), 0)
        return tf.expand_dims(near, 1) & tf.equal(tf.range(self._most), 0)

    def _tokens(self, characters, lengths):
        """Returns the token of the next 1 to C characters at each place, `[N, T, C]`, else -1."""
        count = tf.shape(characters)[1]
        most = tf.minimum(self._longest, count)  # C
        windows = tf.expand_dims(tf.range(count), 1) + tf.range(most)  # [T, C]
        ends = tf.cumsum(tf.strings.length(characters), axis=1)  # [N, T], in bytes
        begins = tf.pad(ends[:, :-1], [[0, 0], [1, 0]])
        begins = tf.broadcast_to(tf.expand_dims(begins, 2), tf.concat([tf.shape(ends), [most]], 0))
        sizes = tf.gather(ends, tf.minimum(windows, count - 1), axis=1) - begins  # [N, T, C]
        texts = tf.repeat(tf.strings.reduce_join(characters, axis=1), count * most)  # [N * T * C]
        flat = tf.reshape(begins, [-1]), tf.reshape(sizes, [-1])
        words = tf.reshape(tf.strings.substr(texts, *flat), tf.shape(begins))  # [N, T, C]
        numbers = tf.reshape(self._table.look_up(tf.reshape(words, [-1])), tf.shape(words))
        within = windows < tf.reshape(lengths, [-1, 1, 1])  # [N, T, C]
        return tf.where(within, numbers, -1)

    def _prepended(self, tokens, counts, ways):
        """Returns the best ways from a place, their counts `[N, W]` and ids `[N, W, T]`.

        Args:
            tokens: The tokens at the place, `[N, C]`.
            counts, ways: Those from each of the next C places, `[N, C, W]` and `[N, C, W, T]`.
        """
        known = tf.expand_dims(tokens >= 0, 2)  # [N, C, 1]
        # The longest first: among equals, `top_k` prefers the first.
        counts = tf.reverse(tf.where(known & (counts < NONE), counts + 1, NONE), [1])
        firsts = tf.reverse(tf.expand_dims(tf.expand_dims(tokens, 2), 3), [1])  # [N, C, 1, 1]
        ways = tf.reverse(ways, [1])[..., :-1]
        firsts = tf.broadcast_to(firsts, tf.concat([tf.shape(ways)[:-1], [1]], 0))
        ways = tf.concat([firsts, ways], axis=3)  # [N, C, W, T]
        shape = tf.shape(ways)
        flat = tf.reshape(counts, tf.stack([shape[0], shape[1] * shape[2]]))
        best, chosen = tf.math.top_k(-flat, self._most)  # [N, W]
        ways = tf.reshape(ways, tf.stack([shape[0], shape[1] * shape[2], shape[3]]))
        ways = tf.gather(ways, chosen, batch_dims=1)  # [N, W, T]
        return -best, tf.where(tf.expand_dims(-best < NONE, 2), ways, self._pad_id)
