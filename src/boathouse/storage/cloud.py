"""S3, GCS and Azure through obstore. Loaded only by `stores`, when such a URI is resolved."""

from __future__ import annotations

import builtins
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, TypeVar

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from boathouse.bits import system
from boathouse.errors import (
    AlreadyExistsError,
    BoathouseError,
    InvalidArgumentError,
    NotFoundError,
    UnsafeStorageError,
)
from boathouse.storage.aws import S3Settings
from boathouse.storage.base import Bytes, ObjectInfo, PutMode, Wanted, Writer, folder_prefix, looked_at
from boathouse.storage.failures import translate_failure
from boathouse.storage.options import StorageOptions, scrub

P = ParamSpec("P")
T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SPOOL = 32 << 20
_PART = 8 << 20
_SECRET_ENVIRONMENT = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY", "AZURE_CLIENT_SECRET",
    "AZURE_STORAGE_CLIENT_SECRET", "GOOGLE_SERVICE_ACCOUNT_KEY",
)  # fmt: skip


def open_cloud(scheme: str, authority: str, options: StorageOptions) -> CloudStorage:
    """The storage of one bucket or container; no request is made. InvalidArgumentError for options that cannot be
    used together."""
    root = f"{scheme}://{authority}"
    secrets = [*options.secrets(), *(os.environ[name] for name in _SECRET_ENVIRONMENT if os.environ.get(name))]
    if scheme == "s3":
        settings = S3Settings.resolve(options)
        keys = (settings.access_key_id, settings.secret_access_key, settings.session_token)
        secrets += [value for value in keys if value]
        store = _build(root, secrets, _s3, authority, settings, options)
        conditional = options.get("conditional_put")
        probe = conditional is None and settings.endpoint is not None and ".amazonaws.com" not in settings.endpoint
        ordered = not authority.endswith("--x-s3")  # directory buckets list in no order
        return CloudStorage(store, root, secrets, ordered=ordered, atomic_create=conditional != "disabled", probe=probe)
    if scheme == "gs":
        return CloudStorage(_build(root, secrets, _gcs, authority, options), root, secrets)
    # Accounts with a hierarchical namespace list folder by folder, which is not the order of the keys.
    return AzureStorage(_build(root, secrets, _azure, authority, options), root, secrets, ordered=False)


def _build(root: str, secrets: Sequence[str], make: Callable[P, Any], *args: P.args, **named: P.kwargs) -> Any:
    try:
        return make(*args, **named)
    except BoathouseError:
        raise
    except Exception as error:
        text = scrub(str(error).split("\n\nDebug source")[0], secrets)
    raise InvalidArgumentError(f"The storage options do not fit: {text}", where=root)


def _transport(options: StorageOptions, allow_http: bool) -> dict[str, Any]:
    client: dict[str, Any] = {"allow_http": allow_http}
    for name in ("timeout", "connect_timeout"):
        if (seconds := options.seconds(name)) is not None:
            client[name] = timedelta(seconds=seconds)
    if (proxy := options.get("proxy_url")) is not None:
        client["proxy_url"] = proxy
    retries = options.number("max_retries")
    return {"client_options": client, **({} if retries is None else {"retry_config": {"max_retries": retries}})}


def _given(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, False)}


def _s3(bucket: str, settings: S3Settings, options: StorageOptions) -> Any:
    endpoint = settings.endpoint
    if endpoint and settings.virtual_hosted_style:  # obstore wants the bucket in it
        scheme, _, host = endpoint.partition("://")
        endpoint = endpoint if host.startswith(bucket + ".") else f"{scheme}://{bucket}.{host}"
    return S3Store(
        bucket,
        **_given(
            access_key_id=settings.access_key_id,
            secret_access_key=settings.secret_access_key,
            session_token=settings.session_token,
            region=settings.region,
            endpoint=endpoint,
            virtual_hosted_style_request=settings.virtual_hosted_style,
            skip_signature=settings.anonymous,
        ),
        **_transport(options, settings.allow_http),
    )


def _plain_http(options: StorageOptions) -> bool:
    return options.flag("allow_http") or (options.get("endpoint") or "").startswith("http://")


def _gcs(bucket: str, options: StorageOptions) -> Any:
    given = _given(
        service_account_key=options.get("service_account_key"),
        service_account=options.get("service_account_path"),
        bearer_token=options.get("bearer_token"),
        base_url=options.get("endpoint"),
        skip_signature=options.flag("anonymous"),
    )
    return GCSStore(bucket, **given, **_transport(options, _plain_http(options)))


