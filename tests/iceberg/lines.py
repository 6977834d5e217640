"""Tables with branches: in a folder, in a SQL catalog, and in a catalog whose client commits; as PyIceberg reads
them."""

from pathlib import Path

import pyarrow as pa
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.iceberg.catalogs import pyiceberg

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])
PLACES = ("folder", "sql", "client")


def rows(*ids, p=None):
    return pa.table({"id": list(ids), "p": [p or f"p{i % 2}" for i in ids]}, SCHEMA)


def ids(table):
    return sorted(table.to_arrow()["id"].to_pylist())


class Line:
    """A table of one place: ours, opened at a ref, and PyIceberg's view of the same."""

    def __init__(self, place, root, monkeypatch, properties=None, partition_by=("p",)):
        self.place, self.path = place, str(root / "t")
        if place == "folder":
            made = bh.create(self.path, SCHEMA, format="iceberg", partition_by=partition_by, properties=properties)
            made.append(rows(1, 2, 3))
            return
        from pyiceberg.catalog import load_catalog
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.transforms import IdentityTransform
        from pyiceberg.types import LongType, NestedField, StringType

        if place == "client":
            monkeypatch.setattr(pyiceberg.SqlRow, "of", lambda *args: None)
        self.options = {"type": "sql", "uri": f"sqlite:///{root}/c.db", "warehouse": f"file://{root}/wh"}
        (root / "wh").mkdir()
        self.theirs = load_catalog("prod", **self.options)
        self.theirs.create_namespace("db")
        schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", StringType()))
        spec = PartitionSpec(*(PartitionField(2, 1000, IdentityTransform(), name) for name in partition_by))
        self.theirs.create_table("db.t", schema, partition_spec=spec, properties=properties or {})
        self.open().append(rows(1, 2, 3))

    def open(self, ref=None, **point):
        if self.place == "folder":
            return bh.open(self.path, ref=ref, **point)
        return bh.catalog("prod", **self.options).open("db.t", ref=ref, **point)

    def seen(self):
        """PyIceberg's table."""
        if self.place != "folder":
            return self.theirs.load_table("db.t")
        files = Path(self.path, "metadata").glob("v*.metadata.json")
        return StaticTable.from_metadata(f"file://{max(files, key=lambda p: int(p.name[1:].split('.')[0]))}")

    def refs(self):
        """Name, type, snapshot and the settings that there are, as PyIceberg has them."""
        found = {
            name: ref.model_dump(exclude_none=True, mode="json") for name, ref in self.seen().metadata.refs.items()
        }
        return {name: {k.replace("-", "_"): v for k, v in ref.items()} for name, ref in found.items()}

    def heads(self):
        return {name: ref["snapshot_id"] for name, ref in self.refs().items()}

    def theirs_at(self, ref):
        table = self.seen()
        return sorted(table.scan(snapshot_id=table.snapshot_by_name(ref).snapshot_id).to_arrow()["id"].to_pylist())

    def agree(self, ref=None):
        """The ids at a ref, which PyIceberg reads too."""
        mine = ids(self.open(ref))
        assert mine == self.theirs_at(ref or "main")
        return mine
