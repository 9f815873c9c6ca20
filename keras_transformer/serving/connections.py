"""Connections that end if their client sends the header of a request too slowly."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


def limited_connections(seconds: float) -> type[H11Protocol]:
    """Returns the class of connections whose clients send a header within `seconds`.

    Uvicorn itself has a limit between two requests only, not for the first one nor for a header
    that arrives in small pieces.
    """

    class LimitedConnection(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._timer = self.loop.call_later(seconds, self._expire)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            answering = self.cycle is not None and not self.cycle.response_complete
            if answering:
                self._stop()
            elif self._timer is None:  # a part of the next request's header
                self._timer = self.loop.call_later(seconds, self._expire)

        def on_response_complete(self) -> None:
            self._stop()
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _stop(self):
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _expire(self):
            self._timer = None
            if not self.transport.is_closing():
                self.transport.close()

    return LimitedConnection
