"""Branches, tags, staged snapshots and cherry-picks, ours and iceberg-spark's in turn: the same refs and rows, and the
same refusals."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
from reference_spark import ICEBERG, started

import boathouse as bh
from boathouse.api.audit import run_audited
from boathouse.engines.local import LocalEngine
from boathouse.errors import InvalidArgumentError
from boathouse.ops.options import WriteOptions
from boathouse.ops.rows.append import Append
from boathouse.ops.rows.delete import Delete
from boathouse.ops.write import Source

pytestmark = pytest.mark.slow
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    found = started(ICEBERG, tmp_path_factory.mktemp("reference"))
    yield found
    found.close()


def rows(*ids, p=None):
    return pa.table({"id": list(ids), "p": [p or f"p{i % 2}" for i in ids]}, SCHEMA)


class Table:
    def __init__(self, reference, name, version):
        self.reference, self.name = reference, f"ice.n.{name}"
        self.path = str(reference.root / "n" / name)
        properties = {"format-version": version, "write.wap.enabled": "true"}
        made = bh.create(self.path, SCHEMA, format="iceberg", partition_by=["p"], properties=properties)
        made.append(rows(1, 2, 3))

    def open(self, ref=None):
        return bh.open(self.path, ref=ref)

    def sql(self, *statements):
        self.reference.sql(f"REFRESH TABLE {self.name}", *(s.format(t=self.name) for s in statements))

    def call(self, text):
        self.sql(text.replace("(", f"(table => '{self.name}', ", 1))

    def refused(self, text):
        self.sql()
        return self.reference.error(text.format(t=self.name))

    def theirs(self, query):
        self.sql()
        return self.reference.rows(query.format(t=self.name))

    def agree(self, ref="main"):
        found = sorted(self.theirs(f"SELECT id FROM {{t}} VERSION AS OF '{ref}'")["id"].to_pylist())
        assert sorted(self.open(ref).to_arrow()["id"].to_pylist()) == found
        return found

    def same_refs(self):
        mine = self.open().inspect.refs().sort_by("name")
        theirs = self.theirs("SELECT * FROM {t}.refs").sort_by("name")
        assert mine.to_pylist() == theirs.to_pylist()
        return mine.to_pylist()


@pytest.mark.spec("I-218", "I-219", "I-220")
@pytest.mark.parametrize("version", ["2", "3"])
def test_refs_in_turn(reference, version):
    t = Table(reference, f"refs{version}", version)
    ours = t.open()
    first = ours.version
    ours.refs.create_branch("audit", min_snapshots_to_keep=2, max_snapshot_age_ms=86_400_000, max_ref_age_ms=7)
    ours.refs.create_tag("old", max_ref_age_ms=86_400_000 * 30)
    t.sql("ALTER TABLE {t} CREATE BRANCH theirs RETAIN 7 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 HOURS",
          "ALTER TABLE {t} CREATE TAG `their-tag`")  # fmt: skip
    assert [r["name"] for r in t.same_refs()] == ["audit", "main", "old", "their-tag", "theirs"]
    t.sql("INSERT INTO {t}.branch_audit VALUES (4, 'p0')", "DELETE FROM {t}.branch_audit WHERE id = 1")
    audit = t.open("audit")
    audit.append(rows(5))
    audit.update({"p": "'x'"}, "id = 2")
    t.open("theirs").append(rows(6))
    t.sql("UPDATE {t}.branch_theirs SET p = 'y' WHERE id = 6")
    t.open("theirs").delete("id = 3")
    assert t.agree("audit") == [2, 3, 4, 5] and t.agree("theirs") == [1, 2, 6] and t.agree() == [1, 2, 3]
    assert t.agree("old") == t.agree("their-tag") == [1, 2, 3]
    if version == "3":
        names = "id, _row_id, _last_updated_sequence_number"
        for ref in ("audit", "theirs"):
            theirs = t.theirs(f"SELECT {names} FROM {{t}} VERSION AS OF '{ref}'").sort_by("id")
            assert t.open(ref).scan(names.split(", ")).to_arrow().sort_by("id").to_pydict() == theirs.to_pydict()
    ours = t.open()
    ours.refs.fast_forward("main", "audit")
    t.call("CALL ice.system.fast_forward(branch => 'old_main', to => 'old')")
    t.sql("ALTER TABLE {t} DROP BRANCH theirs")
    ours.refresh().refs.replace_branch("audit", first)
    ours.refs.retain("old_main", min_snapshots_to_keep=4)
    t.sql("ALTER TABLE {t} REPLACE TAG `their-tag` RETAIN 1 DAYS")
    assert [r["name"] for r in t.same_refs()] == ["audit", "main", "old", "old_main", "their-tag"]
    assert t.agree() == t.agree("their-tag") == [2, 3, 4, 5] and t.agree("audit") == [1, 2, 3]
    ours.refs.rollback(first)
    assert t.agree() == [1, 2, 3]
    t.sql("INSERT INTO {t} VALUES (9, 'p1')")
    ours = t.open()
    ours.append(rows(10))
    assert t.agree() == [1, 2, 3, 9, 10]
    history = t.theirs("SELECT snapshot_id, is_current_ancestor FROM {t}.history")
    assert ours.inspect.history().select(history.column_names).to_pylist() == history.to_pylist()


@pytest.mark.spec("I-338")
@pytest.mark.parametrize("version", ["2", "3"])
def test_published_by_each_other(reference, version):
    t = Table(reference, f"wap{version}", version)
    t.open().append(rows(4), metadata={"wap.id": "mine"})
    t.sql("SET spark.wap.id = theirs", "INSERT INTO {t} VALUES (5, 'p1')", "RESET spark.wap.id")
    assert t.agree() == [1, 2, 3]
    t.open().append(rows(6))
    t.call("CALL ice.system.publish_changes(wap_id => 'mine')")
    t.open().refs.publish("theirs")
    assert t.agree() == [1, 2, 3, 4, 5, 6]
    mine = [s["summary"] for s in t.open().inspect.snapshots().to_pylist()]
    published = [dict(s) for s in mine if "published-wap-id" in dict(s)]
    assert [s["published-wap-id"] for s in published] == ["mine", "theirs"]
    assert {"source-snapshot-id", "added-data-files", "added-records"} <= published[0].keys() & published[1].keys()
    for name in ("mine", "theirs"):
        said = t.refused(f"CALL ice.system.publish_changes('{{t}}', '{name}')")
        assert "Duplicate request to cherry pick" in said or "already" in said
        with pytest.raises(InvalidArgumentError, match="of the branch has its changes"):
            t.open().refs.publish(name)
    ours = t.open()
    partitions = ours.overwrite(rows(10), partitions="dynamic", metadata={"wap.id": "even"}).version
    whole = ours.delete("id = 1", metadata={"wap.id": "gone"}).version
    ours.append(rows(7))
    said = t.refused(f"CALL ice.system.cherrypick_snapshot('{{t}}', {whole})")
    assert "not append, dynamic overwrite, or fast-forward" in said
    with pytest.raises(InvalidArgumentError, match="it is no append"):
        ours.refs.cherry_pick(whole)
    t.call(f"CALL ice.system.cherrypick_snapshot(snapshot_id => {partitions})")
    assert t.agree() == [1, 3, 5, 7, 10]
    t.sql("SET spark.sql.sources.partitionOverwriteMode = dynamic", "SET spark.wap.id = odd",
          "INSERT OVERWRITE {t} VALUES (11, 'p1')", "RESET spark.wap.id",
          "RESET spark.sql.sources.partitionOverwriteMode")  # fmt: skip
    t.open().append(rows(12))
    t.open().refs.publish("odd")
    assert t.agree() == [10, 11, 12]
    t.sql("DELETE FROM {t} WHERE id = 12")
    t.open().delete("id = 10")
    assert t.agree() == [11]
    if version == "3":
        names = "id, _row_id, _last_updated_sequence_number"
        theirs = t.theirs(f"SELECT {names} FROM {{t}}").to_pydict()
        assert t.open().scan(names.split(", ")).to_arrow().to_pydict() == theirs


@pytest.mark.spec("I-079")
def test_a_restore_that_they_read(reference):
    t = Table(reference, "restored", "2")
    ours = t.open()
    first = ours.version
    ours.add_column("more", "int")
    t.sql("INSERT INTO {t} VALUES (4, 'p0', 7)")
    second = t.open().version
    t.open().restore(first)
    assert t.theirs("SELECT * FROM {t}").column_names == ["id", "p"] and t.agree() == [1, 2, 3]
    t.open().restore(second)
    assert t.theirs("SELECT more FROM {t} WHERE id = 4").to_pylist() == [{"more": 7}] and t.agree() == [1, 2, 3, 4]
    t.sql("INSERT INTO {t} VALUES (5, 'p1', 8)")
    t.call("CALL ice.system.expire_snapshots(older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)")
    assert t.agree() == [1, 2, 3, 4, 5]


class Session(LocalEngine):
    """An engine whose session has these settings."""

    def __init__(self, settings):
        super().__init__()
        self.spark = SimpleNamespace(conf=settings)


@pytest.mark.spec("I-338")
def test_sessions_that_audit(reference):
    """What is set in theirs, and what is set in ours: the same branches."""
    t = Table(reference, "sessions", "2")
    try:
        reference.sql("SET spark.wap.branch = theirs")
        t.sql("INSERT INTO {t} VALUES (4, 'p0')", "DELETE FROM {t} WHERE id = 1")
        reference.sql("SET spark.wap.id = night")
        assert "Cannot set both" in t.refused("INSERT INTO {t} VALUES (9, 'p0')")
        reference.sql("RESET spark.wap.branch")
        t.sql("INSERT INTO {t} VALUES (5, 'p0')")
    finally:
        reference.sql("RESET spark.wap.branch", "RESET spark.wap.id")

    def ours(operation, **settings):
        settings = {f"spark.wap.{name}": value for name, value in settings.items()}
        return run_audited(t.open()._handle, Session(settings), operation, WriteOptions())

    engine = LocalEngine()
    append = Append(Source.of(engine, engine.source(rows(4))))
    ours(append, branch="ours")
    ours(Delete("id = 1"), branch="ours")
    ours(append, id="evening")
    with pytest.raises(InvalidArgumentError, match="exclude each other"):
        ours(append, id="evening", branch="ours")
    assert [r["name"] for r in t.same_refs()] == ["main", "ours", "theirs"]
    assert t.agree() == [1, 2, 3] and t.agree("ours") == t.agree("theirs") == [2, 3, 4]
    t.open().refs.publish("night")
    t.call("CALL ice.system.publish_changes(wap_id => 'evening')")
    assert t.agree() == [1, 2, 3, 4, 5]
