"""The local disk, over the operating system's calls; keys are absolute paths without the leading `/`.

A write fills a temporary file in the target's folder, syncs it to the disk, and renames it with `os.replace`, or, for
put-if-absent, creates a hard link to it, which the operating system does or refuses atomically. `O_EXCL` on the final
name would also be put-if-absent, but would expose a half-written commit to readers and after a crash; so where the file
system has no hard links, CREATE is refused with UnsafeStorageError.

Temporary files are named `.boathouse-*.tmp`: listings here hide them, and readers of every format skip names that
begin with a dot. A killed process leaves its temporary files behind: after a day, the next writer to their folder
removes them, and vacuum.
"""

from __future__ import annotations

import builtins
import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from boathouse.bits import system
from boathouse.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    StorageError,
    UndecidedError,
    UnsafeStorageError,
)
from boathouse.storage.base import Bytes, ObjectInfo, PutMode, Wanted, Writer, folder_prefix

_TEMPORARY = re.compile(r"\.boathouse-[0-9a-f-]+\.tmp")
ABANDONED_MS = 86_400_000
"""The age at which a temporary file has no writer any more."""
_SWEPT_MS = 3_600_000
_swept: dict[str, int] = {}
"""When this process last looked for old temporary files in a folder."""
_FOLDERS = 10_000
_ATTEMPTS = 8  # to create a folder that others remove
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
_LOST = (errno.EIO, errno.ETIMEDOUT, errno.ESTALE, errno.EINTR, errno.EHOSTDOWN, errno.ENOTCONN)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


