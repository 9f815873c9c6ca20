"""Options of the server: defaults, limits and help texts, declared once."""

import dataclasses

from keras_transformer.options import OptionError
from keras_transformer.search_settings import CheckedSettings, setting

MODEL, BATCHES, LIMITS = "Model", "Batches", "Limits"
ADDRESS, ACCESS = "Address", "Access"
MEBIBYTE = 2**20
# Maximum bytes of a body: 10,000 characters of text need little, a minute of sound 10 MB.
TEXT_BODY, FILE_BODY = MEBIBYTE, 32 * MEBIBYTE
# Defaults of inputs of a request and of the queue, which has room for such a request.
MAX_INPUTS, MAX_QUEUE = 128, 2048


@dataclasses.dataclass(frozen=True)
class ServerOptions(CheckedSettings):
    """Options of `keras-transformer serve`."""

    host: str = setting(
        "127.0.0.1",
        "Address to listen on; 0.0.0.0 accepts connections from other machines.",
        kind=str,
        metavar="ADDRESS",
        group=ADDRESS,
    )
    port: int = setting(
        8080, "Port to listen on; 0 chooses a free one.", least=0, most=65535, group=ADDRESS
    )
    name: str | None = setting(
        None,
        "Name of the model in requests.",
        kind=str,
        is_optional=True,
        metavar="NAME",
        default_help="the name of MODEL's file or folder, or of the folder above a version",
        group=MODEL,
    )
    source_language: str | None = setting(
        None,
        "Language of the inputs, such as en. For a multilingual MODEL, this is the default "
        "language. Other models have only one language, and this is its code in requests.",
        kind=str,
        is_optional=True,
        metavar="CODE",
        default_help="the MODEL's own, otherwise data.source_language of a run",
        group=MODEL,
    )
    target_language: str | None = setting(
        None,
        "Language of the translations. See --source-language.",
        kind=str,
        is_optional=True,
        metavar="CODE",
        default_help="the MODEL's own",
        group=MODEL,
    )
    batch_size: int = setting(
        32,
        "Maximum number of inputs to compute at a time, of one request or of several.",
        least=1,
        metavar="N",
        group=BATCHES,
    )
    batch_wait: float = setting(
        5.0,
        "Milliseconds that an input waits for further inputs before a batch that is not full "
        "is computed.",
        kind=float,
        least=0,
        metavar="MS",
        group=BATCHES,
    )
    max_inputs: int | None = setting(
        None,
        "Maximum number of inputs of a request.",
        least=1,
        is_optional=True,
        metavar="N",
        default_help=f"{MAX_INPUTS}, or --max-queue if that is smaller",
        group=LIMITS,
    )
    max_characters: int = setting(
        50_000, "Maximum number of characters of a request.", least=1, metavar="N", group=LIMITS
    )
    max_body: int | None = setting(
        None,
        "Maximum number of bytes of the body of a request.",
        least=1,
        is_optional=True,
        metavar="BYTES",
        default_help="1 MiB; for recordings and images 32 MiB",
        group=LIMITS,
    )
    max_queue: int | None = setting(
        None,
        "Maximum number of inputs that wait, at least --max-inputs. Further requests are refused "
        "with status 429.",
        least=1,
        is_optional=True,
        metavar="N",
        default_help=f"{MAX_QUEUE}, or --max-inputs if that is larger",
        group=LIMITS,
    )
    max_streams: int = setting(
        8,
        "Maximum number of texts to generate at a time, token by token, as in chats. Further "
        "texts wait. The keys and values of this number of texts are kept in memory.",
        least=1,
        metavar="N",
        group=BATCHES,
    )
    max_connections: int = setting(
        2048,
        "Maximum number of open connections. Further connections are refused with status 503.",
        least=1,
        metavar="N",
        group=LIMITS,
    )
    timeout: float = setting(
        60.0,
        "Seconds after which a request without an answer fails with status 504.",
        kind=float,
        above=0,
        metavar="S",
        group=LIMITS,
    )
    read_timeout: float = setting(
        10.0,
        "Seconds in which a client must send the header of a request. The same limit applies to "
        "the body of the request, and to the time in which a client reads nothing of the response.",
        kind=float,
        above=0,
        metavar="S",
        group=LIMITS,
    )
    cors: str | None = setting(
        None,
        "Origin whose web pages may send requests, such as https://example.org; * for any.",
        kind=str,
        is_optional=True,
        metavar="ORIGIN",
        default_help="none",
        group=ACCESS,
    )
    quiet: bool = setting(False, "Write no access log.", kind=bool, group=ACCESS)

    def check_together(self) -> None:
        """Raises an `OptionError` if no path can have the name, or the queue is too small."""
        if self.name is not None and (not self.name.strip() or "/" in self.name):
            reason = f"must not be blank, and must not have a /. Received: {self.name!r}."
            raise OptionError("name", reason)
        if self.queue_limit < self.input_limit:
            raise OptionError(
                "max_queue",
                "must be at least --max-inputs. "
                f"Received: --max-queue {self.max_queue} --max-inputs {self.max_inputs}.",
            )

    @property
    def input_limit(self) -> int:
        """Maximum number of inputs of a request."""
        if self.max_inputs is not None:
            return self.max_inputs
        return MAX_INPUTS if self.max_queue is None else min(MAX_INPUTS, self.max_queue)

    @property
    def queue_limit(self) -> int:
        """Maximum number of inputs that wait."""
        return max(MAX_QUEUE, self.input_limit) if self.max_queue is None else self.max_queue

    def body_limit(self, reads_files: bool) -> int:
        """Returns the maximum number of bytes of a body.

        Args:
            reads_files: Whether inputs are files, such as recordings.
        """
        if self.max_body is not None:
            return self.max_body
        return FILE_BODY if reads_files else TEXT_BODY