def _azure(authority: str, options: StorageOptions) -> Any:
    container, _, host = authority.partition("@")
    account, _, domain = host.partition(".dfs.")
    named = options.get("account_name")
    if account and named and named != account:
        raise InvalidArgumentError(
            f"The storage options are for the account {named!r}, the URI is for {account!r}.",
            where=f"abfss://{authority}",
        )
    endpoint = (options.get("endpoint") or "").rstrip("/") or None
    if endpoint is None and domain not in ("", "core.windows.net", "fabric.microsoft.com"):
        endpoint = f"https://{account}.blob.{domain}"
    given = _given(
        account_name=account or named,
        account_key=options.get("account_key"),
        sas_key=options.get("sas_token"),
        client_id=options.get("client_id"),
        client_secret=options.get("client_secret"),
        tenant_id=options.get("tenant_id"),
        token=options.get("bearer_token"),
        endpoint=endpoint,
        use_fabric_endpoint=domain == "fabric.microsoft.com",
        skip_signature=options.flag("anonymous"),
    )
    return AzureStore(container, **given, **_transport(options, _plain_http(options)))


class CloudStorage:
    """One bucket of an object store.

    Keys with `.`, `..` or empty segments are refused (InvalidArgumentError): the client cannot express them. An S3
    endpoint outside AWS is probed once, before the first put-if-absent, by creating one small object twice.
    """

    page = 1000

    def __init__(
        self,
        store: Any,
        root: str,
        secrets: Sequence[str] = (),
        *,
        ordered: bool = True,
        atomic_create: bool = True,
        probe: bool = False,
    ) -> None:
        self._store, self._root, self._secrets = store, root, tuple(secrets)
        self._ordered, self._atomic, self._probe = ordered, atomic_create, probe
        self._probing = threading.Lock()

    def __repr__(self) -> str:
        return f"CloudStorage({self._root!r})"

    @property
    def atomic_create(self) -> bool:
        return self._atomic

    def uri(self, key: str) -> str:
        return f"{self._root}/{key}" if key else self._root

    def get(self, key: str) -> bytes:
        return self._call(key, lambda: bytes(obstore.get(self._store, self._path(key)).bytes()))

    def get_range(self, key: str, start: int, length: int) -> bytes:
        if length <= 0:
            self.head(key)
            return b""
        if start >= 0:
            wanted: object = (start, start + length)
        else:
            wanted = {"suffix": -start}
        options = {"range": wanted}
        try:
            data = self._call(key, lambda: bytes(obstore.get(self._store, self._path(key), options=options).bytes()))
        except (BoathouseError, ValueError):
            size = self.head(key).size
            if 0 <= start < size or (start < 0 and size):
                raise
            return b""  # each store has its own error for a range outside the object
        return data[:length] if start < 0 else data

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> builtins.list[bytes]:
        plain = [(start, length) for start, length in ranges if start >= 0 and length > 0]
        if len(plain) < len(ranges) or len(plain) < 2:
            return [self.get_range(key, start, length) for start, length in ranges]
        starts, lengths = [start for start, _ in plain], [length for _, length in plain]
        try:
            return self._call(
                key,
                lambda: [
                    bytes(part)
                    for part in obstore.get_ranges(self._store, self._path(key), starts=starts, lengths=lengths)
                ],
            )
        except NotFoundError:
            raise
        except BoathouseError:
            return [self.get_range(key, start, length) for start, length in ranges]

    def head(self, key: str) -> ObjectInfo:
        return _info(self._call(key, lambda: obstore.head(self._store, self._path(key))))

    def exists(self, key: str) -> bool:
        try:
            self.head(key)
        except NotFoundError:
            return False
        return True

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[ObjectInfo]:
        found = self._without_markers(self._listed(folder_prefix(prefix), start_after))
        return found if self._ordered else iter(sorted(found, key=lambda info: info.key))

    def _listed(self, inside: str, start_after: str | None) -> Iterator[ObjectInfo]:
        offset = start_after if self._ordered else None
        named = {} if offset is None else {"offset": offset}
        pages = self._call(
            inside, lambda: iter(obstore.list(self._store, inside or None, chunk_size=self.page, **named))
        )
        while (page := self._call(inside, lambda: next(pages, None))) is not None:
            for meta in page:
                path = meta["path"]
                if path.startswith(inside) and (start_after is None or path > start_after):
                    yield _info(meta)

    def _without_markers(self, found: Iterator[ObjectInfo]) -> Iterator[ObjectInfo]:
        """Leaves out the empty objects `folder/` that Hadoop writes for folders. The client lists them as `folder`: the
        folder's contents follow directly, or no object exists under the name without the slash."""
        held: ObjectInfo | None = None
        for info in found:
            if held is not None and not info.key.startswith(held.key + "/") and self.exists(held.key):
                yield held
            held = None
            if info.size:
                yield info
            else:
                held = info
        if held is not None and self.exists(held.key):
            yield held

    def holds(self, prefix: str) -> bool:
        return next(self.list(prefix), None) is not None

    def list_dir(
        self, prefix: str, wanted: Wanted | None = None
    ) -> tuple[builtins.list[str], builtins.list[ObjectInfo]]:
        inside = folder_prefix(prefix)
        found = self._call(inside, lambda: obstore.list_with_delimiter(self._store, inside or None))
        objects = [_info(meta) for meta in found["objects"] if meta["path"].startswith(inside)]
        files = sorted(looked_at(objects, inside, wanted), key=lambda info: info.key)
        return sorted(folder.rstrip("/") for folder in found["common_prefixes"]), files

    def put(self, key: str, data: Bytes, mode: PutMode = PutMode.OVERWRITE) -> None:
        if mode is PutMode.CREATE:
            self._ensure_atomic(key)
        content = data if isinstance(data, bytes) else bytes(data)
        named = {"mode": "create"} if mode is PutMode.CREATE else {"mode": "overwrite"}
        self._call(key, lambda: obstore.put(self._store, self._path(key), content, **named))

    def open_write(self, key: str, mode: PutMode = PutMode.OVERWRITE) -> Writer:
        if mode is PutMode.CREATE:
            self._ensure_atomic(key)
            return _SpooledWriter(self, key)
        return _StreamWriter(self, key)

    def delete(self, keys: Iterable[str]) -> None:
        names = [self._path(key) for key in keys]
        if not names:
            return
        with suppress(NotFoundError):
            self._call(names[0], lambda: obstore.delete(self._store, names))
            return
        for name in names:  # a store without bulk deletes stops at the first missing key
            with suppress(NotFoundError):
                self._call(name, lambda name=name: obstore.delete(self._store, name))  # type: ignore[misc]

    def _ensure_atomic(self, key: str) -> None:
        with self._probing:
            if self._atomic and self._probe:
                folder = key.rpartition("/")[0]
                probe = f"{folder}/.boathouse-probe-{system.current().uuid4().hex}".lstrip("/")
                create = lambda: obstore.put(self._store, self._path(probe), b"probe", mode="create")  # noqa: E731
                try:
                    self._call(probe, create)
                    with suppress(AlreadyExistsError):
                        self._call(probe, create)
                        self._atomic = False
                finally:
                    with suppress(BoathouseError):
                        self.delete([probe])
                self._probe = False
        if not self._atomic:
            raise UnsafeStorageError(
                "This store does not honour If-None-Match, so an object cannot be created atomically.",
                where=self.uri(key),
                advice="write tables to a store with conditional puts",
            )

    def _path(self, key: str) -> str:
        """The key, if the store can express it. Raises InvalidArgumentError."""
        if not key or key != key.strip("/") or any(part in ("", ".", "..") for part in key.split("/")):
            raise InvalidArgumentError(f"The key {key!r} has an empty, '.' or '..' segment, which cannot be stored.")
        return key

    def _call(self, key: str, request: Callable[[], T]) -> T:
        try:
            return request()
        except BoathouseError:
            raise
        except (BaseError, OSError, ValueError) as error:
            failure = translate_failure(error, self.uri(key), self._secrets)
        raise failure  # outside the handler: a chained error would show the client's own text, including secrets


