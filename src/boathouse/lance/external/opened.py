"""Which manifest store a table has, and the store by its name: `sqlite:///{path}`, `dynamodb://{table}`."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Final

from boathouse.errors import InvalidArgumentError
from boathouse.lance.external.dynamodb import DynamoStore
from boathouse.lance.external.sqlite import SqliteStore
from boathouse.lance.external.store import ManifestStore
from boathouse.lance.manifests.names import store_name
from boathouse.storage import StorageOptions
from boathouse.storage.aws import S3Settings
from boathouse.storage.external import DYNAMODB
from boathouse.table.context import TableContext

_SQLITE: Final = "sqlite:///"


def store_of(context: TableContext) -> ManifestStore:
    """The store of a table that has one. Raises InvalidArgumentError for a name that is none, MissingRequirementError,
    StorageError."""
    name = store_name(context)
    assert name is not None
    if name.startswith(_SQLITE) and len(name) > len(_SQLITE):
        return SqliteStore(os.path.abspath(os.path.expanduser(name[len(_SQLITE) :])))
    if name.startswith(DYNAMODB) and len(name) > len(DYNAMODB):
        options = context.stores.options
        endpoint = os.environ.get("DYNAMODB_ENDPOINT")
        return _dynamodb(name[len(DYNAMODB) :], options, S3Settings.resolve(options), endpoint, os.getpid())
    raise InvalidArgumentError(
        f"{name!r} does not name a manifest store",
        where=context.location.uri,
        advice="write manifest_store=sqlite:///PATH, or dynamodb://TABLE",
    )


@lru_cache(maxsize=32)
def _dynamodb(
    table: str, options: StorageOptions, settings: S3Settings, endpoint: str | None, process: int
) -> DynamoStore:
    """One client for the same settings, since making one takes longer than a commit; not shared with a fork."""
    return DynamoStore.of(table, options)
