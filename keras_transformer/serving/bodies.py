"""Bodies of requests: limits of bytes and time, JSON without surprises, and forms."""

import asyncio
import json
import math
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from keras_transformer.serving.refusal import BUSY, Refusal

BODIES = 8  # bodies of the largest size that are in memory at a time
URLENCODED = "application/x-www-form-urlencoded"
FORMS = (URLENCODED, "multipart/form-data")
MAX_FIELDS = 1000  # of a form
NOT_UTF_8 = "the body must be a form in UTF-8."


class Bodies:
    """Reads bodies, which together have a limit as well.

    Args:
        most: Maximum number of bytes of a body.
        seconds: Time in which a body must arrive.
    """

    def __init__(self, most: int, seconds: float):
        self.most, self._seconds, self._held = most, seconds, 0

    async def read(self, request: Request) -> bytes:
        """Returns the body of a request, which counts as held until `release`.

        Raises:
            Refusal: If it is too long or too slow.
            ConnectionResetError: If the client has left.
        """
        length = request.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > self.most:
            raise self._too_long()
        chunks, size, is_read = [], 0, False
        try:
            async with asyncio.timeout(self._seconds):
                async for chunk in request.stream():
                    size += len(chunk)
                    self._held += len(chunk)
                    chunks.append(chunk)
                    if size > self.most:
                        raise self._too_long()
                    if self._held > BODIES * self.most:
                        raise Refusal(429, BUSY, retry_after=1)
            is_read = True
        except TimeoutError:
            raise Refusal(408, f"the body must arrive in {self._seconds:g} seconds.") from None
        except ClientDisconnect:
            raise ConnectionResetError("the client has left") from None
        finally:
            if not is_read:
                self._held -= size
        return b"".join(chunks)

    def release(self, size: int) -> None:
        """Ends the time in which `size` bytes of a body are held."""
        self._held -= size

    def _too_long(self):
        return Refusal(413, f"the body must have at most {self.most:,} bytes.")


def content_type(request: Request) -> str:
    """Returns the type of a request's body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def json_object(body: bytes) -> dict[str, Any]:
    """Returns the object that a body in JSON is.

    Raises:
        Refusal: If it is something else, or has values that are no JSON or no Unicode.
    """
    try:
        value = json.loads(body.decode("utf-8-sig"), parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # lone surrogates, 1e999
    except UnicodeDecodeError:
        raise Refusal(400, "the body must be JSON in UTF-8.") from None
    except UnicodeEncodeError:
        raise Refusal(400, "a string of the body has half of a surrogate pair.") from None
    except RecursionError:
        raise Refusal(400, "the body has too many levels.") from None
    except ValueError as error:
        raise Refusal(400, f"the body must be JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refusal(400, "the body must be an object in JSON.")
    return value


def _no_constant(name):
    raise ValueError(f"{name} is no number of JSON")


async def form(request: Request, body: bytes) -> dict[str, Any]:
    """Returns the fields of a form, strings, and bytes for its files.

    A field that occurs several times is a list.

    Raises:
        Refusal: If the body is no such form, or a text of it is not in UTF-8.
    """
    if content_type(request) == URLENCODED:
        pairs = _pairs(body)
    else:
        pairs = await _parts(request, body)
    fields: dict[str, Any] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}


def _pairs(body):
    """Returns the pairs of a form in the style of a query.

    Bytes above 127 may stand there as they are, as from `curl -d`.
    """
    if body.lstrip()[:1] in (b"{", b"["):
        raise Refusal(400, "JSON needs the header `Content-Type: application/json`.")
    pairs = [pair.partition(b"=") for pair in body.split(b"&") if pair]
    if len(pairs) > MAX_FIELDS:
        raise Refusal(400, f"the body must be a form of at most {MAX_FIELDS:,} fields.")
    return [(_text(name), _text(value)) for name, _, value in pairs]


def _text(quoted):
    try:
        return unquote_to_bytes(quoted.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise Refusal(400, NOT_UTF_8) from None


async def _parts(request, body):
    """Returns the pairs of a form of several parts."""

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    pairs, begin = [], 0
    limits: dict[str, Any] = {"max_fields": MAX_FIELDS, "max_part_size": len(body) + 1}
    try:
        async with Request(request.scope, receive).form(**limits) as parsed:
            for name, value in parsed.multi_items():
                if isinstance(value, str):
                    # Starlette reads other bytes as Latin-1. Texts follow each other in the body.
                    begin = body.find(value.encode(), begin)
                    if begin < 0:
                        raise Refusal(400, NOT_UTF_8)
                pairs.append((name, value if isinstance(value, str) else await value.read()))
    except UnicodeEncodeError:
        raise Refusal(400, NOT_UTF_8) from None
    except HTTPException as error:
        raise Refusal(400, f"the body must be a form: {error.detail}") from None
    except (ValueError, KeyError, AssertionError) as error:
        raise Refusal(400, f"the body must be a form: {error}") from None
    return pairs


def value_of(body: dict[str, Any], name: str, kind: Any, default: Any = None) -> Any:
    """Returns a field of a body.

    Args:
        body: The fields of the body.
        name: Name of the field.
        kind: Type of its values, such as `str` or `(int, float)`.
        default: Value if it is missing or null; `...`: then it is an error.

    Raises:
        Refusal: If it is missing or of another type.
    """
    value = body.get(name)
    if value is None:
        if default is ...:
            raise Refusal(400, f"`{name}` is missing.")
        return default
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or isinstance(value, bool) and bool not in kinds:
        names = " or ".join(one.__name__ for one in kinds)
        raise Refusal(400, f"`{name}` must be of type {names}. Received: {type(value).__name__}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise Refusal(400, f"`{name}` must be finite.")
    return value


def is_one_of(value: Any, values: Iterable[Any]) -> bool:
    """Returns whether a value is equal to one of several; `True` is not 1."""
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in values)
