"""How values are made small: dictionaries, runs, compressed chunks and values, and what fields' metadata ask for."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
import lance
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.lance.file import messages as m
from boathouse.lance.file.container import Container

WORDS = [f"{a}{b}" for a in ("deposit", "pack", "quick", "iron", "final", "ever") for b in ("", "s", "ly", "ing", "ed")]


WHERE = "discount = cast('0.05' as decimal(15, 2)) and key > 500"


def sentences(n: int, words: int, seed: int = 1) -> pa.Array:
    rng = random.Random(seed)
    made = [" ".join(rng.choices(WORDS, k=rng.randrange(1, words))) for _ in range(n)]
    return pa.array([None if i % 17 == 3 else "" if i % 29 == 4 else made[i] for i in range(n)])


def layouts(kit, raw: bytes) -> list[m.PageLayout]:
    """Of the pages of the only column."""
    with kit.open(raw) as file:
        container: Container = file._container
        pages = container.column(0).pages
        return [m.PageLayout.decode(container.encoding(page.encoding).value) for page in pages]


def codec(layout: m.PageLayout) -> str:
    """The codecs from the outside to the inside."""
    body = layout.mini_block or layout.full_zip
    encoding, names = body.value_compression, ["mini" if layout.mini_block else "zip"]
    while encoding is not None:
        (name,) = (n for n, v in encoding.__dict__.items() if v is not None and n != "unknown")
        names.append(name)
        encoding = getattr(getattr(encoding, name), "values", None)
    return " ".join(names)


def test_texts_are_compressed_in_chunks(kit):
    for version in ("2.1", "2.2"):
        table = pa.table({"a": sentences(20_000, 12)})
        kit.check(table, version=version)
        raw, _ = kit.ours(table, version=version)
        assert {codec(x) for x in layouts(kit, raw)} == {"mini general variable"}
        assert len(raw) < 0.6 * table.nbytes


@pytest.mark.parametrize(("words", "layout"), [(120, "mini general variable"), (2000, "zip general variable")])
def test_long_texts(kit, words, layout):
    """Documents together, up to a size; longer ones each alone, as a random access reads them whole."""
    table = pa.table({"a": sentences(300, words)})
    kit.check(table)
    raw, _ = kit.ours(table)
    assert {codec(x) for x in layouts(kit, raw)} == {layout}
    assert len(raw) < 0.6 * table.nbytes
    kit.check(table, version="2.1")
    lists = pa.ListArray.from_arrays(pa.array(range(0, 301, 3), pa.int32()), table["a"].combine_chunks())
    kit.check(pa.table({"a": lists}))


def test_one_long_text_among_short_ones(kit):
    values = sentences(5000, 12).to_pylist()
    values[2500] = "abc " * 500_000
    kit.check(pa.table({"a": values}))
    kit.check(pa.table({"a": values}), version="2.1")


def test_what_does_not_become_smaller_is_stored_as_it_is(kit):
    noise = np.random.default_rng(3).bytes(40 * 4000)
    table = pa.table({"a": pa.array([noise[i * 40 : i * 40 + 40] for i in range(4000)])})
    kit.check(table)
    raw, _ = kit.ours(table)
    assert {codec(x) for x in layouts(kit, raw)} == {"mini variable"}
    short, _ = kit.ours(pa.table({"a": sentences(100, 12)}))
    assert {codec(x) for x in layouts(kit, short)} == {"mini variable"}, "too little to be worth it"


FEW = {
    "decimal": pa.array([None if i % 13 == 5 else Decimal(i % 11) / 100 for i in range(9000)], pa.decimal128(15, 2)),
    "double": pa.array([[0.1, float("nan"), -0.0, 0.0, None][i % 5] for i in range(9000)]),
    "float": pa.array([[0.1, -5.5][(i * i) % 2] for i in range(9000)], pa.float32()),
    "uuid": pa.array([bytes([i % 7]) * 16 for i in range(9000)], pa.binary(16)),
}


@pytest.mark.parametrize("name", FEW)
def test_few_different_values_are_a_dictionary(kit, name):
    table = pa.table({"a": FEW[name].take(pa.array(np.random.default_rng(2).permutation(9000)))})
    for version in ("2.1", "2.2"):
        kit.check(table, version=version)
    (layout,) = layouts(kit, kit.ours(table)[0])
    assert layout.mini_block.num_dictionary_items in (2, 4, 5, 7, 11, 12)
    kit.check(pa.table({"a": pa.ListArray.from_arrays(pa.array(range(0, 9001, 3), pa.int32()), FEW[name])}))


def test_bits_of_floats_stay(kit):
    """NaN of any payload, and -0.0, which a dictionary may take for other values."""
    bits = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000, 1 << 63, 0], np.uint64)
    values = pa.array(np.resize(bits, 5000).view(np.float64))
    raw, _ = kit.ours(pa.table({"a": values}))
    with kit.open(raw) as file:
        got = file.read().column("a").combine_chunks()
    assert np.array_equal(np.isnan(got.to_numpy()), np.isnan(values.to_numpy()))
    assert np.array_equal(np.signbit(got.to_numpy()), np.signbit(values.to_numpy()))


RUNS = {
    "keys": np.repeat(np.arange(20_000) * 1_000_003, np.random.default_rng(5).integers(1, 9, 20_000)),
    "long": np.repeat([7, -1, 2**62, 0], [1000, 255, 256, 70_000]),
    "dates": np.repeat(np.arange(500), 90).astype(np.int32),
    "bytes": np.repeat([1, 2, 3], [3000, 1, 4096]).astype(np.int8),
    "floats": np.repeat([0.5, np.nan, -0.0, 0.0], [2000, 2048, 2047, 2049]),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs(kit, name):
    values = pa.array(RUNS[name])
    table = pa.table({"a": values})
    for version in ("2.1", "2.2"):
        kit.check(table, version=version)
    absent = pa.array(np.arange(len(values)) % 97 == 5)
    kit.check(pa.table({"a": pa.array(RUNS[name], mask=np.asarray(absent))}))
    raw, _ = kit.ours(table)
    if name in ("keys", "long"):
        assert codec(layouts(kit, raw)[0]) == "mini rle flat"


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("n", [1, 300, 5000])
def test_what_metadata_asks_for_is_read_by_everyone(kit, hinted, version, n):
    if version == "2.1" and hinted in ("packed_string", "packed_vector"):
        with pytest.raises(UnsupportedFeatureError, match="`a` as a packed struct of such fields"):
            kit.ours(kit.build(hinted, n), version=version)
        return
    kit.check(kit.build(hinted, n), version=version)


@pytest.mark.parametrize(
    ("hint", "made"),
    [
        ("zstd", "mini general"), ("lz4", "mini general"), ("zstd_string", "mini general variable"),
        ("lz4_string", "mini general variable"), ("split", "mini general byte_stream_split flat"),
        ("split_float", "mini general byte_stream_split flat"), ("rle", "mini rle flat"), ("full_zip", "zip flat"),
        ("full_zip_string", "zip variable"), ("full_zip_zstd", "zip general variable"),
    ],
)  # fmt: skip
def test_what_metadata_asks_for_is_done(kit, hint, made):
    (layout,) = layouts(kit, kit.ours(kit.build(hint, 700))[0])
    assert codec(layout).startswith(made)


PACKED = {
    "numbers": pa.struct([("x", pa.int8()), ("y", pa.float64()), ("d", pa.decimal128(9, 2)), ("t", pa.date32())]),
    "texts": pa.struct(
        [("x", pa.int16()), ("s", pa.string()), ("b", pa.large_binary()), ("v", pa.list_(pa.int16(), 3))]
    ),
}


@pytest.mark.parametrize("name", PACKED)
def test_packed_structs(kit, name):
    """Null rows, lists of them, appends to tables of pylance; a null in a field has no place."""
    kind = PACKED[name]

    def value(i: int):
        row = {
            "x": i % 100,
            "y": i / 7,
            "d": Decimal(i) / 100,
            "t": i,
            "s": "ü" * (i % 4),
            "b": b"\0" * i,
            "v": [i, 2, 3],
        }
        return None if i % 7 == 3 else {f.name: row[f.name] for f in kind}

    field = pa.field("a", kind, metadata={"lance-encoding:packed": "true"})
    table = pa.table([pa.array([value(i) for i in range(300)], kind)], schema=pa.schema([field]))
    kit.check(table)
    kit.check(table.slice(11, 60))
    lists = pa.array([[value(i), value(i + 1)] if i % 5 else [] if i % 2 else None for i in range(90)], pa.list_(field))
    kit.check(pa.table({"a": lists}))
    _, dataset = kit.pylance(table)
    bh.open(dataset.uri).append(table)
    bh.open(dataset.uri).delete("a.x = 5")
    bh.open(dataset.uri).optimize()
    want = [row for row in table["a"].to_pylist() if row is None or row["x"] != 5]
    theirs = lance.dataset(dataset.uri)
    assert theirs.to_table()["a"].to_pylist() == bh.open(dataset.uri).to_arrow()["a"].to_pylist() == want * 2
    missing = pa.table([pa.array([{**value(1), "x": None}], kind)], schema=table.schema)
    with pytest.raises(UnsupportedFeatureError, match=r"a null in `a\.x`"):
        kit.ours(missing)


def asked_for(**metadata):
    kind = pa.field(
        "a", pa.string(), metadata={f"lance-encoding:{k.replace('_', '-')}": v for k, v in metadata.items()}
    )
    return pa.table([sentences(20_000, 12)], schema=pa.schema([kind]))


def test_more_that_metadata_asks_for(kit):
    sizes = {}
    for name, asked in {
        "none": {"compression": "none"}, "zstd 1": {"compression": "zstd", "compression_level": "1"},
        "zstd 19": {"compression": "zstd", "compression_level": "19"}, "small": {"minichunk_size": "1024"},
        "words": {"dict_divisor": "1", "dict_values_compression": "zstd"},
    }.items():  # fmt: skip
        table = asked_for(**asked)
        kit.check(table)
        sizes[name] = len(kit.ours(table)[0])
    assert sizes["zstd 19"] < sizes["zstd 1"] < sizes["small"] < sizes["none"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("compression", "snappy", "one of lz4, zstd, none"),
        ("compression-level", "99", "a whole number from -7 to 22"),
        ("rle-threshold", "2", "a number from 0 to 1"),
        ("bss", "yes", "one of on, off, auto"),
        ("structural-encoding", "sparse", "one of miniblock, fullzip"),
        ("minichunk-size", "1", "a whole number from 64"),
    ],
)
def test_metadata_that_asks_for_nothing_known(kit, key, value, message):
    field = pa.field("a", pa.string(), metadata={f"lance-encoding:{key}": value})
    with pytest.raises(InvalidArgumentError, match=f"column `a` is '{value}'.*") as error:
        kit.ours(pa.table([pa.array(["x", "y"] * 40)], schema=pa.schema([field])))
    assert message in error.value.advice


def test_a_table_of_ours_is_as_small_as_theirs(tmp_path):
    """Texts, decimals, keys in runs; and everything that pylance does with it."""
    n = 30_000
    rng = np.random.default_rng(8)
    rows = pa.table(
        {
            "key": np.repeat(np.arange(n // 3), 3), "price": pa.array(rng.random(n)),
            "discount": pa.array([Decimal(int(x)) / 100 for x in rng.integers(0, 11, n)], pa.decimal128(15, 2)),
            "comment": sentences(n, 12), "mode": pa.array(["AIR", "RAIL", "SHIP"])
            .take(pa.array(rng.integers(0, 3, n))),
        }
    )  # fmt: skip
    bh.write(rows, tmp_path / "ours", format="lance")
    theirs = lance.write_dataset(rows, str(tmp_path / "theirs"))
    ours = lance.dataset(str(tmp_path / "ours"))
    sizes = [sum(f.stat().st_size for f in (tmp_path / d / "data").iterdir()) for d in ("ours", "theirs")]
    assert sizes[0] <= 1.1 * sizes[1]
    assert ours.to_table().equals(theirs.to_table())
    assert ours.count_rows(WHERE) == theirs.count_rows(WHERE)
    at = rng.integers(0, n, 50).tolist()
    assert ours.take(at).equals(theirs.take(at))
    ours.delete("key % 3 = 1")
    ours.optimize.compact_files()
    ours.create_scalar_index("comment", "BTREE")
    ours.validate()
    assert bh.open(tmp_path / "ours").count() == 20_001
