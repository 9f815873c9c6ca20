"""`KeptText`: a text that grows by given tokens and by those of a search, with its cache kept."""

import copy
import typing
from collections.abc import Generator, Sequence
from typing import Any

from keras_transformer.decoding.greedy import Greedy
from keras_transformer.decoding.sample import Sample
from keras_transformer.decoding.search import check_search
from keras_transformer.tasks.streams.turns import Turns

Text = typing.TypeVar("Text", bound="KeptText")


class KeptText:
    """A text of a language model that is continued again and again, as in a conversation.

    The key and value heads of all tokens are kept. A prompt that begins with the same tokens as
    the text so far is read from the first different token on, in one pass. The tokens are those of
    the search over the whole prompt, except that sums in another order may decide near ties.

    A form of the model defines `_generate`.

    Args:
        bos_id: Id of the token that begins a text.
        max_length: Maximum length of a text in tokens.
        nothing: The heads of no token: a value that is never changed.

    Attributes:
        kept: Number of tokens whose heads are kept, with the one that begins a text.
    """

    def __init__(self, bos_id: int, max_length: int, nothing: Any):
        self._bos_id, self._length, self._nothing = bos_id, max_length, nothing
        # Token ids, and their heads in each block: one value, so that Ctrl-C cannot part them.
        self._kept: tuple[list[int], Any] = [], nothing

    @property
    def kept(self) -> int:
        """Number of tokens whose heads are kept."""
        return len(self._kept[0])

    def forget(self) -> None:
        """Drops all tokens and their heads."""
        self._kept = [], self._nothing

    def another(self: Text) -> Text:
        """Returns a text without tokens, which shares the model and the graphs with this one."""
        other = copy.copy(self)
        other.forget()
        return other

    def shared(self, prompt: Sequence[int]) -> int:
        """Returns the number of tokens of a prompt that need not be read again.

        Args:
            prompt: See `generate`.
        """
        return self._common([self._bos_id, *prompt])

    def generate(
        self, prompt: Sequence[int], search: Greedy | Sample, number: int = 0
    ) -> Generator[int, None, None]:
        """Yields the tokens that continue a prompt, the end token included if there is one.

        The heads of the prompt and of all tokens yielded before the last one are kept, also if the
        iteration is not finished.

        Args:
            prompt: Token ids without the one that begins a text.
            search: A `Greedy` or a `Sample`.
            number: For a `Sample`, an integer of 32 bits on which the tokens depend, as on the
                index of a text in a list.

        Raises:
            TypeError: If the search is another one.
            ValueError: If the prompt leaves no position for a token.
        """
        self.check(prompt, search)
        return self._generate(list(prompt), search, number)

    def check(self, prompt: Sequence[int], search: Greedy | Sample) -> None:
        """Checks the arguments of `generate`.

        Raises:
            TypeError, ValueError: See `generate`.
        """
        check_search(search, Greedy, Sample)
        if len(prompt) >= self._length:
            raise ValueError(
                f"`prompt` must have at most {self._length - 1} tokens. "
                f"Received: {len(prompt)} tokens."
            )

    def group(self) -> Turns:
        """Returns a `Turns`, in which this text and its `another` are generated together.

        By default, each takes its steps alone. A form of the model whose texts can share a step
        has a subclass.
        """
        return Turns()

    def _generate(self, prompt, search, number):
        raise NotImplementedError

    def limit(self, prompt: Sequence[int], search: Greedy | Sample) -> int:
        """Returns the maximum length of a text that begins with a prompt; see `generate`."""
        return min(search.limit(None, self._length) + len(prompt), self._length)

    def _common(self, inputs):
        """Returns the number of the first inputs, without the last one, that have been read."""
        ids, _ = self._kept
        pairs = enumerate(zip(ids, inputs[:-1], strict=False))
        common = min(len(ids), len(inputs) - 1)
        return next((place for place, (old, new) in pairs if old != new), common)
