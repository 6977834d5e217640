"""Commits that would make a table unreadable: ids given twice, entries of another width, orders of columns that left;
documents that Java's parser refuses; and what is read back before it is published."""

import copy
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.avro import container as avro
from boathouse.errors import CorruptTableError, InvalidArgumentError
from boathouse.iceberg.commit import transaction
from boathouse.iceberg.manifests import writer as manifest_writer

DATA = pa.table(
    {
        "id": pa.array(range(9), pa.int64()),
        "p": pa.array([Decimal("1.25"), Decimal("-2.50"), None] * 3, pa.decimal128(9, 2)),
        "x": [0.5, None, float("nan")] * 3,
        "s": ["a", "b", None] * 3,
    }
)
MORE = DATA.slice(0, 3).set_column(0, "id", pa.array([100, 101, 102], pa.int64()))


def rows_of(table):
    return sorted(map(repr, table.to_pylist()))


def agreed(eyes):
    """The rows, on which we and pyiceberg agree."""
    mine = bh.open(str(eyes.root)).to_arrow()
    assert rows_of(mine) == rows_of(eyes.rows().select(mine.column_names).cast(mine.schema))
    return mine


def edit(eyes, change):
    document = eyes.document()
    change(document)
    eyes.head().write_text(json.dumps(document))


def evolved(document, change):
    """Another schema of the document becomes the current one."""
    schema = copy.deepcopy(document["schemas"][-1])
    schema["schema-id"] += 1
    change(schema["fields"])
    document["schemas"].append(schema)
    document["current-schema-id"] = schema["schema-id"]


@pytest.mark.parametrize(
    ("before", "after", "values"),
    [
        (pa.decimal128(9, 2), "decimal(20,2)", [Decimal("1.25"), Decimal("2.50"), Decimal("-3.75"), None]),
        (pa.decimal128(1, 0), "decimal(38,0)", [Decimal(1), Decimal(2), Decimal(-9), None]),
        (pa.int32(), "long", [1, 2, -(2**31), None]),
        (pa.float32(), "double", [1.5, -0.0, float("inf"), None]),
    ],
)
def test_entries_are_carried_under_a_widened_partition_column(make, before, after, values):
    data = pa.table({"id": pa.array(range(4), pa.int64()), "p": pa.array(values, before)})
    _, eyes = make(data, partition_by=["p"])
    edit(eyes, lambda d: evolved(d, lambda fields: fields[1].update(type=after)))
    bh.open(str(eyes.root)).delete("id = 1")
    found = agreed(eyes)
    assert sorted(zip(found["id"].to_pylist(), map(repr, found["p"].to_pylist()))) == sorted(
        (i, repr(v)) for i, v in enumerate(values) if i != 1
    )
    low = [v for i, v in enumerate(values) if i != 1 and v is not None and v <= 1]
    assert bh.open(str(eyes.root)).scan(where="p <= 1").count() == len(low)


@pytest.mark.spec("I-074")
def test_a_column_id_is_not_given_twice(make):
    table, eyes = make(DATA.select(["id", "s"]), partition_by=["id"])
    table.overwrite(DATA.select(["id"]), overwrite_schema=True)  # the highest id is in an older schema only
    for write in (
        lambda t: t.append(DATA.select(["id", "x"]), merge_schema=True),
        lambda t: t.add_column("later", "struct<a: int>"),
        lambda t: t.overwrite(DATA.append_column("another", DATA["s"]), overwrite_schema=True),
    ):
        edit(eyes, lambda d: d.update({"last-column-id": 1, "last-partition-id": 999}))
        write(bh.open(str(eyes.root)))
        document = eyes.document()
        fields = [f for s in document["schemas"] for f in nested(s["fields"])]
        assert len({f["id"] for f in fields}) == len({(f["id"], f["name"]) for f in fields})
        assert document["last-column-id"] == max(f["id"] for f in fields)
        assert document["last-partition-id"] == 1000
        agreed(eyes)


