"""A server from the first request to a graceful stop."""

import asyncio
import errno
import logging
import math
import os
import socket
import time
from collections.abc import Callable
from typing import Any

import uvicorn

from keras_transformer.serving.app import make_app
from keras_transformer.serving.connections import limited_connections
from keras_transformer.serving.options import ServerOptions
from keras_transformer.serving.service import Service

try:
    import resource
except ModuleNotFoundError:  # Windows, which has no such limit
    resource: Any = None
KEEP_ALIVE = 15  # seconds between two requests of a connection
FILES = 256  # open files besides connections that are served
SENT = 2**18  # bytes of a response on their way to a client
EVERY = 60  # seconds between two reports that there are too many open files


def listening_socket(options: ServerOptions) -> socket.socket:
    """Returns a socket at the address of the server, which does not listen yet.

    Raises:
        ValueError: If the address is in use, or not one of this machine.
    """
    host, port = options.host, options.port
    try:
        (family, _, _, _, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # Only for a socket of this protocol does asyncio switch off Nagle's algorithm, which delays
        # the second packet of each response by 40 ms.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Of accepted connections as well: whether a client takes bytes is seen only when a third of
        # the system's buffer is free, which would otherwise have megabytes.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SENT)
        bound.bind(address)
    except OSError as error:
        raise ValueError(f"cannot listen on {host}:{port}: {error.strerror}.") from error
    return bound


class GracefulServer(uvicorn.Server):
    """A server that ends with the requests in its queue, and at once after a second signal.

    Args:
        config: Configuration of uvicorn.
        service: The `Service`.
        started: Function that is called when requests are accepted.
    """

    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[], object]):
        super().__init__(config)
        self._service, self._on_start, self._reported = service, started, -math.inf

    async def startup(self, sockets: Any = None) -> None:
        """Begins to accept requests."""
        asyncio.get_running_loop().set_exception_handler(self._handle)
        await super().startup(sockets)
        self._on_start()

    def _handle(self, loop, context):
        """Reports an exception that nobody catches.

        Without a file for another connection, asyncio has one for each that waits, every second.
        """
        error = context.get("exception") or RuntimeError(context["message"])
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            if time.monotonic() < self._reported + EVERY:
                return
            self._reported = time.monotonic()
        self._service.report(error)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Ends the server, with status 0, or the process if it ends already."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True
        self._service.queue.stop()


def serve(
    service: Service,
    bound: socket.socket,
    log: Callable[[str], object] | None = None,
    started: Callable[[], object] = lambda: None,
) -> None:
    """Serves a model until a signal arrives; see `GracefulServer`.

    Args:
        service: The `Service`.
        bound: Result of `listening_socket`.
        log: See `make_app`.
        started: See `GracefulServer`.
    """
    config = configured(service, make_app(service, log))
    GracefulServer(config, service, started).run(sockets=[bound])


def configured(service: Service, app: Any) -> uvicorn.Config:
    """Returns the configuration of uvicorn for the application that serves a model."""
    options = service.options
    # A form that is no form is refused, and not also a line on stderr.
    logging.getLogger("python_multipart").addHandler(logging.NullHandler())
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=limited_connections(options.read_timeout),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=possible_connections(options.max_connections),
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=graceful_seconds(options),
    )


def graceful_seconds(options: ServerOptions) -> int:
    """Returns the seconds in which the requests that were accepted must be answered at the end."""
    return int(options.timeout + options.read_timeout) + 1


def possible_connections(most: int) -> int:
    """Returns `most`, or as many connections as the system lets a process have.

    Raises the limit of this process, which is often 1,024 open files, if the system allows it.
    """
    if resource is None:
        return most
    allowed, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY in (allowed, hard) and allowed == hard:
        return most
    wanted = most + FILES
    if allowed < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(1, min(most, allowed - FILES))
