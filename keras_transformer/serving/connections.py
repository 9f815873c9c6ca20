"""Connections that end if their client sends a header, or takes a response, too slowly."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

REFUSED = 64  # connections beyond the limit whose requests are refused; further ones are closed


def limited_connections(seconds: float) -> type[H11Protocol]:
    """Returns the class of connections whose clients send a header within `seconds`.

    Clients that take no byte of a response for so long also lose their connection. Uvicorn itself
    has a limit between two requests only, not for the first one, nor for a header that arrives in
    small pieces, nor for responses; and it closes no connections beyond its limit of them.
    """

    class LimitedConnection(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _progress: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            most = self.limit_concurrency
            if most is not None and len(self.connections) > most + REFUSED:
                transport.abort()
                return
            transport.set_write_buffer_limits(0)  # `pause_writing` as soon as any byte waits
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

        def pause_writing(self) -> None:
            super().pause_writing()
            self._watch(self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            self._stop_watching()
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            self._stop_watching()
            super().connection_lost(exc)

        def _stop(self):
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _expire(self):
            self._timer = None
            if not self.transport.is_closing():
                self.transport.close()

        def _watch(self, size):
            self._progress = self.loop.call_later(seconds, self._check, size)

        def _check(self, size):
            """Ends the connection if its client has taken nothing of `size` waiting bytes."""
            left = self.transport.get_write_buffer_size()
            if left >= size:
                self.transport.abort()
            else:
                self._watch(left)

        def _stop_watching(self):
            if self._progress is not None:
                self._progress.cancel()
                self._progress = None

    return LimitedConnection
