"""What pyarrow raises for broken Parquet bytes, as our own error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from boathouse.errors import CorruptTableError


@contextmanager
def damage(what: str, uri: str) -> Iterator[None]:
    """Turns what pyarrow raises for broken bytes into CorruptTableError; errors of the store pass through."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowIndexError, pa.ArrowNotImplementedError) as error:
        raise CorruptTableError(f"{what}: {error}", where=uri) from error
    except OSError as error:
        # The Parquet reader's own complaints are plain OSErrors, as are some of pyarrow's stores.
        if type(error) is not OSError or error.errno is not None or any(s in str(error) for s in _STORE_SAYS):
            raise
        raise CorruptTableError(f"{what}: {error}", where=uri) from error


_STORE_SAYS = ("AWS Error", "google::cloud", "Azure", "HTTP", "curl", "HDFS")
