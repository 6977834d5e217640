"""The format's own library at a table, or what stands in for it: how it reads, appends, and cleans the history."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import deltalake
import pyarrow as pa
from pyiceberg.table import StaticTable
from toy_format.state import clean as clean_toy

import boathouse as bh
import lance


@dataclass(frozen=True)
class Peer:
    """`rows` reads the newest version. `clean` removes every version but the newest as the library does, `forget` all
    but so many by removing their documents, whatever the library would say."""

    rows: Callable[[str], pa.Table]
    append: Callable[[str, pa.Table], object]
    clean: Callable[[str], None]
    forget: Callable[[str, int], None]


def by_peer(uri: str, format: str) -> pa.Table:
    """All rows of the newest version; the toy format has no library but this one."""
    return PEERS[format].rows(uri)


def newest_metadata(path: str) -> str:
    """The newest metadata file of an Iceberg table without a catalog."""
    return f"{path}/metadata/{_iceberg_documents(path)[-1]}"


def _path(uri: str) -> str:
    return uri.removeprefix("file://")


def _remove(folder: str, names: list[str]) -> None:
    for name in names:
        os.remove(f"{folder}/{name}")


def _by_us(format: str) -> tuple[Callable[[str], pa.Table], Callable[[str, pa.Table], object]]:
    return (
        lambda uri: bh.open(uri, format=format).to_arrow(),
        lambda uri, rows: bh.open(uri, format=format).append(rows),
    )


def _delta_rows(uri: str) -> pa.Table:
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(_path(uri)))
    return pa.table(builder.execute("select * from t").read_all())


def _delta_entries(uri: str) -> list[str]:
    return sorted(n for n in os.listdir(f"{_path(uri)}/_delta_log") if n.endswith(".json") and n[0] != "_")


def _delta_cleaned(uri: str) -> None:
    table = deltalake.DeltaTable(_path(uri))
    table.create_checkpoint()
    time.sleep(0.05)  # the retention of nothing is over
    table.cleanup_metadata()
    assert _delta_entries(uri) == [f"{table.version():020}.json"]


def _delta_forgotten(uri: str, keep: int) -> None:
    deltalake.DeltaTable(_path(uri)).create_checkpoint()
    _remove(f"{_path(uri)}/_delta_log", _delta_entries(uri)[:-keep])


def _iceberg_documents(uri: str) -> list[str]:
    names = [n for n in os.listdir(f"{_path(uri)}/metadata") if n.endswith(".metadata.json")]
    return sorted(names, key=lambda n: int(n.removeprefix("v").split(".")[0]))


def _iceberg_forgotten(uri: str, keep: int) -> None:
    """As Iceberg's Java does with write.metadata.delete-after-commit.enabled."""
    _remove(f"{_path(uri)}/metadata", _iceberg_documents(uri)[:-keep])


def _lance_cleaned(uri: str) -> None:
    lance.dataset(_path(uri)).cleanup_old_versions(older_than=dt.timedelta(0))


def _lance_forgotten(uri: str, keep: int) -> None:
    path = _path(uri)
    manifests = sorted(n for n in os.listdir(f"{path}/_versions") if n.endswith(".manifest"))
    _remove(f"{path}/_versions", manifests[keep:])  # their names count down
    _remove(f"{path}/_transactions", os.listdir(f"{path}/_transactions"))


PEERS = {
    "toy": Peer(*_by_us("toy"), lambda uri: clean_toy(uri, 1), clean_toy),
    "delta": Peer(
        _delta_rows,
        lambda uri, rows: deltalake.write_deltalake(_path(uri), rows, mode="append"),
        _delta_cleaned,
        _delta_forgotten,
    ),
    "iceberg": Peer(
        lambda uri: StaticTable.from_metadata(newest_metadata(_path(uri))).scan().to_arrow(),
        _by_us("iceberg")[1],
        lambda uri: _iceberg_forgotten(uri, 1),
        _iceberg_forgotten,
    ),
    "lance": Peer(
        lambda uri: lance.dataset(_path(uri)).to_table(),
        lambda uri, rows: lance.write_dataset(rows, _path(uri), mode="append"),
        _lance_cleaned,
        _lance_forgotten,
    ),
}
"""The toy and Iceberg without a catalog have no other library that writes."""
