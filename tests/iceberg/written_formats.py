"""Tables whose files we write in ORC and Avro."""

from pathlib import Path

import pyarrow as pa
from file_writers import fields_of, split_orc

import boathouse as bh
from boathouse.types import DOUBLE, INT64, STRING, Field, Schema

WRITTEN = ("orc", "avro")
MODES = {f"write.{operation}.mode": "merge-on-read" for operation in ("delete", "update", "merge")}
PLAIN = Schema((Field("id", INT64), Field("s", STRING), Field("x", DOUBLE)))


def formatted(format, **more):
    return {"write.format.default": format, **more}


def rows(*ids):
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"s{i}" for i in ids], "x": [i / 2 for i in ids]})


def ids_of(root):
    return sorted(bh.open(str(root)).scan(columns=["id"]).to_arrow()["id"].to_pylist())


def live(root):
    """Live data files by the columns of `files`."""
    return bh.open(str(root)).inspect.files().to_pylist()


def local(path):
    return Path(path.removeprefix("file://"))


def orc_types(path):
    """The attributes of each type of an ORC file."""
    _, footer, _ = split_orc(path.read_bytes())
    kinds = [list(fields_of(v)) for n, _, v in fields_of(footer) if n == 4]
    pairs = [[{m: v for m, _, v in fields_of(a)} for n, _, a in kind if n == 7] for kind in kinds]
    return [{p[1].decode(): p[2].decode() for p in found} for found in pairs]
