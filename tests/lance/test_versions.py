"""Names of manifests, versions by number, time and tag."""

from __future__ import annotations

import itertools
import time

import pyarrow as pa
import pytest

from boathouse.errors import (
    CorruptTableError,
    ReadOnlyError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from boathouse.lance.manifests.messages import DataFile
from boathouse.lance.manifests.versions import VersionFile, list_versions, manifest_name, parse_name, recent
from boathouse.lance.paths import file_version
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import At, Location
from boathouse.testing.faults import FaultyStorage

lance = pytest.importorskip("lance")


@pytest.mark.spec("L-048")
def test_names_of_both_schemes():
    assert manifest_name(1, "V2") == "18446744073709551614.manifest"
    assert manifest_name(10, "V1") == "10.manifest"
    assert parse_name("x/_versions/18446744073709551614.manifest").version == 1
    assert parse_name("10.manifest") == VersionFile(10, "V1", "10.manifest")
    for version in (1, 2, 7, 10**9):
        for scheme in ("V1", "V2"):
            found = parse_name(manifest_name(version, scheme))
            assert (found.version, found.scheme) == (version, scheme)


@pytest.mark.spec("L-048", "L-050")
def test_both_schemes_are_read_and_kept(kit, numbers):
    kit.pylance(numbers, enable_v2_manifest_paths=False)
    kit.pylance(numbers, mode="append", enable_v2_manifest_paths=False)
    assert (kit.root / "_versions/2.manifest").exists()
    assert kit.load().version == 2
    kit.open().append(numbers)
    assert (kit.root / "_versions/3.manifest").exists()
    assert kit.dataset().count_rows() == 30
    ours = kit.load()
    assert ours.detail()["naming"] == "V1"


@pytest.mark.spec("L-049")
def test_new_tables_have_v2_names(kit, numbers):
    kit.create(numbers)
    assert [p.name for p in kit.manifests()] == ["18446744073709551614.manifest"]
    assert kit.dataset().version == 1


@pytest.mark.spec("L-051")
def test_a_mixture_of_both_schemes_is_refused(kit, numbers):
    kit.pylance(numbers)
    (kit.root / "_versions/1.manifest").write_bytes(kit.manifests()[0].read_bytes())
    with pytest.raises(CorruptTableError, match="both naming schemes"):
        kit.load()
    with pytest.raises(ValueError, match="naming"):
        kit.dataset().checkout_version(1)


@pytest.mark.spec("L-053")
@pytest.mark.parametrize("hint", [b'{"version":1}', b'{"version":99}', b"garbage", None])
def test_the_version_hint_is_never_trusted(kit, numbers, hint):
    kit.pylance(numbers)
    kit.pylance(numbers, mode="append")
    path = kit.root / "_versions/latest_version_hint.json"
    path.unlink(missing_ok=True)
    if hint is not None:
        path.write_bytes(hint)
    assert kit.load().version == 2


@pytest.mark.spec("L-054")
def test_staged_detached_and_temporary_names_are_no_versions(kit, numbers):
    kit.pylance(numbers)
    body = kit.manifests()[0].read_bytes()
    for name in (
        "18446744073709551600.manifest-3f0cbd3c-8f5e-4a3a-9f3e-8a5f2f1d9c11",
        "d9223372036854775809.manifest",
        ".tmp-18446744073709551600.manifest",
        "18446744073709551600.manifest.tmp",
        "notes.txt",
    ):
        (kit.root / "_versions" / name).write_bytes(body)
    assert kit.load().version == 1
    assert [v.version for v in list_versions(kit.context)] == [1]


@pytest.mark.spec("L-052")
def test_the_newest_of_10_000_manifests_takes_one_listing():
    counted: list[FaultyStorage] = []

    def wrap(storage):
        counted.append(FaultyStorage(storage))
        return counted[-1]

    stores = Stores(wrap=wrap)
    context = TableContext(Location("memory://many-versions/t"), stores)
    storage, _ = stores.resolve(context.location.uri)
    inner = storage.inner if hasattr(storage, "inner") else storage
    for version in range(1, 10_001):
        inner.put(f"t/_versions/{manifest_name(version, 'V2')}", b"x")
    before = [sum(s.count(name) for s in counted) for name in ("list", "list_dir", "get", "head")]
    found = recent(context)[0]
    after = [sum(s.count(name) for s in counted) for name in ("list", "list_dir", "get", "head")]
    assert found.version == 10_000
    # One page of the listing gives the newest; one more asks whether V1 names hide behind the V2 names.
    assert [b - a for a, b in zip(before, after)] in ([1, 0, 0, 0], [2, 0, 0, 0])
    inner.put("t/_versions/2.manifest", b"x")
    with pytest.raises(CorruptTableError):
        recent(context)


@pytest.mark.spec("L-050")
@pytest.mark.parametrize("scheme", ["V1", "V2"])
@pytest.mark.parametrize("last", [3, 16, 17, 200])
def test_the_newest_of_many_versions_on_a_disk(tmp_path, scheme, last):
    context = TableContext(Location(tmp_path.as_uri()), Stores())
    folder = tmp_path / "_versions"
    folder.mkdir()
    assert recent(context) == ()
    for version in range(1, last + 1):
        (folder / manifest_name(version, scheme)).write_bytes(b"x" * version)
    found = recent(context)
    assert [v.version for v in found] == list(range(last, last - len(found), -1)) and len(found) >= min(last, 16)
    assert found[0].size == last and found == list_versions(context)[: len(found)]
    (folder / manifest_name(2, "V1" if scheme == "V2" else "V2")).write_bytes(b"x")
    with pytest.raises(CorruptTableError, match="both naming schemes"):
        recent(context)


@pytest.mark.spec("L-055")
def test_versions_by_number(kit, numbers):
    kit.pylance(numbers)
    kit.pylance(numbers.slice(0, 3), mode="append")
    assert kit.load(At(version=1)).version == 1
    assert kit.open(version=1).scan().to_arrow().num_rows == 10
    assert kit.open(version=2).scan().to_arrow().num_rows == 13
    for absent in (0, 3):
        with pytest.raises(VersionNotFoundError, match="The retained versions are 1, 2"):
            kit.load(At(version=absent))
    kit.manifests()[-1].unlink()  # version 1 was cleaned up
    with pytest.raises(VersionNotFoundError, match="The retained versions are 2"):
        kit.load(At(version=1))


def test_versions_by_time(kit, numbers):
    kit.pylance(numbers)
    time.sleep(0.002)  # else both may be of one millisecond
    kit.pylance(numbers, mode="append")
    first, second = kit.load(At(version=1)), kit.load(At(version=2))
    theirs = {v["version"]: v["timestamp"].timestamp() for v in kit.dataset().versions()}
    assert abs(first.timestamp_ms / 1000 - theirs[1]) < 1
    assert kit.load(At(timestamp_ms=first.timestamp_ms)).version == 1
    assert kit.load(At(timestamp_ms=second.timestamp_ms + 10_000)).version == 2
    with pytest.raises(VersionNotFoundError, match="oldest retained"):
        kit.load(At(timestamp_ms=first.timestamp_ms - 10_000))


@pytest.mark.feature("branches and tags", format="lance", engine="either")
def test_versions_by_tag(kit, numbers):
    kit.pylance(numbers)
    kit.pylance(numbers, mode="append")
    kit.dataset().tags.create("releasé", 1)
    snapshot = kit.load(At(ref="releasé"))
    assert (snapshot.version, snapshot.ref) == (1, "releasé")
    assert kit.load(At(ref="main")).version == 2
    with pytest.raises(VersionNotFoundError, match="The tags are releasé, the branches"):
        kit.load(At(ref="other"))
    with pytest.raises(VersionNotFoundError):
        kit.load(At(ref="../tags/releasé"))
    (path,) = (kit.root / "_refs/tags").iterdir()
    path.write_text("{")
    with pytest.raises(CorruptTableError):
        kit.load(At(ref="releasé"))


def in_order(table):
    return sorted(table.column("a").to_pylist())


@pytest.mark.parametrize("name", ["dev", "team/dev-1"])
def test_branches(kit, numbers, name):
    """They have files of their own, and name those of the main line."""
    kit.pylance(numbers)
    kit.dataset().delete("a = 1")
    theirs = kit.dataset().create_branch(name)
    lance.write_dataset(numbers.slice(0, 4), theirs, mode="append")
    kit.pylance(numbers.slice(0, 2), mode="append")
    table = kit.open(ref=name)
    expected = sorted([*numbers.column("a").to_pylist(), *numbers.column("a").to_pylist()[:4]])
    expected.remove(1)
    assert in_order(table.to_arrow()) == expected
    theirs.checkout_latest()
    assert in_order(theirs.to_table()) == expected
    assert table.scan(where="a < 2").count() == sum(a < 2 for a in expected)
    assert [table.version, kit.open().version] == [3, 3]
    assert in_order(kit.open(ref=name, version=2).to_arrow()) == in_order(kit.dataset(version=2).to_table())
    theirs.delete("a = 0")
    assert 0 in table.to_arrow().column("a").to_pylist()
    assert in_order(table.refresh().to_arrow()) == [a for a in expected if a != 0] and table.version == 4
    assert {(r["name"], r["type"]) for r in kit.open().inspect.refs().to_pylist()} == {
        ("main", "BRANCH"), (name, "BRANCH"),
    }  # fmt: skip
    with pytest.raises(VersionNotFoundError, match=f"the branches {name}"):
        kit.open(ref="other")


def test_a_tag_on_a_branch(kit, numbers):
    kit.pylance(numbers)
    theirs = kit.dataset().create_branch("dev")
    lance.write_dataset(numbers, theirs, mode="append")
    kit.dataset().tags.create("both", ("dev", 2))
    theirs.checkout_latest()
    theirs.delete("a = 1")
    table = kit.open(ref="both")
    assert (table.version, table.scan().count()) == (2, 2 * numbers.num_rows)
    assert table.refresh().scan().count() == 2 * numbers.num_rows
    assert kit.open(ref="dev").version == 3
    with pytest.raises(ReadOnlyError, match="tag"):
        table.append(numbers)


def test_a_folder_without_manifests_is_no_table(kit):
    kit.root.mkdir()
    with pytest.raises(TableNotFoundError):
        kit.load()
    kit.pylance(pa.table({"a": [1]}))
    assert kit.load().version == 1


@pytest.mark.spec("L-032")
def test_versions_of_data_files():
    known = {(0, 0): "0.1", (0, 2): "0.1", (0, 3): "2.0", (2, 0): "2.0", (2, 1): "2.1", (2, 2): "2.2"}
    for pair in itertools.product(range(5), range(6)):
        file = DataFile(path="x.lance", file_major_version=pair[0], file_minor_version=pair[1])
        if pair in known:
            assert file_version(file, "t") == known[pair]
        elif pair != (0, 1):
            with pytest.raises(UnsupportedFeatureError, match=rf"version {pair[0]}\.{pair[1]}"):
                file_version(file, "t")


@pytest.mark.parametrize("version", ["2.3"])
def test_a_table_of_the_next_version_is_refused(kit, numbers, version):
    kit.pylance(numbers, data_storage_version=version)
    assert kit.load().version == 1
    with pytest.raises(UnsupportedFeatureError, match=r"2\.3"):
        kit.read()
