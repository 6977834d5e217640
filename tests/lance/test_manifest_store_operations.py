"""Every operation on a table whose versions are agreed on in a manifest store, what maintenance leaves, and how a store
is named."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.api.detection import locate
from boathouse.bits import system
from boathouse.errors import InvalidArgumentError, MissingRequirementError, StorageError, VersionNotFoundError
from boathouse.lance.adapter import FORMAT
from boathouse.lance.external import dynamodb
from boathouse.lance.external.store import Entry
from boathouse.lance.manifests.versions import manifest_name
from boathouse.table.context import TableContext
from boathouse.testing.clocks import Ahead

from .manifest_stores import LOST, StoreKit, failing, raising
from .test_manifest_store import die_before, ids, row

lance = pytest.importorskip("lance")
LATER = "2100-01-01"


@pytest.fixture
def kit(tmp_path) -> StoreKit:
    return StoreKit(tmp_path / "t", tmp_path / "commits.db")


@pytest.mark.feature("external manifest store", format="lance")
def test_every_operation(kit):
    """Each makes the next version in the store, and the folder alone says the same."""
    kit.create(pa.table({"a": pa.array(range(10), pa.int64()), "s": list("abcdefghij")}))
    more = pa.table({"a": pa.array([3, 20], pa.int64()), "s": ["x", "y"]})
    steps = (
        lambda t: t.append(more),
        lambda t: t.delete("a = 20"),
        lambda t: t.update({"s": "'z'"}, where="a = 5"),
        lambda t: (
            t.merge(more, on="target.a = source.a").when_matched_update_all().when_not_matched_insert_all().execute()
        ),
        lambda t: t.add_columns({"b": "a * 2"}),
        lambda t: t.rename_column("b", "c"),
        lambda t: t.drop_column("c"),
        lambda t: t.set_properties({"k": "v"}),
        lambda t: t.optimize(),
        lambda t: t.restore(2),
        lambda t: bh.write(more, kit.uri, mode="overwrite", storage_options=kit.options),
    )
    for version, step in enumerate(steps, 2):
        step(kit.open())
        assert kit.open().version == version and ids(kit.open()) == ids(kit.alone())
    assert kit.entries() == {v: manifest_name(v, "V2") for v in range(1, len(steps) + 2)}
    assert kit.names() == sorted(kit.entries().values())
    assert [e.operation for e in kit.open().history()] == [e.operation for e in kit.alone().history()]
    assert kit.dataset().to_table().num_rows == 2
    kit.dataset().validate()
    assert kit.open(version=2).count() == 12


@pytest.mark.feature("external manifest store", format="lance")
def test_tags_branches_and_clones(kit):
    kit.create(row(1)).append(row(2))
    refs = kit.open().refs
    refs.create_tag("kept", version=1)
    refs.create_branch("dev/x", version=1)
    branch = f"{kit.location.uri}/tree/dev/x"
    assert kit.open(ref="dev/x").append(row(9)).version == 2
    assert ids(kit.open(ref="dev/x")) == [1, 9] and ids(kit.open(ref="kept")) == [1] and ids(kit.open()) == [1, 2]
    assert [version for base, version, *_ in kit.rows() if base == branch] == [1, 2]
    assert kit.dataset().checkout_version(("dev/x", None)).to_table().num_rows == 2
    refs.drop_branch("dev/x")
    assert [base for base, *_ in kit.rows() if base == branch] == []
    # pylance leaves the versions of a branch in the store when it drops it.
    for version in (1, 2, 3):
        kit.store.put_if_absent(branch, Entry(version, f"{branch}/_versions/{manifest_name(version, 'V2')}", 1))
    kit.open().refs.create_branch("dev/x")
    kit.open(ref="dev/x").append(row(5))
    assert ids(kit.open(ref="dev/x")) == [1, 2, 5]
    kit.open().clone(f"{kit.uri}-clone")
    clone = bh.open(f"{kit.uri}-clone", storage_options=kit.options)
    clone.append(row(3))
    assert ids(clone.refresh()) == [1, 2, 3] == ids(bh.open(f"{kit.uri}-clone"))
    assert [v for base, v, *_ in kit.rows() if base.endswith("-clone")] == [2, 3]


def test_a_branch_whose_writer_died_is_finished(kit):
    kit.create(row(1)).refs.create_branch("dev")
    branch = StoreKit(kit.root / "tree/dev", kit.path)
    die_before(branch, "copy", row(2))
    assert ids(bh.open(kit.uri, ref="dev")) == [1]
    assert ids(kit.open(ref="dev")) == ids(bh.open(kit.uri, ref="dev")) == [1, 2]


def test_versions_that_expire(kit, monkeypatch):
    """Their entries stay, as pylance leaves them, so that no version is given twice. Where one still named the staged
    manifest, it no longer does: a reader would make the version final again."""
    kit.create(row(1))
    with monkeypatch.context() as patch:
        failing(patch, kit.store, before=raising("put_if_exists", LOST, times=100))
        kit.open().append(row(2))
        kit.open().append(row(3))
    assert kit.store.get(kit.location.uri, 2).uri.count(".manifest-") == 1
    kit.open().append(row(4))
    kit.open().expire_snapshots(older_than=LATER, retain_last=1)
    assert [n for n in kit.names() if ".manifest-" not in n] == [manifest_name(4, "V2")]
    assert kit.entries() == {v: manifest_name(v, "V2") for v in (1, 2, 3, 4)}
    with pytest.raises(VersionNotFoundError):
        kit.open(version=2)
    assert not kit.store.put_if_absent(kit.location.uri, Entry(2, "x"))
    kit.open().append(row(5))
    assert ids(kit.open()) == ids(kit.alone()) == [1, 2, 3, 4, 5] and kit.open().version == 5


@pytest.mark.parametrize("knows", [True, False])
def test_vacuum_leaves_what_the_store_names(kit, knows):
    """A staged manifest that is newer than every version stays with its files even where the store is not known."""
    kit.create(row(1))
    die_before(kit, "reserve", row(8))
    die_before(kit, "copy", row(2))
    unchosen, chosen = sorted(kit.root.glob("_versions/*-*"), key=lambda p: p.name in kit.entries().values())
    with system.use(Ahead(24 * 8)):
        table = kit.open() if knows else kit.alone()
        table.vacuum()
        table.remove_orphan_files()
    assert unchosen.exists() == (not knows) and chosen.exists() == (not knows)
    assert ids(kit.open()) == ids(kit.alone()) == [1, 2]


def test_vacuum_repairs_what_the_store_names(kit, monkeypatch):
    """An older version whose staged manifest is still named: its final one is there, so the store is told of it."""
    kit.create(row(1))
    with monkeypatch.context() as patch:
        failing(patch, kit.store, before=raising("put_if_exists", LOST, times=100))
        kit.open().append(row(2))
        kit.open().append(row(3))
    kit.open()
    staged = next(kit.root.glob("_versions/*-*"))
    lost = staged.with_name(f"{manifest_name(1, 'V2')}-lost")
    lost.write_bytes((kit.root / "_versions" / manifest_name(1, "V2")).read_bytes())
    first = kit.store.get(kit.location.uri, 1)
    kit.store.put_if_exists(kit.location.uri, replace(first, uri=f"{kit.location.uri}/_versions/{lost.name}"))
    (kit.root / "_versions" / manifest_name(1, "V2")).unlink()
    with system.use(Ahead(24 * 8)):
        kit.open().remove_orphan_files()
    assert not staged.exists() and kit.entries()[2] == manifest_name(2, "V2")
    assert lost.exists() and kit.entries()[1] == lost.name  # its final one is not there: the store's word stays
    assert ids(kit.open()) == [1, 2, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"manifest_store": "redis://x"}, "'redis://x' does not name a manifest store"),
        ({"manifest_store": "sqlite:///"}, "does not name a manifest store"),
        ({"manifest_store": "dynamodb://"}, "does not name a manifest store"),
        ({"manifest_store": "sqlite:///no/such.db"}, "there is no manifest store here"),
        ({"manifest_stores": "sqlite:///x.db"}, "Unknown storage option"),
    ],
)
def test_names_that_are_no_stores(kit, options, message):
    bh.write(row(1), kit.uri, format="lance")
    before = kit.files()
    for act in (
        lambda: bh.open(kit.uri, storage_options=options),
        lambda: bh.write(row(1), kit.uri, mode="append", storage_options=options),
        lambda: bh.create(f"{kit.uri}-new", "a bigint", format="lance", storage_options=options),
        lambda: bh.write(row(1), f"{kit.uri}-new", format="lance", storage_options=options),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            act()
    assert kit.files() == before and not (kit.root.parent / "t-new").exists()


@pytest.mark.parametrize(
    "uri",
    [
        "s3+ddb://bucket/t",
        "s3+ddb://bucket/t?ddbTableName=",
        "s3+ddb://bucket/t?table=x",
        "s3+ddb://bucket/t?ddbTableName=a&ddbTableName=b",
        "S3+DDB://bucket/t?ddbTableName=a&region=b",
    ],
)
def test_addresses_that_name_no_table(uri):
    with pytest.raises(InvalidArgumentError, match="s3\\+ddb address names one DynamoDB table") as caught:
        bh.open(uri)
    assert "?ddbTableName=TABLE" in str(caught.value)


def test_a_store_is_for_lance(kit, tmp_path):
    """Writers of other formats would not ask it."""
    for format in ("delta", "iceberg"):
        place = str(tmp_path / format)
        with pytest.raises(InvalidArgumentError, match="is for Lance tables, and this is"):
            bh.create(place, "a bigint", format=format, storage_options=kit.options)
        with pytest.raises(InvalidArgumentError, match="is for Lance tables, and this is"):
            bh.write(row(1), place, format=format, storage_options=kit.options)
        assert not (tmp_path / format).exists()
        bh.write(row(1), place, format=format)
        for act in (
            lambda place=place: bh.open(place, storage_options=kit.options),
            lambda place=place: bh.write(row(1), place, mode="append", storage_options=kit.options),
        ):
            with pytest.raises(InvalidArgumentError, match="is for Lance tables, and this is"):
                act()
    with pytest.raises(InvalidArgumentError, match="Write s3://bucket/t"):
        bh.create("s3+ddb://bucket/t?ddbTableName=commits", "a bigint", format="delta")


def test_two_names(kit):
    context = TableContext(locate("s3+ddb://bucket/t?ddbTableName=x"), kit.stores)
    with pytest.raises(InvalidArgumentError, match="names the manifest store dynamodb://x, and the option"):
        FORMAT.open(context)


def test_a_file_that_is_no_store(kit):
    kit.path.write_bytes(b"not a database, but longer than the header of one" * 100)
    with pytest.raises(StorageError, match="the manifest store failed: file is not a database"):
        kit.create(row(1))


def test_a_store_that_somebody_else_holds(kit, monkeypatch):
    """A locked file is an error after the wait, before anything was committed."""
    table = kit.create(row(1))
    monkeypatch.setattr("boathouse.lance.external.sqlite._WAIT_SECONDS", 0.0)
    with sqlite3.connect(kit.path, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="database is locked"):
            table.append(row(2))
    other.close()
    table.append(row(2))
    assert ids(kit.open()) == ids(kit.alone()) == [1, 2]


def test_without_boto3(kit, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(dynamodb, "import_module", missing)
    with pytest.raises(MissingRequirementError, match=r"Pip install .boathouse\[dynamodb\]"):
        bh.write(row(1), kit.uri, format="lance", storage_options={"manifest_store": "dynamodb://never-made"})


@pytest.mark.spark
@pytest.mark.feature("external manifest store", format="lance")
def test_on_spark(kit, spark):
    """Executors write data files; the driver commits through the store, also that of the data source."""
    frame = spark.range(10).selectExpr("id AS a")
    options = {f"storage.{name}": value for name, value in kit.options.items()}
    for mode in ("append", "append"):
        frame.write.format("boathouse").options(tableFormat="lance", **options).mode(mode).save(kit.uri)
    table = kit.open(spark=spark)
    table.delete("a < 5")
    table.update({"a": "a + 100"}, where="a = 7")
    die_before(kit, "copy", row(1000))
    rows = [5, 5, 6, 6, 8, 8, 9, 9, 107, 107]
    assert spark.read.format("boathouse").load(kit.uri).count() == 10
    found = spark.read.format("boathouse").options(**options).load(kit.uri).collect()
    assert sorted(r["a"] for r in found) == ids(kit.open()) == ids(kit.alone()) == [*rows, 1000]
    assert kit.entries() == {v: manifest_name(v, "V2") for v in range(1, 6)}
    assert kit.names() == sorted(kit.entries().values())
