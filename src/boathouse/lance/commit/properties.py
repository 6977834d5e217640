"""The properties of a transaction: write id, message, and whatever else a change records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from boathouse.table.change import Change

WRITE_ID = "boathouse.write-id"
OPERATION = "boathouse.operation"
PARAMETERS = "boathouse.parameters"
METRICS = "boathouse.metrics"
METADATA = "boathouse.metadata"
TXN_APP = "boathouse.txn-app"
TXN_VERSION = "boathouse.txn-version"
MESSAGE = "__lance_commit_message"
"""The key under which pylance stores a commit's message."""
OWN = frozenset((WRITE_ID, MESSAGE, OPERATION, PARAMETERS, METRICS, METADATA, TXN_APP, TXN_VERSION))


def properties_of(change: Change) -> dict[str, str]:
    """The transaction properties of a change."""
    found = {WRITE_ID: change.write_id, OPERATION: change.operation}
    if change.message is not None:
        found[MESSAGE] = change.message
    if change.txn is not None:
        found[TXN_APP], found[TXN_VERSION] = change.txn[0], str(change.txn[1])
    for key, value in ((PARAMETERS, change.parameters), (METRICS, change.metrics), (METADATA, change.metadata)):
        if value:
            found[key] = json.dumps(dict(value), ensure_ascii=False)
    return found


def document(properties: Mapping[str, str], key: str) -> dict[str, Any]:
    """A JSON object among the properties; another writer's value under our key is ignored."""
    try:
        found = json.loads(properties.get(key, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def app_version(properties: Mapping[str, str], app: str) -> int | None:
    """The version that the application `app` recorded, None if another or none did."""
    text = properties.get(TXN_VERSION, "")
    return int(text) if properties.get(TXN_APP) == app and text.lstrip("-").isdigit() else None
