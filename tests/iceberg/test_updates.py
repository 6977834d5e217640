"""A commit's updates and requirements, in the REST catalog's form, make the same table as its document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import TypeAdapter
from pyiceberg.catalog import MetastoreCatalog as Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

import boathouse as bh
from boathouse.errors import CorruptTableError
from boathouse.iceberg.commit.readback import check_metadata
from boathouse.iceberg.metadata.document import as_read
from boathouse.table.attempt import Attempt
from boathouse.table.commit import FileCommitter

UPDATE: TypeAdapter[Any] = TypeAdapter(TableUpdate)
REQUIREMENT: TypeAdapter[Any] = TypeAdapter(TableRequirement)


def rows(*ids: int, **more: str) -> pa.Table:
    data = {"id": pa.array(ids, pa.int64()), "p": pa.array(["a"] * len(ids), pa.string())}
    return pa.table({**data, **{k: pa.array([v] * len(ids), pa.string()) for k, v in more.items()}})


@pytest.fixture
def attempts(monkeypatch) -> list[Attempt]:
    found: list[Attempt] = []
    real = FileCommitter.publish

    def publish(self: FileCommitter, attempt: Attempt) -> Any:
        found.append(attempt)
        return real(self, attempt)

    monkeypatch.setattr(FileCommitter, "publish", publish)
    return found


STEPS = {
    "append": lambda t: t.append(rows(1)),
    "append with a column": lambda t: t.append(rows(1, more="x"), merge_schema=True),
    "delete": lambda t: t.delete("id = 1"),
    "overwrite": lambda t: t.overwrite(rows(5), overwrite_schema=True),
    "overwrite another schema": lambda t: t.overwrite(pa.table({"k": [1]}), overwrite_schema=True, partition_by=["k"]),
    "properties": lambda t: t.set_properties({"owner": "us", "gone": None}),
    "column": lambda t: t.add_column("added", "int"),
    "an earlier schema again": lambda t: (
        t.overwrite(rows(5, more="x"), overwrite_schema=True),
        t.overwrite(rows(6), overwrite_schema=True),
    ),
}


def same(made: Any, document: dict[str, Any]) -> None:
    """All that readers see; the log of metadata files and the time are the catalog's own."""
    wanted = TableMetadataUtil.parse_raw(json.dumps(document))
    for name in (
        "table_uuid", "location", "format_version", "schemas", "current_schema_id", "last_column_id", "partition_specs",
        "default_spec_id", "last_partition_id", "sort_orders", "default_sort_order_id", "properties", "snapshots",
        "current_snapshot_id", "refs", "last_sequence_number", "snapshot_log",
    ):  # fmt: skip
        assert getattr(made, name) == getattr(wanted, name), name


@pytest.mark.parametrize("step", STEPS)
def test_the_updates_make_the_document_that_is_put(tmp_path, attempts, step):
    t = bh.create(
        str(tmp_path / "t"), rows().schema, format="iceberg", partition_by=["p"], properties={"gone": "x", "kept": "y"}
    )
    t.append(rows(1, 2))
    before = json.loads(attempts[-1].body)
    attempts.clear()
    STEPS[step](t)
    assert attempts
    for attempt in attempts:
        base = TableMetadataUtil.parse_raw(json.dumps(before))
        for requirement in attempt.requirements:
            REQUIREMENT.validate_python(requirement).validate(base)
        updates = tuple(UPDATE.validate_python(u) for u in attempt.updates)
        document = json.loads(attempt.body)
        same(update_table_metadata(base, updates, enforce_validation=True), document)
        before = document


def test_the_requirements_fail_on_a_head_that_another_commit_made(tmp_path, attempts):
    """Of a commit of rows: another snapshot. Of a new column: another new column, whose id would be the same."""
    t = bh.create(str(tmp_path / "t"), rows().schema, format="iceberg")
    for step, other in (
        (lambda: t.append(rows(1)), lambda: t.append(rows(2))),
        (lambda: t.add_column("x", "int"), lambda: t.add_column("y", "int")),
    ):
        attempts.clear()
        step()
        other()
        theirs = TableMetadataUtil.parse_raw(attempts[0].body.decode())
        failed = 0
        for requirement in attempts[0].requirements:
            try:
                REQUIREMENT.validate_python(requirement).validate(theirs)
            except CommitFailedException:
                failed += 1
        assert failed


def test_a_new_table_is_made_by_updates_too(tmp_path, attempts):
    bh.write(rows(1), str(tmp_path / "t"), format="iceberg", partition_by=["p"], properties={"a": "b"})
    [attempt] = attempts
    assert attempt.requirements == ({"type": "assert-create"},)
    REQUIREMENT.validate_python(attempt.requirements[0]).validate(None)
    updates = tuple(UPDATE.validate_python(u) for u in attempt.updates)
    empty = Catalog._empty_table_metadata()
    same(update_table_metadata(empty, updates, enforce_validation=True), json.loads(attempt.body))


def test_of_the_next_document_only_what_differs_is_read_back(tmp_path):
    """What is carried is the same object; the rest is as its bytes give it, and is checked."""
    t = bh.create(str(tmp_path / "t"), pa.schema([("id", pa.int64())]), format="iceberg")
    t.append(pa.table({"id": [1]}))
    before = t._handle.snapshot.metadata
    t.append(pa.table({"id": [2]}))
    after = t._handle.snapshot.metadata
    written = json.loads(Path(after.uri.removeprefix("file://")).read_bytes())
    assert after.document == written
    for name in ("schemas", "partition-specs", "properties"):
        assert after.document[name] is before.document[name], name
    assert after.document["snapshots"][0] is before.document["snapshots"][0]

    new = {**before.document["snapshots"][0], "snapshot-id": 5, "manifest-list": ("a", "b")}
    wrong = {**before.document, "snapshots": [*before.document["snapshots"], new]}
    assert as_read(wrong, before.document)["snapshots"][1]["manifest-list"] == ["a", "b"]
    with pytest.raises(CorruptTableError, match=r"nothing was committed.*manifest-list"):
        check_metadata(wrong, before.uri, before, ())
