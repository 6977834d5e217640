"""ORC and Avro files that are damaged, hostile, or in a store that fails: typed errors."""

import io
import random

import pyarrow as pa
import pytest
from file_writers import (
    edited_footer,
    message,
    put,
    stripes,
    types,
    write_avro,
    write_orc,
)
from mixed_files import (
    EVERY,
    PLAIN,
    opener,
    plain,
    random_rows,
)

import boathouse as bh
from boathouse.arrow.filesystem import NativeFiles
from boathouse.avro.rows import open_avro
from boathouse.errors import (
    BoathouseError,
    CorruptTableError,
    StorageError,
    UnsupportedFeatureError,
)
from boathouse.iceberg.data_files.reading import open_file, scan_open
from boathouse.orc.rows import open_orc
from boathouse.parquet.matching import Matching
from boathouse.parquet.read import SourceColumn, output_schema
from boathouse.storage import StorageOptions
from boathouse.table.units import AVRO, ORC
from boathouse.types import (
    INT64,
)


@pytest.fixture
def new(tmp_path):
    return opener(tmp_path)


def outcome(format, path, columns):
    """What reading gives: a table, or a typed error."""
    source = open_file({"orc": ORC, "avro": AVRO}[format], NativeFiles(StorageOptions()), f"file://{path}", Matching())
    try:
        found = pa.Table.from_batches(list(scan_open(source, columns)), output_schema(columns))
    finally:
        source.close()
    found.validate()
    return found


@pytest.mark.spec("I-282", "I-295")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("format", ("orc", "avro"))
def test_damaged_files_give_typed_errors(new, format, seed):
    chance = random.Random(seed)
    files = new(EVERY)
    path, rows = files._file(format), random_rows(files.schema, 40, chance)
    columns = [SourceColumn(f.name, f.type, field_id=f.id) for f in bh.open(str(files.root))._handle.snapshot.schema]
    if format == "orc":
        write_orc(path, rows, files.schema, compression=("uncompressed", "zlib")[seed])
    else:
        write_avro(path, rows, files.schema, codec=("null", "deflate")[seed], sync_interval=900)
    good = path.read_bytes()
    assert outcome(format, path, columns).num_rows == 40
    seen = set()
    for _ in range(30):
        bad = bytearray(good)
        match chance.randrange(4):
            case 0:
                del bad[chance.randrange(len(bad)) :]
            case 1:
                bad[-chance.randrange(1, 300)] = chance.randrange(256)
            case _:
                bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        path.write_bytes(bad)
        try:
            outcome(format, path, columns)
            seen.add("read")
        except BoathouseError as error:
            assert error.where == f"file://{path}"
            seen.add("refused")
    assert seen == {"read", "refused"}


HUGE = 1 << 40
HOSTILE = {
    "rows": (lambda f, s: (put(stripes(lambda p: put(p, 5, HUGE))(f, s)[0], 6, HUGE), s), "claim"),
    "rows of the file": (lambda f, s: (put(f, 6, HUGE), s), "do not have the rows"),
    "place": (stripes(lambda p: put(p, 1, HUGE)), "overlaps"),
    "data": (stripes(lambda p: put(p, 3, HUGE)), "overlaps"),
    "block": (lambda f, s: (f, put(s, 3, HUGE)), "postscript"),
    "magic": (lambda f, s: (f, put(s, 8000, b"CRO")), "not an ORC file"),
    "codec": (lambda f, s: (f, put(s, 2, 9)), "compression 9"),
    "encrypted": (lambda f, s: ([*f, (10, 2, b"")], s), "encrypted"),
    "no types": (lambda f, s: ([x for x in f if x[0] != 4], s), "no columns"),
    "a type below itself": (types(lambda n, t: [(2, 0, 0), *t] if n == 0 else t), "wrong fields"),
    "types in another order": (
        types(lambda n, t: [(x, w, b"\x02\x01\x03" if x == 2 else v) for x, w, v in t] if n == 0 else t), "order"),
    "too few fields": (types(lambda n, t: [x for x in t if x[0] != 3] if n == 0 else t), "wrong fields"),
    "a kind": (types(lambda n, t: put(t, 1, 99) if n == 1 else t), "unknown type 99"),
    "an id": (types(lambda n, t: [x for x in t if x[0] != 7] + [
        (7, 2, message([(1, 2, b"iceberg.id"), (2, 2, b"-4")]))] if n == 1 else t), "field id '-4'"),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_orc(new, what):
    files = new(PLAIN)
    path = files._file("orc")
    write_orc(path, plain(*range(50)), files.schema)
    edit, words = HOSTILE[what]
    edited_footer(path, edit)
    with pytest.raises((CorruptTableError, UnsupportedFeatureError), match=words):
        outcome("orc", path, [SourceColumn("id", INT64, field_id=1)])


def test_deep_types_of_orc(new):
    files = new(PLAIN)
    path = files._file("orc")
    write_orc(path, plain(1), files.schema)
    deep = [(4, 2, message([(1, 0, 12), (2, 0, i + 1), (3, 2, b"x")])) for i in range(50_000)]
    last = (4, 2, message([(1, 0, 4)]))
    edited_footer(path, lambda f, s: ([x for x in f if x[0] != 4] + deep + [last], s))
    with pytest.raises(CorruptTableError, match="nested too deeply"):
        outcome("orc", path, [SourceColumn("id", INT64, field_id=1)])


def test_an_avro_block_that_claims_what_it_has_not(new):
    files = new(PLAIN)
    path = files._file("avro")
    write_avro(path, plain(1, 2), files.schema, codec="null")
    data = path.read_bytes()
    sync = data[-16:]
    header = data[: data.index(sync) + 16]
    for block, words in (
        (b"\xfe\xff\xff\xff\x7f\x04ab", "claims"), (b"\x02\xfe\xff\xff\xff\x7fab", "cut short"),
        (b"\x01\x04ab", "corrupt"), (b"\x02\x06abc", "decoded"), (b"\xff" * 30, "corrupt"),
    ):  # fmt: skip
        path.write_bytes(header + block + sync)
        with pytest.raises(CorruptTableError, match=words):
            outcome("avro", path, [SourceColumn("id", INT64, field_id=1)])


class Failing(io.FileIO):
    """A file of a store that fails after some reads."""

    def __init__(self, path, reads):
        super().__init__(path)
        self.left = reads

    def open_input(self, uri, size=None):
        return pa.PythonFile(self, mode="r")

    def read(self, size=-1):
        self.left -= 1
        if self.left < 0:
            raise StorageError("The store does not answer.", where=self.name)
        return super().read(size)


@pytest.mark.parametrize("format", ("orc", "avro"))
def test_errors_of_the_store_are_no_damage(new, format):
    files = new(PLAIN)
    path = files._file(format)
    {"orc": write_orc, "avro": write_avro}[format](path, plain(*range(9)), files.schema)
    failed = 0
    for reads in range(20):
        open = {"orc": open_orc, "avro": open_avro}[format]
        store = Failing(path, reads)
        try:
            source = open(store, "file:///x", Matching())
            rows = sum(b.num_rows for b in scan_open(source, [SourceColumn("id", INT64, field_id=1)]))
            break
        except StorageError as error:
            assert "does not answer" in str(error)
            failed += 1
        finally:
            store.close()
    assert rows == 9 and failed > 1
