"""Bytes by key, on the local disk, in memory, and on S3, GCS and Azure.

`Stores(options).resolve(uri)` gives `(Storage, key)`. URIs are raw, never percent-encoded: see `uris`.
"""

from boathouse.storage.base import Bytes, ObjectInfo, PutMode, Storage, Writer
from boathouse.storage.local import LocalStorage
from boathouse.storage.memory import MemoryStorage
from boathouse.storage.options import StorageOptions
from boathouse.storage.stores import Stores
from boathouse.storage.uris import absolute, basename, join, parent, relative, same, split

__all__ = [
    "Bytes",
    "LocalStorage",
    "MemoryStorage",
    "ObjectInfo",
    "PutMode",
    "Storage",
    "StorageOptions",
    "Stores",
    "Writer",
    "absolute",
    "basename",
    "join",
    "parent",
    "relative",
    "same",
    "split",
]
