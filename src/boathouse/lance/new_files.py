"""Files under names that nobody else has."""

from __future__ import annotations

from boathouse.storage import Bytes, PutMode, Storage


def put_new(storage: Storage, key: str, data: Bytes) -> None:
    """Puts a file whose name is random, and so new: where the store can, it is asked. Raises AlreadyExistsError,
    StorageError."""
    storage.put(key, data, PutMode.CREATE if storage.atomic_create else PutMode.OVERWRITE)
