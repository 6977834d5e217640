"""Turns pyarrow's errors about corrupt Parquet data into ours."""

from __future__ import annotations

from types import TracebackType

import pyarrow as pa

from boathouse.errors import CorruptTableError


class damage:  # a class, not a generator: it is entered three times for every file that is read
    """Turns what pyarrow raises for corrupt data into CorruptTableError; errors of the store pass through."""

    __slots__ = ("uri", "what")

    def __init__(self, what: str, uri: str) -> None:
        self.what, self.uri = what, uri

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, UnicodeDecodeError):
            raise CorruptTableError(f"{self.what}: a string that is not UTF-8", where=self.uri) from error
        if isinstance(error, _BROKEN) or (isinstance(error, OSError) and _is_readers_own(error)):
            raise CorruptTableError(f"{self.what}: {error}", where=self.uri) from error


_BROKEN = (pa.ArrowInvalid, pa.ArrowIndexError, pa.ArrowNotImplementedError)


def _is_readers_own(error: OSError) -> bool:
    """The Parquet reader raises plain OSErrors, but so do some of pyarrow's file systems."""
    return type(error) is OSError and error.errno is None and not any(s in str(error) for s in _STORE_SAYS)


_STORE_SAYS = ("AWS Error", "google::cloud", "Azure", "HTTP", "curl", "HDFS")