class AzureStorage(CloudStorage):
    """An Azure container: no ranges from an object's end, and a backslash in a name is read as a slash."""

    def get_range(self, key: str, start: int, length: int) -> bytes:
        if start >= 0 or length <= 0:
            return super().get_range(key, start, length)
        size = self.head(key).size
        first = max(size + start, 0)
        return super().get_range(key, first, min(length, size - first))

    def _path(self, key: str) -> str:
        if "\\" in key:
            raise InvalidArgumentError(
                f"The key {key!r} has a backslash, which Azure reads as a slash.", advice="use a name without it"
            )
        return super()._path(key)


def _info(meta: Any) -> ObjectInfo:
    changed = (meta["last_modified"] - _EPOCH) // timedelta(milliseconds=1)
    etag = meta["e_tag"]  # Azure quotes it in the response for one object, but not in lists
    return ObjectInfo(meta["path"], meta["size"], changed, None if etag is None else etag.strip('"'))


class _StreamWriter(Writer):
    """A multipart upload; the parts of an aborted upload are left to the bucket's rule for incomplete uploads."""

    def __init__(self, storage: CloudStorage, key: str) -> None:
        super().__init__(storage.uri(key))
        self._storage, self._key = storage, key
        self._sink: Any = obstore.open_writer(storage._store, storage._path(key), buffer_size=_PART)

    def _append(self, data: Bytes) -> None:
        content = data if isinstance(data, bytes) else bytes(data)
        try:
            self._storage._call(self._key, lambda: self._sink.write(content))
        except BoathouseError:
            self.abort()
            raise

    def _publish(self) -> None:
        self._storage._call(self._key, self._sink.close)

    def _discard(self) -> None:
        self._sink = None


class _SpooledWriter(Writer):
    """Buffers the object, on the local disk beyond 32 MiB, and creates it in one request: multipart uploads are not
    conditional."""

    def __init__(self, storage: CloudStorage, key: str) -> None:
        super().__init__(storage.uri(key))
        self._storage, self._key = storage, key
        self._spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL)  # noqa: SIM115

    def _append(self, data: Bytes) -> None:
        self._spool.write(data)

    def _publish(self) -> None:
        with self._spool as spool:
            spool.seek(0)
            self._storage.put(self._key, spool.read(), PutMode.CREATE)

    def _discard(self) -> None:
        self._spool.close()
