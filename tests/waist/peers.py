"""Tables as the format's own library reads them."""

from __future__ import annotations

import os

import deltalake
import pyarrow as pa
from pyiceberg.table import StaticTable

import boathouse as bh
import lance


def by_peer(uri: str, format: str) -> pa.Table:
    """All rows of the newest version; the toy format has no library but this one."""
    path = uri.removeprefix("file://")
    match format:
        case "delta":
            builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
            return pa.table(builder.execute("select * from t").read_all())
        case "iceberg":
            return StaticTable.from_metadata(newest_metadata(path)).scan().to_arrow()
        case "lance":
            return lance.dataset(path).to_table()
    return bh.open(uri, format=format).to_arrow()


def newest_metadata(path: str) -> str:
    """The newest metadata file of an Iceberg table without a catalog."""
    names = [n for n in os.listdir(f"{path}/metadata") if n.endswith(".metadata.json")]
    return f"{path}/metadata/" + max(names, key=lambda n: int(n.removeprefix("v").split(".")[0]))
