"""Tables whose metadata names another place than the one where they are: nothing is guessed."""

import shutil

import pyarrow as pa
import pytest
from foreign_writer import Foreign

import boathouse as bh
from boathouse.errors import InvalidArgumentError, MissingFileError, UnsupportedFeatureError
from boathouse.iceberg.paths import Paths

DATA = pa.table({"id": [1, 2, 3, 4], "p": ["a", "a", "b", "b"]})


def ids_of(table, **scan):
    return sorted(table.scan(["id"], **scan).to_arrow()["id"].to_pylist())


@pytest.fixture
def copied(make, tmp_path):
    """A table with row deletes of every kind, moved to another folder: (where it was, where it is)."""
    _, eyes = make(DATA, partition_by=["p"])
    foreign = Foreign(eyes.root).upgrade()
    paths = dict(zip("ab", sorted(foreign.live(), key=lambda path: "p=b" in path)))
    foreign.commit(foreign.positions([(paths["a"], 0)], {"p": "a"}))
    foreign.commit(*foreign.vectors({paths["b"]: [0]}, {"p": "b"}))
    foreign.commit(foreign.equality(pa.table({"id": pa.array([9])}), [1], partition={"p": "b"}))
    shutil.move(eyes.root, tmp_path / "copy")
    return eyes.root, tmp_path / "copy"


@pytest.mark.spec("I-030")
def test_refused_naming_both_places(copied):
    before, now = copied
    metadata = max((now / "metadata").glob("v*.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    for uri in (now, metadata):
        with pytest.raises(UnsupportedFeatureError) as caught:
            bh.open(str(uri))
        assert str(before) in str(caught.value) and str(now) in str(caught.value)
        assert f"relocated={{'file://{before}': 'file://{now}'}}" in str(caught.value)


@pytest.mark.spec("I-030")
@pytest.mark.parametrize("above", [False, True])
@pytest.mark.feature("relocated tables", format="iceberg")
def test_opened_with_a_map(copied, above):
    before, now = copied
    pair = {str(before.parent / "t"): f"file:{now}"}
    if above:
        (now.parent / "lake").mkdir()
        now = now.rename(now.parent / "lake" / "t")
        pair = {f"file://{before.parent}/": str(now.parent)}
    table = bh.open(str(now), relocated=pair)
    assert ids_of(table) == [2, 4] and ids_of(table, where="p = 'a'") == [2] and table.count() == 2
    first = [e.version for e in table.history() if e.version][-1]
    assert ids_of(bh.open(str(now), version=first, relocated=pair)) == [1, 2, 3, 4]
    assert table.changes(0).to_arrow().num_rows == 6
    assert table.inspect.files().num_rows == 5


def test_metadata_alone_was_copied(make, tmp_path):
    """Then a map says that the files are where they were."""
    _, eyes = make(DATA)
    shutil.copytree(eyes.root / "metadata", tmp_path / "copy" / "metadata")
    assert ids_of(bh.open(str(tmp_path / "copy"), relocated={str(eyes.root): str(eyes.root)})) == [1, 2, 3, 4]
    with pytest.raises(MissingFileError, match="copy"):
        bh.open(str(tmp_path / "copy"), relocated={str(eyes.root): str(tmp_path / "copy")}).to_arrow()


def test_several_folders(make, tmp_path):
    """The longest one decides."""
    _, eyes = make(DATA)
    shutil.move(eyes.root / "data", tmp_path / "bulk")
    shutil.move(eyes.root, tmp_path / "copy")
    pairs = {str(eyes.root): str(tmp_path / "copy"), f"{eyes.root}/data": str(tmp_path / "bulk")}
    assert ids_of(bh.open(str(tmp_path / "copy"), relocated=pairs)) == [1, 2, 3, 4]


def test_a_link_is_the_same_place(make, tmp_path):
    table, eyes = make(DATA)
    (tmp_path / "link").symlink_to(eyes.root)
    linked = bh.open(str(tmp_path / "link"))
    assert ids_of(linked) == [1, 2, 3, 4]
    linked.append(DATA)
    assert table.refresh().count() == 8 and eyes.rows().num_rows == 8


def test_a_map_of_other_folders_is_not_enough(copied):
    before, now = copied
    with pytest.raises(UnsupportedFeatureError, match="says that it is at"):
        bh.open(str(now), relocated={str(before) + "x": str(now)})
    with pytest.raises(InvalidArgumentError, match="relocated"):
        bh.open(str(now), relocated=[str(before)])


def test_other_formats_take_no_map(tmp_path):
    bh.create(str(tmp_path / "d"), DATA.schema, format="delta")
    with pytest.raises(InvalidArgumentError, match="relocated= is for Iceberg tables"):
        bh.open(str(tmp_path / "d"), relocated={"/a": "/b"})


def test_paths_of_the_stores():
    """Folders are compared as places, whatever their scheme is called."""
    there = (("s3://old/t", "gs://new/t"),)
    paths = Paths.of("s3a://old/t", "gs://new/t", "gs://new/t/metadata/v1.metadata.json", None, there)
    assert paths.uri("s3a://old/t/data/a.parquet") == paths.uri("s3n://old/t/data/a.parquet")
    assert paths.uri("s3://old/t/data/a.parquet") == "gs://new/t/data/a.parquet"
    assert paths.uri("s3://older/t/a.parquet") == "s3://older/t/a.parquet"
    found = paths.uris(pa.array(["s3a://old/t/data/b", "s3://else/c"])).to_pylist()
    assert found == ["gs://new/t/data/b", "s3://else/c"]
    same = Paths.of("s3a://b/t", "s3://b/t", "s3://b/t/metadata/v1.metadata.json")
    assert not same.moved


def test_a_scheme_without_a_store_is_text(make, tmp_path):
    """Metadata names a place of HDFS, from which the files were copied."""
    _, eyes = make(DATA, partition_by=["p"])
    shutil.move(eyes.root, tmp_path / "copy")
    old, now = "hdfs://nn:8020/wh/db/t", str(tmp_path / "copy")
    for path in (tmp_path / "copy" / "metadata").glob("*.json"):
        path.write_text(path.read_text().replace(f"file://{eyes.root}", old))
    with pytest.raises(UnsupportedFeatureError, match="hdfs"):
        bh.open(now, relocated={str(eyes.root): now}).to_arrow()
    for before, after in ((old, now), (f"{old}/", now), ("hdfs://nn:8020/wh", str(tmp_path))):
        if before.endswith("wh"):
            (tmp_path / "db").mkdir()
            shutil.move(now, tmp_path / "db" / "t")
            now = str(tmp_path / "db" / "t")
        table = bh.open(now, relocated={before: after, str(eyes.root): now})
        assert ids_of(table) == [1, 2, 3, 4] and ids_of(table, where="p = 'a'") == [1, 2]
        assert table.inspect.metadata_log_entries().num_rows


def test_texts_are_whole_folders():
    paths = Paths.of("hdfs://nn/wh/t", "file:///x", "file:///x/m.json", None, (("hdfs://nn/wh", "file:///y"),))
    assert paths.uri("hdfs://nn/wh/t/data/a b.parquet") == "file:///y/t/data/a b.parquet"
    assert paths.uris(pa.array(["hdfs://nn/wh/t/1", "hdfs://nn/wh"])).to_pylist() == ["file:///y/t/1", "file:///y"]
    for other in ("hdfs://nn/wh2/t", "hdfs://other/wh/t", "viewfs://nn/wh/t"):
        with pytest.raises(UnsupportedFeatureError, match="scheme"):
            paths.uri(other)
