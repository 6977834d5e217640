"""Set properties: the table's own configuration."""

from __future__ import annotations

from collections.abc import Mapping

from boathouse.errors import InvalidArgumentError
from boathouse.ops.changes import base_change
from boathouse.ops.handle import Handle, WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.run import Planned, new_write_id, run
from boathouse.table.change import SetProperties
from boathouse.table.format import Snapshot


def set_properties(
    handle: Handle, properties: Mapping[str, str | None], options: WriteOptions = WriteOptions()
) -> tuple[Snapshot, WriteResult]:
    """Sets the properties; None removes one. Raises InvalidArgumentError for values that are not strings."""
    for key, value in properties.items():
        if not isinstance(key, str) or not (value is None or isinstance(value, str)):
            raise InvalidArgumentError(f"property {key!r}: {value!r} is not a string", advice="pass strings")
    write_id = new_write_id()

    def plan(snapshot: Snapshot, previous: Planned | None) -> Planned:
        if not properties:
            return Planned(None)
        edits = (SetProperties(dict(properties)),)
        return Planned(base_change(handle, snapshot, "set-properties", write_id, options, edits))

    return run(handle, "set-properties", options, plan)