def nested(fields):
    for f in fields:
        yield f
        if isinstance(f["type"], dict):
            yield from nested(f["type"]["fields"])


@pytest.mark.spec("I-132")
def test_a_partition_field_id_is_not_given_twice(make):
    table, eyes = make(DATA, partition_by=["p", "s"])
    table.overwrite(DATA, overwrite_schema=True, partition_by=["id"])
    edit(eyes, lambda d: d.update({"last-partition-id": 999}))
    bh.open(str(eyes.root)).overwrite(DATA, overwrite_schema=True, partition_by=["bucket(4, id)"])
    document = eyes.document()
    ids = [f["field-id"] for s in document["partition-specs"] for f in s["fields"]]
    assert len(set(ids)) == len(ids) == 4 and document["last-partition-id"] == max(ids)
    agreed(eyes)


def sorted_by(source_id, transform="identity"):
    field = {"transform": transform, "source-id": source_id, "direction": "asc", "null-order": "nulls-first"}
    return lambda d: (
        d["sort-orders"].append({"order-id": 1, "fields": [field]}),
        d.update({"default-sort-order-id": 1}),
    )


def test_an_overwrite_without_the_sort_column_leaves_the_order(make):
    _, eyes = make(DATA)
    edit(eyes, sorted_by(4))
    bh.open(str(eyes.root)).overwrite(DATA.select(["id"]), overwrite_schema=True)
    document = eyes.document()
    assert document["default-sort-order-id"] == 0 and len(document["sort-orders"]) == 2
    assert agreed(eyes).num_rows == 9


def test_an_overwrite_with_the_sort_column_keeps_the_order(make):
    _, eyes = make(DATA)
    edit(eyes, sorted_by(4))
    edit(eyes, lambda d: d["sort-orders"].pop(0))
    bh.open(str(eyes.root)).overwrite(DATA.select(["s"]), overwrite_schema=True)
    assert eyes.document()["default-sort-order-id"] == 1
    bh.open(str(eyes.root)).overwrite(DATA.select(["id"]), overwrite_schema=True)
    document = eyes.document()
    assert document["default-sort-order-id"] == 0 and {o["order-id"] for o in document["sort-orders"]} == {0, 1}


def test_a_column_named_as_a_partition_field_is_refused(make):
    """Java finds a partition field and a column of one name, of two sources, and cannot open the table."""
    table, eyes = make(DATA, partition_by=["bucket(4, id)"])
    name = eyes.document()["partition-specs"][0]["fields"][0]["name"]
    before = sorted(Path(eyes.root).rglob("*"))
    named = DATA.append_column(name, DATA["s"])
    for write in (
        lambda t: t.add_column(name, "int"),
        lambda t: t.append(named, merge_schema=True),
        lambda t: t.overwrite(named, overwrite_schema=True),
    ):
        with pytest.raises(InvalidArgumentError, match=name):
            write(table)
    assert sorted(Path(eyes.root).rglob("*")) == before


def test_a_column_that_partitions_does_not_become_another_one_of_its_name(make):
    """An older spec would be of a column that left, under the name of one that came."""
    table, eyes = make(DATA, partition_by=["p"])
    strings = DATA.set_column(1, "p", pa.array(["x"] * 9))
    before = sorted(Path(eyes.root).rglob("*"))
    with pytest.raises(InvalidArgumentError, match="`p`"):
        table.overwrite(strings, overwrite_schema=True, partition_by=[])
    assert sorted(Path(eyes.root).rglob("*")) == before
    table.overwrite(strings.rename_columns(["id", "q", "x", "s"]), overwrite_schema=True, partition_by=["q"])
    assert agreed(eyes).num_rows == 9


