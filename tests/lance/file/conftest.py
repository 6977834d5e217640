"""Column shapes that a Lance data file can hold, and files of them."""

from __future__ import annotations

import glob
import io
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance
from boathouse.lance.file.reader import LanceFile
from boathouse.lance.file.writer import LanceWriter
from lance.file import LanceFileReader

rng = np.random.default_rng(7)


def nulls(array, share=0.2):
    return pc.if_else(pa.array(rng.random(len(array)) >= share), array, pa.scalar(None, array.type))


def lists(items, n, *, null=True, most=5):
    lengths = rng.integers(0, most, n)
    absent = rng.random(n) < 0.2 if null else np.zeros(n, bool)
    lengths[absent] = 0
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    ends = pa.array(offsets.tolist(), pa.int32(), mask=np.append(absent, False)) if null else pa.array(offsets)
    return pa.ListArray.from_arrays(ends, items(int(offsets[-1])))


def ints(n, kind=None):
    return pa.array(rng.integers(0, 100, n), kind or pa.int64())


def strings(n):
    return pa.array([f"val-{i * 7919 % 100003}-x" for i in range(n)], pa.string())


def long_strings(n):
    return pa.array([f"{i}" * (100 + i % 50) for i in range(n)], pa.string())


def vectors(n, dim, kind="f4"):
    return pa.FixedSizeListArray.from_arrays(pa.array(rng.random(n * dim).astype(kind)), dim)


def structs(n, *children, null=True):
    mask = pa.array(rng.random(n) < 0.2) if null else None
    return pa.StructArray.from_arrays([c(n) for c in children], [f"m{i}" for i in range(len(children))], mask=mask)


def few(n):
    return min(n, 500)