class LocalStorage:
    """The whole local disk."""

    page = 1
    atomic_create = True  # where the file system has no hard links, put(CREATE) itself refuses

    def __repr__(self) -> str:
        return "LocalStorage()"

    def uri(self, key: str) -> str:
        return "file:///" + key.lstrip("/")

    def get(self, key: str) -> bytes:
        try:
            fd = os.open(_path(key), os.O_RDONLY | os.O_CLOEXEC)
            try:
                return _read_all(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise self._read_error(error, key) from error

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self.get_ranges(key, ((start, length),))[0]

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> builtins.list[bytes]:
        try:
            fd = os.open(_path(key), os.O_RDONLY | os.O_CLOEXEC)
            try:
                size = _file_size(fd)
                return [_read_range(fd, size, start, length) for start, length in ranges]
            finally:
                os.close(fd)
        except OSError as error:
            raise self._read_error(error, key) from error

    def head(self, key: str) -> ObjectInfo:
        try:
            found = os.stat(_path(key))
        except OSError as error:
            raise self._read_error(error, key) from error
        if stat.S_ISDIR(found.st_mode):
            raise NotFoundError("This is a folder, not a file.", where=self.uri(key))
        return _info(key, found)

    def exists(self, key: str) -> bool:
        try:
            self.head(key)
        except NotFoundError:
            return False
        return True

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[ObjectInfo]:
        return self._walk(folder_prefix(prefix), start_after or "")

    def _walk(self, inside: str, after: str) -> Iterator[ObjectInfo]:
        # An explicit stack of folders, deepest last, avoids recursion in deep trees.
        stack = [self._scan(inside, after)]
        while stack:
            keys, entries = stack[-1]
            if not keys:
                stack.pop()
                continue
            key = keys.pop()
            if key[-1] == "/":
                stack.append(self._scan(key, after))
            elif (info := self._entry_info(key, entries[key])) is not None:
                yield info

    def _scan(self, inside: str, after: str) -> tuple[builtins.list[str], dict[str, os.DirEntry[str]]]:
        """What one folder has that is, or contains, keys beyond `after`: the keys, last first, and the entries by key.
        A folder is `name/`, so that its keys are in order among the files beside it."""
        entries = self._entries(inside)
        if after.startswith(inside):
            border = after[len(inside) :]
            entries = [e for e in entries if (name := e.name) > border or border.startswith(name)]
        found: dict[str, os.DirEntry[str]] = {}
        for entry in entries:
            name = entry.name
            if entry.is_dir():
                found[f"{inside}{name}/"] = entry
            elif not (name[0] == "." and _hidden(name)):
                found[inside + name] = entry
        keys = [k for k in found if k > after or (k[-1] == "/" and after.startswith(k))] if after else [*found]
        keys.sort(reverse=True)
        return keys, found

    def holds(self, prefix: str) -> bool:
        waiting = [folder_prefix(prefix)]
        while waiting:
            inside = waiting.pop()
            try:
                with os.scandir("/" + inside) as entries:
                    for entry in entries:
                        if entry.is_dir():
                            waiting.append(f"{inside}{entry.name}/")
                        elif not (entry.name[0] == "." and _hidden(entry.name)) and self._entry_info(inside, entry):
                            return True
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    raise self._error(error, inside) from error
        return False

    def list_dir(
        self, prefix: str, wanted: Wanted | None = None
    ) -> tuple[builtins.list[str], builtins.list[ObjectInfo]]:
        inside = folder_prefix(prefix)
        entries = self._entries(inside)
        found = {e.name: e for e in entries if not e.is_dir()}
        folders = [inside + e.name for e in entries if e.name not in found] if len(found) < len(entries) else []
        for name in [n for n in found if n[0] == "." and _hidden(n)]:
            del found[name]
        names = sorted(found if wanted is None else wanted([*found]))
        infos = (self._entry_info(inside + name, found[name]) for name in names)
        return sorted(folders), [info for info in infos if info is not None]

    def _entries(self, inside: str) -> builtins.list[os.DirEntry[str]]:
        try:
            with os.scandir("/" + inside) as entries:
                return [*entries]
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return []
            raise self._error(error, inside) from error

    def _entry_info(self, key: str, entry: os.DirEntry[str]) -> ObjectInfo | None:
        try:
            return _info(key, entry.stat())
        except FileNotFoundError:  # deleted since the folder was read, or a dangling link
            return None
        except OSError as error:
            raise self._error(error, key) from error

    def put(self, key: str, data: Bytes, mode: PutMode = PutMode.OVERWRITE) -> None:
        with self.open_write(key, mode) as writer:
            writer.write(data)

    def open_write(self, key: str, mode: PutMode = PutMode.OVERWRITE) -> Writer:
        return LocalWriter(self, key, mode)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            try:
                os.unlink(_path(key))
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    raise self._error(error, key) from error

    def abandoned(self, prefix: str) -> builtins.list[ObjectInfo]:
        """The temporary files in the folder and below that killed writers have left; listings hide them."""
        before_ms = system.current().now_ms() - ABANDONED_MS
        found = []
        for folder, _, names in os.walk("/" + folder_prefix(prefix)):
            for path in (os.path.join(folder, name) for name in names if _hidden(name)):
                with suppress(FileNotFoundError):
                    info = _info(path[1:], os.stat(path))
                    if info.modified_ms < before_ms:
                        found.append(info)
        return found

    def _read_error(self, error: OSError, key: str) -> Exception:
        if error.errno in _ABSENT:
            return NotFoundError("The file does not exist.", where=self.uri(key))
        return self._error(error, key)

    def _error(self, error: OSError, key: str) -> StorageError:
        text = error.strerror or type(error).__name__
        if error.errno in _LOST:
            return UndecidedError(f"The outcome of the disk operation is unknown: {text}.", where=self.uri(key))
        if error.errno in _DENIED:
            return StorageError(f"Permission denied: {text}.", where=self.uri(key))
        return StorageError(f"The disk operation failed: {text}.", where=self.uri(key))


class LocalWriter(Writer):
    """Fills a hidden file beside the target, then names it."""

    def __init__(self, storage: LocalStorage, key: str, mode: PutMode) -> None:
        self.closed = True  # until the temporary file exists
        self._storage, self._key, self._mode = storage, key, mode
        self._target = _path(key)
        self._folder = os.path.dirname(self._target.rstrip("/"))
        try:
            if mode is PutMode.CREATE and os.path.lexists(self._target):
                raise AlreadyExistsError("The file already exists.", where=storage.uri(key))
            _sweep(self._folder)
            self._fd, self._temporary = _open_temporary(self._folder)
        except OSError as error:
            if isinstance(error, AlreadyExistsError):
                raise
            raise storage._error(error, key) from error
        super().__init__(storage.uri(key))

    def _append(self, data: Bytes) -> None:
        rest = memoryview(data).cast("B")
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            self.abort()
            raise self._storage._error(error, self._key) from error

    def _publish(self) -> None:
        try:
            try:
                os.fsync(self._fd)
            finally:
                os.close(self._fd)
            if self._mode is PutMode.CREATE:
                self._link()
            else:
                os.replace(self._temporary, self._target)
        except OSError as error:
            if isinstance(error, AlreadyExistsError | UnsafeStorageError):
                raise
            raise self._storage._error(error, self._key) from error
        finally:
            with suppress(OSError):
                os.unlink(self._temporary)
        try:
            _sync_folder(self._folder)
        except OSError as error:
            raise UndecidedError(
                f"The file is in place, but its folder could not be synced to the disk: {error.strerror}.",
                where=self._storage.uri(self._key),
            ) from error

    def _link(self) -> None:
        where = self._storage.uri(self._key)
        try:
            os.link(self._temporary, self._target)
        except FileExistsError:
            # Network file systems repeat a request whose response was lost: then the existing name is our own.
            with suppress(OSError):
                if os.path.samefile(self._temporary, self._target):
                    return
            raise AlreadyExistsError("The file already exists.", where=where) from None
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise UnsafeStorageError(
                    f"This file system has no hard links ({error.strerror}), so a file cannot be created atomically.",
                    where=where,
                    advice="keep tables that are written to on a file system with hard links, or in an object store",
                ) from error
            raise

    def _discard(self) -> None:
        with suppress(OSError):
            os.close(self._fd)
        with suppress(OSError):
            os.unlink(self._temporary)


def _path(key: str) -> str:
    if not key or "\0" in key:
        raise InvalidArgumentError(f"{key!r} does not name a file.", where="file:///")
    return key if key[0] == "/" else "/" + key


def _hidden(name: str) -> bool:
    return name[0] == "." and _TEMPORARY.fullmatch(name) is not None


def _info(key: str, found: os.stat_result) -> ObjectInfo:
    tag = f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"
    return ObjectInfo(key, found.st_size, found.st_mtime_ns // 1_000_000, tag)


def _file_size(fd: int) -> int:
    found = os.fstat(fd)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return found.st_size


def _read_all(fd: int) -> bytes:
    size = _file_size(fd)
    data = os.read(fd, size + 1)  # one byte more: a short result is then known to be the end
    if len(data) == size:
        return data
    parts = [data]
    while chunk := os.read(fd, 1 << 20):
        parts.append(chunk)
    return b"".join(parts)


def _read_range(fd: int, size: int, start: int, length: int) -> bytes:
    begin = max(size + start, 0) if start < 0 else start
    wanted = max(min(length, size - begin), 0)
    data = os.pread(fd, wanted, begin)
    parts = [data]
    got = len(data)
    while got < wanted and (data := os.pread(fd, wanted - got, begin + got)):  # one call reads at most 2 GiB
        parts.append(data)
        got += len(data)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _sweep(folder: str) -> None:
    """Removes old temporary files, which nobody needs; what prevents that is no reason not to write."""
    now = system.current().now_ms()
    if abs(now - _swept.get(folder, 0)) < _SWEPT_MS:
        return
    if len(_swept) >= _FOLDERS:
        _swept.clear()
    _swept[folder] = now
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _hidden(entry.name):
                with suppress(OSError):
                    if entry.stat().st_mtime_ns // 1_000_000 < now - ABANDONED_MS:
                        os.unlink(entry.path)


def _open_temporary(folder: str) -> tuple[int, str]:
    """A new hidden file in `folder`, which is created if needed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    made = 0
    while True:
        temporary = f"{folder}/.boathouse-{os.getpid():x}-{system.current().uuid4().hex}.tmp"
        try:
            return os.open(temporary, flags, 0o666), temporary
        except FileExistsError:  # processes with the same seed draw the same names
            continue
        except FileNotFoundError:
            made += 1
            if made > _ATTEMPTS:  # as in /proc: the folder exists but accepts no files
                raise
            _make_folders(folder)


def _make_folders(folder: str) -> None:
    """Creates a folder and its parents, each synced to the disk: a commit must not vanish with its folder."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for made in reversed(missing):
        try:
            os.mkdir(made)
        except FileExistsError:
            if not os.path.isdir(made):  # a file, or a dangling link, is in the way
                raise
        _sync_folder(os.path.dirname(made))


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems have no fsync for folders
            raise
    finally:
        os.close(fd)
