"""Writing onto tables of other writers: what their manifests leave out, the write fills in, and others read on."""

import copy
import json
import shutil
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from pyiceberg.exceptions import ResolveError

import boathouse as bh
from boathouse.errors import CorruptTableError, UnsupportedFeatureError

DATA = pa.table(
    {
        "id": pa.array(range(9), pa.int64()),
        "p": pa.array([Decimal("1.25"), Decimal("-2.50"), None] * 3, pa.decimal128(9, 2)),
        "x": [0.5, None, float("nan")] * 3,
        "s": ["a", "b", None] * 3,
    }
)
MORE = DATA.slice(0, 3).set_column(0, "id", pa.array([100, 101, 102], pa.int64()))

LIST_OPTIONAL = {507, 519}
LIST_V1 = {517, 515, 516, 519}
COUNTS = {504, 505, 506, 512, 513, 514}
ENTRY_OPTIONAL = {108, 109, 110, 137, 125, 128, 131, 132, 135, 140, 143}
ENTRY_V1 = {3, 4, 134, 137, 135, 140, 143}
SHAPES = {
    # What the manifest list and the manifests leave out, by field id; and which counts are optional.
    "no key metadata": ({519}, {131}),
    "no NaN counts": ({518, 519}, {137}),
    "nothing optional": (LIST_OPTIONAL, ENTRY_OPTIONAL),
    "version 1": (LIST_V1 | {518}, ENTRY_V1),
    "version 1 without counts": (LIST_V1 | COUNTS | {507}, ENTRY_V1 | ENTRY_OPTIONAL),
}


def rewrite(path, edit_schema, edit_record=lambda r: r):
    """An Avro file with another schema: what it lacks is left out."""
    with open(path, "rb") as f:
        reader = fastavro.reader(f)
        records, schema = list(reader), json.loads(reader.metadata["avro.schema"])
        metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    schema = edit_schema(copy.deepcopy(schema))
    with open(path, "wb") as f:
        fastavro.writer(f, schema, [edit_record(r) for r in records], codec="deflate", metadata=metadata)


def without(schema, ids):
    """The schema without the fields of these ids, at any depth."""
    if isinstance(schema, list):
        return [without(s, ids) for s in schema]
    if not isinstance(schema, dict):
        return schema
    found = {k: without(v, ids) if k in ("type", "items") else v for k, v in schema.items()}
    if "fields" in found:
        found["fields"] = [without(f, ids) for f in found["fields"] if f.get("field-id") not in ids]
    return found


def older(eyes, list_ids, entry_ids):
    """Makes the table's newest snapshot look as an older writer leaves it."""
    snapshot = eyes.snapshot()
    for manifest in eyes.manifests():
        path = manifest["manifest_path"].removeprefix("file://")
        rewrite(path, lambda s: without(s, entry_ids))
    rewrite(snapshot["manifest-list"].removeprefix("file://"), lambda s: without(s, list_ids))
    if 515 in list_ids:
        document = eyes.document()
        document["last-sequence-number"] = 0
        for s in document["snapshots"]:
            s.pop("sequence-number", None)
        eyes.head().write_text(json.dumps(document))


@pytest.fixture(params=SHAPES)
def old(request, make):
    """A table of nine rows, written in one go, as an older writer leaves it; and foreign eyes on it."""
    _, eyes = make(DATA, partition_by=["p"])
    older(eyes, *SHAPES[request.param])
    return eyes


def rows_of(table):
    return sorted(map(repr, table.to_pylist()))


def agreed(eyes):
    """The rows, on which we and pyiceberg agree."""
    mine = bh.open(str(eyes.root)).to_arrow()
    assert rows_of(mine) == rows_of(eyes.rows().select(mine.column_names).cast(mine.schema))
    return mine


def complete(eyes):
    """Every row of the list, and every entry of a manifest of ours, has every required field of version 2."""
    document = eyes.document()
    for row in eyes.manifests():
        assert None not in [v for k, v in row.items() if k not in ("partitions", "key_metadata")]
    ours = [m for m in eyes.manifests() if m["added_snapshot_id"] == document["current-snapshot-id"]]
    for manifest in ours:
        for entry in eyes.entries(manifest):
            assert entry["data_file"]["content"] == 0
            assert entry["status"] == 1 or entry["sequence_number"] is not None


@pytest.mark.spec("I-150", "I-189")
def test_append(old):
    bh.open(str(old.root)).append(MORE)
    assert agreed(old).num_rows == 12
    assert old.snapshot()["sequence-number"] == old.document()["last-sequence-number"]
    complete(old)
    bh.open(str(old.root)).append(MORE)
    assert agreed(old).num_rows == 15


@pytest.mark.few(7)
@pytest.mark.parametrize("where", ["id = 4", "p = 1.25", "id > 3 and s = 'b'", "p is null"])
def test_delete(old, where):
    kept = bh.open(str(old.root)).scan(where=f"not coalesce({where}, false)").to_arrow()
    bh.open(str(old.root)).delete(where)
    assert rows_of(agreed(old)) == rows_of(kept)
    complete(old)
    bh.open(str(old.root)).append(MORE)
    assert agreed(old).num_rows == kept.num_rows + 3


def test_overwrite(old):
    bh.open(str(old.root)).overwrite(MORE, where="id >= 100 or p = 1.25")
    assert agreed(old).num_rows == 6 + 3
    bh.open(str(old.root)).overwrite(DATA.slice(0, 2))
    assert agreed(old).num_rows == 2
    complete(old)