SHAPES = {
    **{f"int{b}": lambda n, b=b: pa.array(rng.integers(-100, 100, n), f"int{b}") for b in (8, 16, 32, 64)},
    **{f"uint{b}": lambda n, b=b: ints(n, f"uint{b}") for b in (8, 16, 32, 64)},
    **{f"null_int{b}": lambda n, b=b: nulls(ints(n, f"int{b}")) for b in (8, 16, 32, 64)},
    "sequence": lambda n: pa.array(np.arange(n)),
    "runs": lambda n: pa.array(np.arange(n) // 37 % 5000),
    "null_runs": lambda n: nulls(pa.array(np.arange(n) // 300, pa.int32())),
    "wide_int": lambda n: pa.array(rng.integers(-(2**62), 2**62, n)),
    "few_wide": lambda n: pa.array(rng.integers(0, 5, n) * 2**50 + 7),
    "double": lambda n: pa.array(rng.random(n)),
    "rounded": lambda n: pa.array(np.round(rng.random(n) * 100, 2)),
    "null_float": lambda n: nulls(pa.array(rng.random(n).astype("f4"))),
    "half": lambda n: pa.array(rng.random(n).astype("f2")),
    "bool": lambda n: pa.array(rng.random(n) < 0.5),
    "null_bool": lambda n: nulls(pa.array(rng.random(n) < 0.5)),
    "string": strings,
    "null_string": lambda n: nulls(strings(n)),
    "category": lambda n: nulls(pa.array([f"k{i % 7}" for i in range(n)], pa.string())),
    "hex": lambda n: pa.array([rng.bytes(8).hex() for _ in range(n)], pa.string()),
    "unicode": lambda n: nulls(pa.array([chr(200 + i % 5000) * (i % 9) for i in range(n)], pa.string())),
    "large_string": lambda n: nulls(strings(n).cast(pa.large_string())),
    "binary": lambda n: pa.array([rng.bytes(16) for _ in range(n)], pa.binary()),
    "large_binary": lambda n: pa.array([rng.bytes(16) for _ in range(n)], pa.large_binary()),
    "long_string": lambda n: nulls(long_strings(few(n))),
    "long_binary": lambda n: nulls(pa.array([rng.bytes(300 + i % 50) for i in range(few(n))], pa.binary())),
    "huge_string": lambda n: pa.array([f"{i}-" * 10000 for i in range(min(n, 30))], pa.large_string()),
    "constant": lambda n: pa.array([7] * n, pa.int32()),
    "null_constant": lambda n: nulls(pa.array([7] * n, pa.int32())),
    "constant_string": lambda n: nulls(pa.array(["abc"] * n, pa.string())),
    "constant_large": lambda n: pa.array(["abc"] * n, pa.large_string()),
    "empty_string": lambda n: nulls(pa.array([""] * n, pa.string())),
    "constant_bool": lambda n: nulls(pa.array([True] * n)),
    "constant_double": lambda n: pa.array([1.5] * n),
    "all_null": lambda n: pa.nulls(n, pa.int32()),
    "all_null_string": lambda n: pa.nulls(n, pa.string()),
    "null": lambda n: pa.nulls(n),
    "decimal": lambda n: nulls(pa.array([Decimal(i) / 100 for i in range(n)], pa.decimal128(20, 2))),
    "decimal256": lambda n: pa.array([Decimal(i) / 100 for i in range(n)], pa.decimal256(50, 2)),
    "fixed16": lambda n: nulls(pa.array([b"%016d" % i for i in range(n)], pa.binary(16))),
    "fixed3": lambda n: pa.array([b"%03d" % (i % 1000) for i in range(n)], pa.binary(3)),
    "fixed300": lambda n: pa.array([rng.bytes(300) for _ in range(few(n))], pa.binary(300)),
    "date": lambda n: pa.array(np.arange(n) % 30000, pa.int32()).cast(pa.date32()),
    "date64": lambda n: pa.array(np.arange(n) % 30000 * 86400000, pa.date64()),
    "timestamp": lambda n: nulls(pa.array(np.arange(n), pa.timestamp("us", "UTC"))),
    "timestamp_zone": lambda n: pa.array(np.arange(n), pa.timestamp("ns", "Europe/Berlin")),
    "timestamp_s": lambda n: pa.array(np.arange(n), pa.timestamp("s")),
    "duration": lambda n: pa.array(np.arange(n), pa.duration("ms")),
    "time32": lambda n: pa.array(np.arange(n) % 86400, pa.int32()).cast(pa.time32("s")),
    "time64": lambda n: nulls(pa.array(np.arange(n) % 86400, pa.time64("ns"))),
    "dictionary": lambda n: nulls(pa.array([f"k{i % 5}" for i in range(n)], pa.string()).dictionary_encode()),
    "dictionary8": lambda n: pa.array([f"k{i % 5}" for i in range(n)]).cast(pa.dictionary(pa.int8(), pa.string())),
    "dictionary_int": lambda n: pa.array((np.arange(n) % 9).tolist(), pa.int64()).dictionary_encode(),
    "vector4": lambda n: vectors(n, 4),
    "null_vector": lambda n: pa.array([None if i % 5 == 0 else [1.0 * i, 2.0] for i in range(few(n))], V2),
    "vector_nulls": lambda n: pa.array(
        [None if i % 5 == 0 else [1.0 * i, None if i % 3 == 0 else 2.0] for i in range(few(n))], V2
    ),
    "vector_vector": lambda n: pa.array([[[i, 2], [3, 4]] for i in range(few(n))], pa.list_(V2I, 2)),
    "vector_vector_nulls": lambda n: pa.array(
        [None if i % 7 == 0 else [[i, None if i % 3 else 2], None if i % 5 == 1 else [3, 4]] for i in range(few(n))],
        pa.list_(V2I, 2),
    ),
    "vector_bool": lambda n: pa.array([[True, False, i % 2 == 0] for i in range(few(n))], pa.list_(pa.bool_(), 3)),
    "embedding": lambda n: vectors(few(n), 128),
    "null_embedding": lambda n: nulls(vectors(few(n), 128)),
    "half_embedding": lambda n: vectors(few(n), 256, "f2"),
    "embedding_nulls": lambda n: pa.array(
        [None if i % 5 == 0 else [None if (i + j) % 7 == 0 else float(j) for j in range(100)] for i in range(few(n))],
        pa.list_(pa.float32(), 100),
    ),
    "list": lambda n: lists(ints, n),
    "list_no_nulls": lambda n: lists(lambda k: nulls(ints(k)), n, null=False),
    "list_string": lambda n: lists(lambda k: nulls(strings(k)), n),
    "list_category": lambda n: lists(lambda k: nulls(pa.array([f"s{i % 5}" for i in range(k)], pa.string())), n),
    "list_list": lambda n: lists(lambda k: lists(lambda q: nulls(ints(q)), k), n),
    "list_bool": lambda n: lists(lambda k: nulls(pa.array(rng.random(k) < 0.5)), n),
    "list_embedding": lambda n: lists(lambda k: nulls(vectors(k, 100)), few(n)),
    "list_long": lambda n: lists(lambda k: nulls(long_strings(k)), few(n)),
    "list_list_long": lambda n: lists(lambda z: lists(lambda k: nulls(long_strings(k)), z), few(n) // 3),
    "long_lists": lambda n: lists(lambda k: nulls(ints(k)), min(n, 60), most=5000),
    "absent_lists": lambda n: pa.array([[] if i % 3 else None for i in range(n)], pa.list_(pa.int32())),
    "null_lists": lambda n: pa.array([None] * n, pa.list_(pa.int32())),
    "list_constant": lambda n: lists(lambda k: pa.array([3] * k, pa.int32()), n),
    "list_constant_string": lambda n: lists(lambda k: nulls(pa.array(["abc"] * k, pa.string())), n),
    "list_null_items": lambda n: lists(lambda k: pa.nulls(k, pa.int32()), n),
    "large_list": lambda n: lists(lambda k: nulls(strings(k)), n).cast(pa.large_list(pa.string())),
    "struct": lambda n: structs(n, lambda k: nulls(ints(k)), strings),
    "struct_no_nulls": lambda n: structs(n, lambda k: nulls(ints(k)), strings, null=False),
    "struct_struct": lambda n: structs(n, lambda k: structs(k, ints, strings), ints),
    "struct_list": lambda n: structs(n, lambda k: lists(ints, k), lambda k: lists(lambda q: lists(ints, q), k)),
    "list_struct": lambda n: lists(lambda k: structs(k, lambda q: nulls(ints(q)), strings), n),
    "struct_all_null": lambda n: pa.array(
        [{"x": None} if i % 2 else None for i in range(n)], pa.struct([("x", pa.int32())])
    ),
    "struct_empty": lambda n: pa.array([{}] * n, pa.struct([])),
    "map": lambda n: pa.array(
        [None if i % 7 == 0 else [(f"k{j}", j if j % 2 else None) for j in range(i % 4)] for i in range(n)],
        pa.map_(pa.string(), pa.int64()),
    ),
    "map_list": lambda n: pa.array(
        [[("a", [1, None]), ("b", None), ("c", [])][: i % 4] for i in range(n)],
        pa.map_(pa.string(), pa.list_(pa.int64())),
    ),
    "vector_struct": lambda n: pa.array(
        [None if i % 4 == 0 else [{"x": i}, None if i % 3 == 0 else {"x": None}] for i in range(few(n))],
        pa.list_(pa.struct([("x", pa.int32())]), 2),
    ),
    "vector_struct3": lambda n: pa.array(
        [[{"x": i, "y": f"a{j}"} for j in range(3)] for i in range(few(n))],
        pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]), 3),
    ),
}
V2, V2I = pa.list_(pa.float32(), 2), pa.list_(pa.int32(), 2)


def _hint(kind, **metadata):
    return pa.field("a", kind, metadata={f"lance-encoding:{k.replace('_', '-')}": v for k, v in metadata.items()})


HINTS = {
    "blob": _hint(pa.large_binary(), blob="true"),
    "packed": _hint(pa.struct([("x", pa.int32()), ("y", pa.int64())]), packed="true"),
    "packed_string": _hint(pa.struct([("x", pa.int32()), ("y", pa.string()), ("z", pa.float64())]), packed="true"),
    "packed_vector": _hint(pa.struct([("x", pa.int32()), ("y", pa.list_(pa.float32(), 4))]), packed="true"),
    "zstd": _hint(pa.int64(), compression="zstd"),
    "lz4": _hint(pa.float64(), compression="lz4"),
    "zstd_string": _hint(pa.string(), compression="zstd"),
    "lz4_string": _hint(pa.string(), compression="lz4"),
    "fsst_string": _hint(pa.string(), compression="fsst"),
    "split": _hint(pa.float64(), compression="zstd", bss="on"),
    "split_float": _hint(pa.float32(), compression="lz4", bss="on"),
    "rle": _hint(pa.int32(), rle_threshold="1.0"),
    "full_zip": _hint(pa.int64(), structural_encoding="fullzip"),
    "full_zip_string": _hint(pa.string(), structural_encoding="fullzip"),
    "full_zip_list": _hint(pa.list_(pa.int32()), structural_encoding="fullzip"),
    "full_zip_zstd": _hint(pa.string(), structural_encoding="fullzip", compression="zstd"),
}


def _value(kind, i, nullable=True):
    t = pa.types
    if i % 11 == 3 and nullable and not t.is_struct(kind):
        return None
    if t.is_struct(kind):
        return {f.name: _value(f.type, i, False) for f in kind}
    if t.is_fixed_size_list(kind):
        return [float(i)] * kind.list_size
    if t.is_list(kind):
        return [_value(kind.value_type, i + j) for j in range(i % 4)]
    if t.is_string(kind):
        return f"st{i // 3}" * (i % 6)
    if t.is_large_binary(kind):
        return b"ab" * (i % 5)
    return (i // 3) * 0.25 if t.is_floating(kind) else i // 3


def build(shape, n):
    """A table with the one column `a`."""
    if shape in HINTS:
        kind = HINTS[shape]
        return pa.table([pa.array([_value(kind.type, i) for i in range(n)], kind.type)], schema=pa.schema([kind]))
    return pa.table({"a": SHAPES[shape](n)})


def difference(got, want):
    """'' if the arrays mean the same and `got` is valid Arrow."""
    got = got.combine_chunks() if isinstance(got, pa.ChunkedArray) else got
    want = want.combine_chunks() if isinstance(want, pa.ChunkedArray) else want
    got.validate(full=True)
    want = want.storage if isinstance(want.type, pa.BaseExtensionType) else want
    if pa.types.is_dictionary(want.type):
        want = want.cast(want.type.value_type)
        got = got.cast(want.type)
    if got.equals(want) or repr(got.to_pylist()) == repr(want.to_pylist()):
        return ""
    return f"{got.to_pylist()[:20]} is not {want.to_pylist()[:20]}"


class LocalFiles:
    """Opens local files and counts the bytes read."""

    def __init__(self):
        self.bytes = 0

    def open_input(self, uri):
        outer, inner = self, pa.OSFile(uri)

        class Counting:
            def read_at(self, nbytes, offset):
                outer.bytes += nbytes
                return inner.read_at(nbytes, offset)

            def size(self):
                return inner.size()

            def close(self):
                inner.close()

        return Counting()


class Kit:
    shapes, hints = SHAPES, HINTS
    build, difference = staticmethod(build), staticmethod(difference)
    LocalFiles = LocalFiles

    def __init__(self, tmp):
        self.tmp = tmp
        self.count = 0

    def pylance(self, table, version="2.2", **options):
        """(data file, dataset) written by pylance; skips what it cannot hold."""
        self.count += 1
        root = f"{self.tmp}/d{self.count}"
        try:
            dataset = lance.write_dataset(table, root, data_storage_version=version, **options)
            dataset.to_table()
        except BaseException as error:  # its panics are no Exceptions
            if isinstance(error, KeyboardInterrupt):
                raise
            pytest.skip(f"pylance: {str(error)[:80]}")
        return glob.glob(f"{root}/data/*.lance")[0], dataset

    def ours(self, table, **options):
        """(bytes, summary) of a file that we write."""
        sink = io.BytesIO()
        writer = LanceWriter(sink, table.schema, **options)
        writer.write(table)
        summary = writer.close()
        return sink.getvalue(), summary

    def check(self, table, **options):
        """pylance's scan, range and take of our file, and our own scan."""
        raw, summary = self.ours(table, **options)
        assert (summary.rows, summary.size) == (len(table), len(raw))
        path = str(self.tmp / "ours.lance")
        with open(path, "wb") as file:
            file.write(raw)
        want = table.column("a").combine_chunks()
        theirs = LanceFileReader(path).read_all().to_table().column("a").combine_chunks()
        theirs = theirs.storage if isinstance(theirs.type, pa.BaseExtensionType) else theirs
        assert self.difference(theirs, want) == ""
        n = len(want)
        if n > 3:
            rows = sorted({0, 1, n // 3, n // 2, n - 1})
            taken = LanceFileReader(path).take_rows(rows).to_table().column("a")
            assert self.difference(taken, want.take(pa.array(rows))) == ""
            part = LanceFileReader(path).read_range(n // 3, n // 4).to_table().column("a")
            assert self.difference(part, want.slice(n // 3, n // 4)) == ""
        with self.open(path) as file:
            assert self.difference(file.read().column("a"), want) == ""
            if n:
                picked = np.random.default_rng(n).integers(0, n, 20)
                assert self.difference(file.take(picked).column("a"), want.take(pa.array(picked))) == ""

    def open(self, uri, **options):
        if isinstance(uri, bytes):
            path = self.tmp / "bytes.lance"
            path.write_bytes(uri)
            uri = str(path)
        return LanceFile.open(LocalFiles(), uri, **options)


@pytest.fixture
def kit(tmp_path):
    return Kit(tmp_path)


def pytest_generate_tests(metafunc):
    if "shape" in metafunc.fixturenames:
        metafunc.parametrize("shape", [*SHAPES, *HINTS])
    if "hinted" in metafunc.fixturenames:
        metafunc.parametrize("hinted", [name for name in HINTS if name != "blob"])
    if "plain_shape" in metafunc.fixturenames:
        metafunc.parametrize("plain_shape", list(SHAPES))
