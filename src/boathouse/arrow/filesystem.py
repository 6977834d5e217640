"""Data files as Arrow's own file objects, by URI: on executors and in process.

`NativeFiles` is picklable and goes through `pyarrow.fs`; `StorageFiles` goes through `Storage` and stays in its
process. `data_files(stores)` uses the first for every URI that it can reach, else the second.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import TracebackType
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from boathouse.arrow.memory import read_pool
from boathouse.bits import system
from boathouse.errors import (
    BoathouseError,
    InvalidArgumentError,
    NotFoundError,
    StorageError,
    UndecidedError,
    UnsupportedFeatureError,
)
from boathouse.storage import Storage, StorageOptions, Stores, Writer, absolute, split
from boathouse.storage.aws import S3Settings
from boathouse.storage.options import scrub

_BUFFER = 8 << 20
_FILE = "file://"


class OutputFiles(Protocol):
    """Makes data files. URIs are raw (see `boathouse.storage.uris`); errors are those of `storage`."""

    def open_output(self, uri: str) -> pa.NativeFile:
        """A new file to write to, with its folders created; complete once closed. An existing file is overwritten:
        names of data files are unique."""
        ...

    def delete(self, uri: str) -> None:
        """Removes a file; a missing file is ignored."""
        ...

    def named(self, folder: str, part: str) -> list[str]:
        """The URIs of all files in the folder and below whose names contain this text: everything there is listed."""
        ...


class DataFiles(OutputFiles, Protocol):
    """Opens data files as well."""

    def open_input(self, uri: str, size: int | None = None) -> pa.NativeFile:
        """A file for random reads. NotFoundError. A `size` that is known saves a request where that is possible:
        Arrow's own file systems take none."""
        ...

    def size(self, uri: str) -> int:
        """In bytes. NotFoundError."""
        ...


@dataclass(frozen=True, slots=True)
class NativeFiles:
    """Data files through `pyarrow.fs`. Picklable; each process opens its file systems once, on first use.

    UnsupportedFeatureError for memory:// and for options that Arrow's clients do not support (see `not_native`).
    """

    options: StorageOptions

    def open_input(self, uri: str, size: int | None = None) -> pa.NativeFile:
        uri = absolute(uri)
        if uri.startswith(_FILE):
            # Memory mapping is not faster for scans, and a file truncated by another process would kill ours with
            # SIGBUS.
            return _typed(uri, self.options, lambda: pa.OSFile(uri[len(_FILE) :], memory_pool=read_pool()))
        system, path = self._system(uri)
        return _typed(uri, self.options, lambda: system.open_input_file(path))

    def open_output(self, uri: str) -> pa.NativeFile:
        uri = absolute(uri)
        if uri.startswith(_FILE):
            return _typed(uri, self.options, lambda: _local_output(uri[len(_FILE) :]))
        system, path = self._system(uri)
        return _typed(uri, self.options, lambda: system.open_output_stream(path, buffer_size=_BUFFER))

    def size(self, uri: str) -> int:
        uri = absolute(uri)
        system, path = self._system(uri)
        info = _typed(uri, self.options, lambda: system.get_file_info(path))
        if info.type is not fs.FileType.File:
            raise NotFoundError("The file does not exist.", where=uri)
        return int(info.size)

    def delete(self, uri: str) -> None:
        uri = absolute(uri)
        system, path = self._system(uri)
        with suppress(NotFoundError):
            _typed(uri, self.options, lambda: system.delete_file(path))

    def named(self, folder: str, part: str) -> list[str]:
        return StorageFiles(Stores(self.options)).named(folder, part)

    def _system(self, uri: str) -> tuple[Any, str]:
        scheme, authority, key = split(uri)
        if scheme == "file":
            return _file_system(self.options, scheme, ""), "/" + key
        if (reason := not_native(self.options, scheme, authority)) is not None:
            raise UnsupportedFeatureError(f"Executors cannot open this file: {reason}.", where=uri)
        return _file_system(self.options, scheme, authority), f"{authority.partition('@')[0]}/{key}"


def _local_output(path: str) -> pa.NativeFile:
    try:
        return pa.OSFile(path, "wb")
    except FileNotFoundError:
        _make_folder(os.path.dirname(path))
        return pa.OSFile(path, "wb")
    except (NotADirectoryError, IsADirectoryError):
        pass
    raise StorageError("A file is where a folder should be, or a folder where the file should be.", where=_FILE + path)


def _make_folder(path: str) -> None:
    try:
        os.mkdir(path)  # usually a new partition of an existing table
    except (FileNotFoundError, FileExistsError):
        os.makedirs(path, exist_ok=True)


