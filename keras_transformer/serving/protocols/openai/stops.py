"""Strings that end a text, which may arrive in parts."""

from typing import Any

from keras_transformer.serving.bodies import value_of
from keras_transformer.serving.refusal import Refusal

MOST = 4  # as in OpenAI's API


def stops_of(body: dict[str, Any]) -> tuple[str, ...]:
    """Returns the strings of a request that end a text.

    Raises:
        Refusal: If they are something else.
    """
    stops = value_of(body, "stop", (str, list), [])
    stops = [stops] if isinstance(stops, str) else stops
    if len(stops) > MOST or not all(isinstance(stop, str) and stop for stop in stops):
        raise Refusal(400, f"`stop` must be a string or a list of up to {MOST} strings.")
    return tuple(stops)


class Stops:
    """Parts of a text until one of several strings is complete in it.

    A character is held back while it may belong to such a string.

    Args:
        stops: The strings, not empty.

    Attributes:
        reached: Whether one of them was complete. The text ends before it.
    """

    def __init__(self, stops: tuple[str, ...]):
        self._stops, self._held, self.reached = stops, "", False

    def add(self, part: str) -> str:
        """Returns what may be sent after a further part of the text has arrived."""
        if self.reached:
            return ""
        text = self._held + part
        ends = [
            (place + len(stop), place) for stop in self._stops if (place := text.find(stop)) >= 0
        ]
        if ends:
            self.reached, self._held = True, ""
            return text[: min(ends)[1]]
        kept = next((place for place in range(len(text)) if self._may_begin(text[place:])), None)
        kept = len(text) if kept is None else kept
        self._held = text[kept:]
        return text[:kept]

    def end(self) -> str:
        """Returns what was held back, because the text has ended."""
        held, self._held = self._held, ""
        return held

    def _may_begin(self, rest):
        return any(stop.startswith(rest) for stop in self._stops)