DAMAGE = {
    "beyond last-sequence-number 1": lambda d: d.update({"last-sequence-number": 1}),
    "have the same field id 1": lambda d: evolved(d, lambda f: f[1].update(id=1)),
    "two columns are called `id`": lambda d: evolved(d, lambda f: f[1].update(name="id")),
    "partition spec 0 twice": lambda d: d["partition-specs"].append(d["partition-specs"][0]),
    "sort order 0 twice": lambda d: d["sort-orders"].append(d["sort-orders"][0]),
    r"has snapshot \d+ twice": lambda d: d["snapshots"].append(d["snapshots"][0]),
    "main is at": lambda d: d["refs"]["main"].update({"snapshot-id": d["snapshots"][0]["snapshot-id"]}),
    "which is not listed": lambda d: d["refs"].update(old={"snapshot-id": 77, "type": "tag"}),
    "is a 'twig'": lambda d: d["refs"].update(old={"snapshot-id": d["current-snapshot-id"], "type": "twig"}),
    "has the identifier field": lambda d: (
        evolved(d, lambda f: None) or d["schemas"][-1].update({"identifier-field-ids": [3]})
    ),
    "which the current schema does not have": lambda d: evolved(d, lambda f: f.pop(1)),
    "not in chronological order": lambda d: d["snapshot-log"][0].update({"timestamp-ms": 2**45}),
}


@pytest.mark.parametrize("words", DAMAGE)
def test_no_write_goes_onto_a_document_that_java_refuses(make, words):
    table, eyes = make(DATA, partition_by=["p"])
    table.append(MORE)
    edit(eyes, DAMAGE[words])
    before = sorted(Path(eyes.root).rglob("*"))
    for write in (lambda t: t.append(MORE), lambda t: t.delete("id = 1"), lambda t: t.set_properties({"a": "b"})):
        with pytest.raises(CorruptTableError, match=words):
            write(bh.open(str(eyes.root)))
    assert sorted(Path(eyes.root).rglob("*")) == before


# --- what is read back


def broken(monkeypatch, module, name, change):
    """The module's function with its result changed."""
    real = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *a, **k: change(real(*a, **k)))


def without_last(rows):
    return lambda schema, found, *rest: rows(schema, found[:-1], *rest)


def shorter(write):
    return lambda entries, *rest: write(entries.slice(0, entries.num_rows - 1), *rest)


def later(document):
    document["snapshots"][-1]["sequence-number"] = 99


def elsewhere(document):
    document["refs"]["main"]["snapshot-id"] = 1


def other_ids(document):
    document["last-column-id"] = 1
    document["schemas"].append({**document["schemas"][0], "schema-id": 5})


FAULTS = {
    "a manifest without its last entry": lambda m: m.setattr(manifest_writer, "write", shorter(manifest_writer.write)),
    "a list without its last row": lambda m: m.setattr(avro, "write", without_last(avro.write)),
    "a manifest cut short": lambda m: broken(m, manifest_writer, "write", lambda data: data[:-20]),
    "a row of other counts": lambda m: broken(m, manifest_writer, "list_row", lambda r: {**r, "added_files_count": 0}),
    "a list cut short": lambda m: broken(m, manifest_writer, "write_list", lambda data: data[:-20]),
    "a snapshot of a later number": lambda m: broken_document(m, later),
    "a schema that is not there": lambda m: broken_document(m, lambda d: d.update({"current-schema-id": 7})),
    "main elsewhere": lambda m: broken_document(m, elsewhere),
    "a lower last-column-id": lambda m: broken_document(m, other_ids),
}


def broken_document(monkeypatch, change):
    real = transaction.finished

    def finished(*args):
        document = copy.deepcopy(real(*args))  # the head's own lists are shared
        change(document)
        return document

    monkeypatch.setattr(transaction, "finished", finished)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_cannot_be_read_back_is_not_published(make, monkeypatch, fault):
    table, eyes = make(DATA, partition_by=["s"])
    before = sorted(Path(eyes.root).rglob("*.*"))
    with monkeypatch.context() as patch:
        FAULTS[fault](patch)
        with pytest.raises(CorruptTableError):
            table.append(MORE)
    assert sorted(Path(eyes.root).rglob("*.*")) == before
    table.append(MORE)
    assert agreed(eyes).num_rows == 12
