"""The error that ends a request, before a protocol gives it a form."""

import textwrap

LONGEST = 1000


class Refusal(Exception):
    """A request that is not answered.

    Args:
        status: Status of HTTP.
        message: Text for the client, which becomes one line of at most `LONGEST` characters.
        retry_after: Seconds after which the client may try again. `None`: it need not try.
    """

    def __init__(self, status: int, message: str, retry_after: int | None = None):
        super().__init__(textwrap.shorten(message, LONGEST, placeholder=" ..."))
        self.status, self.retry_after = status, retry_after
        self.message = str(self)


BUSY = "too many requests are waiting: try again later."
STOPPING = "the server is stopping."
EXPIRED = "no answer within {:g} seconds."
FAILED = "the model failed; the log of the server has the reason."
