"""Translates the errors of an object store's client to ours, without the secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable

from obstore.exceptions import (
    AlreadyExistsError as ClientAlreadyExists,
)
from obstore.exceptions import (
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from boathouse.errors import (
    AlreadyExistsError,
    BoathouseError,
    InvalidArgumentError,
    NotFoundError,
    StorageError,
    UndecidedError,
    UnsafeStorageError,
)
from boathouse.storage.options import scrub

# Only the client's message distinguishes a lost request from a refused one.
_UNDECIDED = re.compile(
    r"status code: (?:5\d\d|408|429)|http error|tim(?:ed|e) ?-?out|connection|error sending request|error decoding"
    r"|connect error|reset by peer|broken pipe|incomplete message|server error|retry timeout|dns",
    re.IGNORECASE,
)
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([^<]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]+)</Message>")


def translate_failure(error: Exception, where: str, secrets: Iterable[str]) -> BoathouseError:
    """The typed error for what a request to `where` raised; its message contains no secrets."""
    full = str(error).split("\n\nDebug source")[0]
    text = scrub(_short(full), secrets)
    if "NoSuchBucket" in full or "ContainerNotFound" in full:
        return NotFoundError("The bucket does not exist.", where=where)
    if isinstance(error, FileNotFoundError):
        return NotFoundError("The object does not exist.", where=where)
    if isinstance(error, ClientAlreadyExists | PreconditionError):
        return AlreadyExistsError("The object already exists.", where=where)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return StorageError(f"Permission denied: {text}", where=where, advice="check the storage options")
    if isinstance(error, NotSupportedError):
        return UnsafeStorageError(f"The store does not offer this: {text}", where=where)
    if type(error) is ValueError:
        return InvalidArgumentError(text, where=where)
    status = _STATUS.search(full)
    if status is not None and status[1] in ("401", "403"):
        return StorageError(f"Permission denied: {text}", where=where, advice="check the storage options")
    undecided = _UNDECIDED.search(full) if status is None else status[1][0] == "5" or status[1] in ("408", "429")
    if undecided:
        return UndecidedError(f"The outcome of the request is unknown: {text}", where=where)
    return StorageError(f"The store refused the request: {text}", where=where)


def _short(full: str) -> str:
    """The client's message with only code and message of the store's XML response: the rest may contain what was
    signed."""
    sentence = full.partition("<")[0].strip().rstrip(":").replace("\n", " ")
    code, message = _CODE.search(full), _MESSAGE.search(full)
    parts = [sentence[:400], *(found[1] for found in (code, message) if found is not None)]
    return ": ".join(parts)[:600]