def _typed(uri: str, options: StorageOptions, request: Callable[[], Any]) -> Any:
    failure: StorageError | NotFoundError
    try:
        return request()
    except BoathouseError:
        raise
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        failure = NotFoundError("The file does not exist.", where=uri)
    except (OSError, pa.ArrowException) as error:
        text = scrub(str(error), options.secrets())
        lost = isinstance(error, TimeoutError | ConnectionError) or "curlCode" in text or "HTTP status 5" in text
        failure = (UndecidedError if lost else StorageError)(f"The file cannot be opened: {text}", where=uri)
    raise failure  # outside the handlers: a chained error would show the client's own message


def not_native(options: StorageOptions, scheme: str, authority: str = "") -> str | None:
    """Why Arrow's file system for `scheme` does not support the options; None if it does."""
    if scheme in ("file", "s3"):
        return None
    asked = {name for name, _ in options.items}
    if scheme == "gs":
        refused = asked & {"service_account_key", "service_account_path", "proxy_url"}
    elif scheme in ("az", "abfss"):
        refused = asked & {"bearer_token", "proxy_url", "anonymous"}
        endpoint = options.get("endpoint")
        if endpoint is not None and _azure_hosts(endpoint, _azure_account(options, authority)) is None:
            return "Arrow's client supports no endpoint without the account in it"
    else:
        return f"{scheme}:// exists only in the process that created it"
    return f"Arrow's client does not support {' or '.join(sorted(refused))}" if refused else None


@lru_cache(maxsize=64)
def _file_system(options: StorageOptions, scheme: str, authority: str) -> Any:
    if scheme == "file":
        return fs.LocalFileSystem()
    return _SYSTEMS[scheme](options, authority)


