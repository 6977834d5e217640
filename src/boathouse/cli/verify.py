"""verify: other libraries read the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, Final

import pyarrow as pa
import typer

import boathouse
from boathouse.arrow.checksum import Checksum
from boathouse.arrow.conform import conform
from boathouse.cli import show
from boathouse.cli.commands import Format, Json, Option, Path, Timestamp, Version, storage_options
from boathouse.cli.progress import spinner
from boathouse.errors import InvalidArgumentError, MissingRequirementError

Against = Annotated[
    str | None,
    typer.Option(
        "--against", metavar="NAMES", help="deltalake, pyiceberg, pylance, duckdb; those installed by default."
    ),
]


def register(app: typer.Typer) -> None:
    app.command()(verify)


def verify(
    path: Path, against: Against = None, format: Format = None, version: Version = None, timestamp: Timestamp = None,
    option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """Compares rows and a checksum that does not depend on their order with what other libraries read."""
    table = boathouse.open(path, format, version, timestamp, storage_options=storage_options(option))
    readers = _readers(table.format, against)
    if "duckdb" in readers and table.format == "delta" and (version, timestamp) != (None, None):
        raise InvalidArgumentError("duckdb reads the newest version of a Delta table only", advice="leave it out")
    found: list[dict[str, Any]] = []
    with spinner("reading"):
        ours = Checksum.of(conform(b, table.schema) for b in table.scan().to_batches())
        for name in readers:
            found.append({"reader": name} | _compared(name, table, storage_options(option), ours))
    holds = all(entry["same"] for entry in found)
    if json:
        own = {"rows": ours.rows, "checksum": ours.text}
        show.as_json({"format": table.format, "version": table.version, **own, "same": holds, "readers": found})
    else:
        rows = [("boathouse", show.number(ours.rows), ours.text, "")]
        rows += [(e["reader"], show.number(e["rows"]), e["checksum"], e["error"] or _said(e["same"])) for e in found]
        show.table(("reader", "rows", "checksum", ""), rows, right=("rows",))
    if not holds:
        raise typer.Exit(1)


def _said(same: bool) -> str:
    return "the same" if same else "other rows"


def _readers(format: str, against: str | None) -> list[str]:
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


def _compared(name: str, table: Any, options: dict[str, str], ours: Checksum) -> dict[str, Any]:
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