def test_counts_that_nobody_wrote_are_counted(make):
    """Entries of every status: added and then existing, deleted."""
    table, eyes = make(DATA, partition_by=["p"])
    table.delete("p = 1.25")
    before = eyes.manifests()
    older(eyes, COUNTS, set())
    bh.open(str(eyes.root)).append(MORE)
    after = {m["manifest_path"]: m for m in eyes.manifests()}
    assert before[0]["deleted_files_count"] == 1 and before[0]["existing_files_count"] == 2
    for row in before:
        assert after[row["manifest_path"]] == row
    assert agreed(eyes).num_rows == 9


@pytest.mark.parametrize("write", [lambda t: t.append(MORE), lambda t: t.delete("id = 3"), lambda t: t.overwrite(MORE)])
def test_nothing_is_left_of_a_write_that_cannot_be(make, write):
    """A list that lacks what is required: a typed error, and the folder as it was."""
    table, eyes = make(DATA)
    table.append(MORE)
    rewrite(eyes.snapshot()["manifest-list"].removeprefix("file://"), lambda s: without(s, {501}))
    before = sorted(p for p in Path(eyes.root).rglob("*") if p.is_file())
    try:
        write(bh.open(str(eyes.root)))
    except CorruptTableError as error:
        assert "manifest_length" in error.message
        assert sorted(p for p in Path(eyes.root).rglob("*") if p.is_file()) == before
    else:  # every manifest was written again
        assert agreed(eyes).num_rows == 3


def edit(eyes, change):
    document = eyes.document()
    change(document)
    eyes.head().write_text(json.dumps(document))


@pytest.mark.spec("I-113")
def test_files_of_an_unknown_transform_are_not_removed(make):
    """Their partition values have a type that only the transform's writer knows."""
    table, eyes = make(DATA, partition_by=["id"])
    table.append(MORE)
    edit(
        eyes,
        lambda d: (
            d["partition-specs"][0]["fields"][0].update(transform="zorder[3]"),
            d["partition-specs"].append({"spec-id": 1, "fields": []}),
            d.update({"default-spec-id": 1}),
        ),
    )
    assert bh.open(str(eyes.root)).append(DATA.slice(5)).rows_added == 4
    before = sorted(Path(eyes.root).rglob("*"))
    for write in (lambda t: t.delete("id = 100"), lambda t: t.overwrite(MORE)):
        with pytest.raises(UnsupportedFeatureError, match="zorder"):
            write(bh.open(str(eyes.root)))
    assert sorted(Path(eyes.root).rglob("*")) == before
    assert bh.open(str(eyes.root)).count() == 16


# --- DuckDB's corpus: tables of Spark, pyiceberg and DuckDB itself

CORPUS = (
    "add_columns_with_defaults/default.db/add_columns_with_defaults",
    "case_sensitive_names/default.db/case_sensitive_names",
    "expression_filter",
    "hive_partitioned_table",
    "is_null_is_not_null",
    "null_stats/default/test_nulls",
    *(f"partition_{t}" for t in ("bigint", "binary", "bool", "double", "float", "integer")),
    *(f"partition_decimal_{t}" for t in ("bigint", "hugeint", "integer", "smallint")),
    *(f"partition_{t}/default.db/partition_{t}" for t in ("fixed_length_binary", "time", "timestamp", "timestamptz")),
    "uuid",
)


@pytest.fixture
def moved(corpora, tmp_path, seen):
    """moved(name) -> a table of the corpus where its metadata says it is, and ours to write."""

    def change(value, old, new):
        if isinstance(value, str):
            return (
                value.replace(f"file://{old}", f"file://{new}").replace(old, f"file://{new}", 1)
                if (value.removeprefix("file://").startswith(old))
                else value
            )
        if isinstance(value, dict):
            return {k: change(v, old, new) for k, v in value.items()}
        return [change(v, old, new) for v in value] if isinstance(value, list) else value

    def make(name):
        root = tmp_path / "table"
        shutil.copytree(corpora / "iceberg/duckdb/data/persistent" / name, root)
        eyes = seen(root)
        newest = sorted(eyes.files(), key=lambda p: (p.stat().st_size, p.name))[-1]
        document = eyes.document(newest)
        old = document["location"]
        for path in (root / "metadata").glob("*.avro"):
            rewrite(path, lambda s: s, lambda r: change(r, old, str(root)))
        for path in eyes.files():
            path.unlink()
        (root / "metadata/version-hint.text").unlink(missing_ok=True)
        (root / "metadata/v7.metadata.json").write_text(json.dumps(change(document, old, str(root))))
        return eyes

    return make


@pytest.mark.few(7)
@pytest.mark.parametrize("name", CORPUS)
def test_tables_of_the_corpus(moved, name):
    eyes = moved(name)
    table = bh.open(str(eyes.root))
    rows = table.to_arrow()
    first, column = rows.slice(0, 1), f"`{rows.column_names[0]}`"
    try:
        theirs = agreed(eyes).num_rows >= 0
    except ResolveError:  # pyiceberg takes no required column from the partition
        theirs = False

    def now():
        return rows_of(agreed(eyes) if theirs else bh.open(str(eyes.root)).to_arrow())

    table.append(first)
    assert now() == sorted(rows_of(rows) + rows_of(first))
    kept = bh.open(str(eyes.root)).scan(where=f"{column} is not null").to_arrow()
    bh.open(str(eyes.root)).delete(f"{column} is null")
    assert now() == rows_of(kept)
    bh.open(str(eyes.root)).delete(f"{column} is not null")
    assert now() == []
    bh.open(str(eyes.root)).overwrite(first)
    assert now() == rows_of(first)
