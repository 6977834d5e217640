"""The rows of a table as other libraries read them, compared with ours; loaded by the command `verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import pyarrow as pa

from boathouse.arrow.checksum import Checksum
from boathouse.arrow.conform import conform
from boathouse.errors import InvalidArgumentError, MissingRequirementError


def checksum(table: Any) -> Checksum:
    """That of our own rows."""
    return Checksum.of(conform(b, table.schema) for b in table.scan().to_batches())


def readers(format: str, against: str | None) -> list[str]:
    """The libraries to ask. Raises InvalidArgumentError, MissingRequirementError."""
    able = [name for name, (_, formats, _) in _READERS.items() if format in formats]
    if against is None:
        names = [name for name in able if name != "duckdb" and find_spec(_READERS[name][0]) is not None]
        if not names:
            raise MissingRequirementError(f"no other reader of {format} is installed", advice=f"install {able[0]}")
        return names
    names = [name.strip().lower() for name in against.split(",") if name.strip()]
    for name in names:
        if name not in able:
            raise InvalidArgumentError(
                f"--against {name}: it does not read {format}", advice=f"name {' or '.join(able)}"
            )
        if find_spec(_READERS[name][0]) is None:
            raise MissingRequirementError(f"{name} is not installed", advice=f"run pip install {name}")
    return names


def compared(name: str, table: Any, options: dict[str, str], ours: Checksum) -> dict[str, Any]:
    read = _READERS[name][2]
    try:
        found = Checksum.of(conform(b, table.schema) for b in read(table, options))
    except Exception as error:  # whatever the other library raises is its answer
        first = (str(error).splitlines() or [""])[0]
        return {"rows": None, "checksum": None, "same": False, "error": f"{type(error).__name__}: {first}"}
    return {"rows": found.rows, "checksum": found.text, "same": found == ours, "error": None}


def _deltalake(table: Any, options: dict[str, str]) -> Iterator[pa.RecordBatch]:
    deltalake = import_module("deltalake")
    other = deltalake.DeltaTable(table.uri, version=table.version, storage_options=options or None)
    rows = deltalake.QueryBuilder().register("t", other).execute("select * from t")
    yield from pa.RecordBatchReader.from_stream(rows)


def _pyiceberg(table: Any, options: dict[str, str]) -> Iterator[pa.RecordBatch]:
    static = import_module("pyiceberg.table").StaticTable
    other = static.from_metadata(table.detail()["metadata"], options)
    snapshot = None if table.version is None else int(table.version)
    yield from other.scan(snapshot_id=snapshot).to_arrow_batch_reader()


def _pylance(table: Any, options: dict[str, str]) -> Iterator[pa.RecordBatch]:
    uri = table.uri.removeprefix("file://")
    yield from import_module("lance").dataset(uri, version=table.version, storage_options=options or None).to_batches()


def _duckdb(table: Any, options: dict[str, str]) -> Iterator[pa.RecordBatch]:
    duckdb = import_module("duckdb")
    connection = duckdb.connect()
    extension = table.format
    with suppress(duckdb.Error):
        connection.execute(f"INSTALL {extension}")
    connection.execute(f"LOAD {extension}")
    if extension == "iceberg":
        found = connection.execute(
            "SELECT * FROM iceberg_scan(?, snapshot_from_id => ?::UBIGINT)", [table.detail()["metadata"], table.version]
        )
    else:
        found = connection.execute("SELECT * FROM delta_scan(?)", [table.uri])
    yield from found.fetch_record_batch(100_000)


_READERS: Final[dict[str, tuple[str, tuple[str, ...], Callable[..., Iterator[pa.RecordBatch]]]]] = {
    "deltalake": ("deltalake", ("delta",), _deltalake),
    "pyiceberg": ("pyiceberg", ("iceberg",), _pyiceberg),
    "pylance": ("lance", ("lance",), _pylance),
    "duckdb": ("duckdb", ("delta", "iceberg"), _duckdb),
}
