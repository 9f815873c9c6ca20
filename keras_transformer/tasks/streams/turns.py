"""`Turns`: texts that are generated together, each of which takes its steps alone."""

import inspect
from collections.abc import Sequence
from typing import Any

END = object()  # in place of a token: the text has ended


class Turns:
    """Texts of one model that are generated at a time.

    Each is generated after a prompt, in a row that `begin` returns. This class computes their
    tokens one after the other, and begins one text in a turn, because that reads a whole prompt; a
    subclass computes the tokens in batches.
    """

    def begin(self, text: Any, prompt: Sequence[int], search: Any, number: int = 0) -> Any:
        """Returns the row of a text, without computing anything.

        Args:
            text: A `KeptText` that has no row.
            prompt, search, number: See `KeptText.generate`.

        Raises:
            TypeError, ValueError: See `KeptText.generate`.
        """
        return text.generate(prompt, search, number)

    def advance(self, rows: Sequence[Any]) -> list[Any]:
        """Returns what a turn gives each row.

        Args:
            rows: Rows from `begin`, not ended.

        Returns:
            For each row its next token; `None` if there is none yet, because a prompt is being
            read; `END` if the text has ended; or the exception that ended it.
        """
        new = [row for row in rows if inspect.getgeneratorstate(row) == inspect.GEN_CREATED]
        return [None if row in new[1:] else _next(row) for row in rows]

    def end(self, row: Any) -> None:
        """Ends a row, at any time. Its text keeps the keys and values of its tokens."""
        row.close()


def _next(row):
    try:
        return next(row, END)
    except Exception as error:
        return error