def _given(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _s3(options: StorageOptions, _bucket: str) -> Any:
    settings = S3Settings.resolve(options)
    scheme, _, host = (settings.endpoint or "").rpartition("://")
    retries = options.number("max_retries")
    given = _given(
        access_key=settings.access_key_id,
        secret_key=settings.secret_access_key,
        session_token=settings.session_token,
        region=settings.region or ("us-east-1" if host else None),
        endpoint_override=host or None,
        scheme=scheme or None,
        request_timeout=options.seconds("timeout"),
        connect_timeout=options.seconds("connect_timeout"),
        proxy_options=options.get("proxy_url"),
        retry_strategy=None if retries is None else fs.AwsStandardS3RetryStrategy(max_attempts=retries + 1),
        force_virtual_addressing=True if settings.virtual_hosted_style and host else None,
    )
    return fs.S3FileSystem(anonymous=settings.anonymous, **given)


def _gcs(options: StorageOptions, _bucket: str) -> Any:
    token = options.get("bearer_token")
    scheme, _, host = (options.get("endpoint") or "").rpartition("://")
    timeout = options.seconds("timeout")
    expires = datetime.fromtimestamp(system.current().now_ms() / 1000, UTC) + timedelta(hours=1)
    given = _given(
        access_token=token,
        credential_token_expiration=expires if token else None,
        endpoint_override=host or None,
        scheme=scheme or None,
        retry_time_limit=None if timeout is None else timedelta(seconds=timeout),
    )
    return fs.GcsFileSystem(anonymous=options.flag("anonymous") or False, **given)


def _azure_account(options: StorageOptions, authority: str) -> str:
    account = authority.partition("@")[2].partition(".dfs.")[0]
    return account or options.get("account_name") or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME") or ""


def _azure_hosts(endpoint: str, account: str) -> tuple[str, str] | None:
    """The hosts of the blob and the dfs service as Arrow expects them, which adds the account before or after them.

    None for an endpoint without an account: Arrow cannot address it.
    """
    host, _, path = endpoint.rpartition("://")[2].rstrip("/").partition("/")
    if path:
        return (host, host) if path == account else None
    blob = host.removeprefix(account)
    return (blob, blob.replace(".blob.", ".dfs.", 1)) if account and blob != host and blob.startswith(".") else None


def _azure(options: StorageOptions, authority: str) -> Any:
    account, domain = _azure_account(options, authority), authority.partition("@")[2].partition(".dfs.")[2]
    if not account:
        raise InvalidArgumentError("The Azure account is unknown.", where=authority, advice="give account_name")
    endpoint = options.get("endpoint") or ""
    scheme = endpoint.rpartition("://")[0]
    given_hosts = _azure_hosts(endpoint, account)
    other = (f".blob.{domain}", f".dfs.{domain}") if domain not in ("", "core.windows.net") else (None, None)
    blob, dfs = given_hosts or other
    given = _given(
        account_key=options.get("account_key"),
        sas_token=options.get("sas_token"),
        client_id=options.get("client_id"),
        client_secret=options.get("client_secret"),
        tenant_id=options.get("tenant_id"),
        blob_storage_authority=blob,
        dfs_storage_authority=dfs,
        blob_storage_scheme=scheme or None,
        dfs_storage_scheme=scheme or None,
    )
    return fs.AzureFileSystem(account, **given)


_SYSTEMS: dict[str, Callable[[StorageOptions, str], Any]] = {"s3": _s3, "gs": _gcs, "az": _azure, "abfss": _azure}


class StorageFiles:
    """Data files through the storages of `stores`, as Python file objects; not picklable."""

    def __init__(self, stores: Stores) -> None:
        self.stores = stores

    def open_input(self, uri: str, size: int | None = None) -> pa.NativeFile:
        storage, key = self.stores.resolve(uri)
        return pa.PythonFile(_Reader(storage, key, size), mode="r")

    def open_output(self, uri: str) -> pa.NativeFile:
        storage, key = self.stores.resolve(uri)
        return pa.PythonFile(storage.open_write(key), mode="w")

    def size(self, uri: str) -> int:
        storage, key = self.stores.resolve(uri)
        return storage.head(key).size

    def delete(self, uri: str) -> None:
        storage, key = self.stores.resolve(uri)
        storage.delete([key])

    def named(self, folder: str, part: str) -> list[str]:
        storage, key = self.stores.resolve(folder)
        return [storage.uri(info.key) for info in storage.list(key) if part in info.key.rpartition("/")[2]]


class WholeFile:
    """The file `uri`, which appears at the end of a `with` block; after an error, an existing file stays unchanged."""

    def __init__(self, stores: Stores, uri: str) -> None:
        storage, key = stores.resolve(uri)
        self._writer = storage.open_write(key)

    def open_output(self, uri: str) -> pa.NativeFile:
        """The file, to be closed before the block ends."""
        return pa.PythonFile(_Unnamed(self._writer), mode="w")

    def delete(self, uri: str) -> None:
        """Does nothing: the file is discarded when the block is left by an error."""

    def named(self, folder: str, part: str) -> list[str]:
        """Nothing: there is no file before the block ends."""
        return []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._writer.__exit__(kind, error, at)


class _Unnamed(io.RawIOBase):
    """A file object for a writer, without `close`: closing the writer would publish the object."""

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._writer.write(data)

    def tell(self) -> int:
        return self._writer.tell()


class _Reader(io.RawIOBase):
    """An object read by ranges: one request per read, after one for the size if that is not known."""

    def __init__(self, storage: Storage, key: str, size: int | None) -> None:
        super().__init__()
        self._storage, self._key = storage, key
        self._size = storage.head(key).size if size is None else size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._size - self._at, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        data = self._storage.get_range(self._key, self._at, wanted) if wanted else b""
        self._at += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class ChosenFiles:
    """For each URI, Arrow's own file system if it supports it, else the storage; deletes go through the storage.

    Pickles as `NativeFiles`, unless a storage is wrapped (UnsupportedFeatureError).
    """

    def __init__(self, stores: Stores) -> None:
        self.stores = stores
        self._native = NativeFiles(stores.options)
        self._by_storage = StorageFiles(stores)

    def _files(self, uri: str) -> DataFiles:
        whole = absolute(uri)
        self.stores.check(whole)
        scheme, authority, _ = split(whole)
        if self.stores.wrap is None and not_native(self.stores.options, scheme, authority) is None:
            return self._native
        return self._by_storage

    def check(self, uris: pa.Array | pa.ChunkedArray) -> None:
        """Raises ForeignPathError for the first URI that the stores refuse: they are not consulted after pickling, or
        when another engine reads."""
        if self.stores.home is None:
            return
        own = pc.starts_with(uris, self.stores.home.partition("://")[0] + "://")
        if not pc.all(own).as_py():
            for uri in uris.filter(pc.invert(own)).to_pylist():
                self.stores.check(uri)

    def open_input(self, uri: str, size: int | None = None) -> pa.NativeFile:
        return self._files(uri).open_input(uri, size)

    def open_output(self, uri: str) -> pa.NativeFile:
        return self._files(uri).open_output(uri)

    def size(self, uri: str) -> int:
        return self._files(uri).size(uri)

    def delete(self, uri: str) -> None:
        self._by_storage.delete(uri)  # Arrow's S3 client would leave an object for the empty folder

    def named(self, folder: str, part: str) -> list[str]:
        return self._by_storage.named(folder, part)

    def __reduce__(self) -> tuple[object, ...]:
        if self.stores.wrap is not None:
            raise UnsupportedFeatureError("Wrapped storages cannot be sent to another process.")
        return (NativeFiles, (self.stores.options,))


def data_files(stores: Stores) -> DataFiles:
    """Data files with the options of `stores`, for use in this process; unpickled, they are `NativeFiles`."""
    return ChosenFiles(stores)
