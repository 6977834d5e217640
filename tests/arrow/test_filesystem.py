"""Data files by URI: the same behaviour natively and over storages, locally, in memory and on an S3 stand-in."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from boathouse.arrow.filesystem import NativeFiles, StorageFiles, data_files, not_native
from boathouse.errors import CorruptTableError, NotFoundError, StorageError, UndecidedError, UnsupportedFeatureError
from boathouse.parquet.read import SourceColumn, scan_file
from boathouse.storage import StorageOptions, Stores, join
from boathouse.testing.faults import Fault, FaultyStorage, Plan
from boathouse.types import INT64
from makers.stand_ins import s3_stand_in

TABLE = pa.table({"n": list(range(10_000)), "s": [str(n % 7) for n in range(10_000)]})
NAMES = ["f.parquet", "a b/c%20d.parquet", "x#12", "p=a%3Ab/q+r/ü:é?.parquet"]


@pytest.fixture(scope="module")
def s3():
    pytest.importorskip("moto.server", reason="the fake S3 server needs moto[server]")
    with s3_stand_in() as server:
        yield server


@pytest.fixture(params=["native", "storage", "chosen", "memory", "wrapped", "s3-native", "s3-storage", "s3-chosen"])
def place(request, tmp_path):
    """(data files, a root to write in)"""
    kind = request.param
    if kind.startswith("s3"):
        s3 = request.getfixturevalue("s3")
        stores, root = Stores(s3.options), f"s3://{s3.bucket()}/t"
    else:
        wrap = FaultyStorage if kind == "wrapped" else None
        stores, root = Stores(wrap=wrap), "file://" + str(tmp_path)
    if kind == "memory":
        root = f"memory://{tmp_path.name}"
    if kind.endswith("native"):
        return NativeFiles(stores.options), root
    return (StorageFiles(stores) if kind.endswith("storage") else data_files(stores)), root


@pytest.mark.parametrize("name", NAMES)
def test_parquet_goes_out_and_comes_back(place, name: str) -> None:
    files, root = place
    uri = join(root, "deep/folder", name)
    with files.open_output(uri) as sink:
        assert isinstance(sink, pa.NativeFile)
        pq.write_table(TABLE, sink, row_group_size=1000)
    with files.open_input(uri) as source:
        assert isinstance(source, pa.NativeFile)
        assert pq.read_table(source).equals(TABLE)
    with files.open_input(uri) as source:
        assert files.size(uri) == source.size()
        some = pq.ParquetFile(source, pre_buffer=True).read_row_groups([2, 7], columns=["n"])
        assert some["n"].to_pylist() == [*range(2000, 3000), *range(7000, 8000)]
        assert bytes(source.read_at(4, 0)) == b"PAR1"
    files.delete(uri)
    files.delete(uri)
    with pytest.raises(NotFoundError):
        files.size(uri)


def test_what_is_not_there(place) -> None:
    files, root = place
    for name in ("nothing", "no/folder/nothing"):
        for ask in (files.open_input, files.size):
            with pytest.raises(NotFoundError) as caught:
                ask(join(root, name))
            assert caught.value.where == join(root, name)


def test_both_ways_meet_in_the_same_bytes(s3, tmp_path: Path) -> None:
    for options, root in ((s3.options, f"s3a://{s3.bucket()}"), (None, str(tmp_path))):
        stores = Stores(options)
        native, slow = NativeFiles(stores.options), StorageFiles(stores)
        for writer, reader in ((native, slow), (slow, native)):
            uri = join(root, f"{type(writer).__name__} %20#1")
            with writer.open_output(uri) as sink:
                sink.write(b"0123456789")
            with reader.open_input(uri) as source:
                assert source.read() == b"0123456789" and reader.size(uri) == 10
            storage, key = stores.resolve(uri)
            assert storage.get(key) == b"0123456789"


def test_a_chosen_delete_leaves_no_folder_marker(s3) -> None:
    stores, root = Stores(s3.options), f"s3://{s3.bucket()}"
    files = data_files(stores)
    with files.open_output(f"{root}/d/f") as sink:
        sink.write(b"1")
    files.delete(f"{root}/d/f")
    assert list(stores.resolve(root)[0].list("")) == []


def test_choice(tmp_path: Path) -> None:
    local, memory = str(tmp_path / "f"), "memory://choice/f"
    files = data_files(Stores())
    for uri, kind in ((local, pa.OSFile), (memory, pa.PythonFile)):
        with files.open_output(uri) as sink:
            sink.write(b"1")
        with files.open_input(uri) as source:
            assert type(source) is kind
    wrapped = Stores(wrap=FaultyStorage)
    with data_files(wrapped).open_input(local) as source:
        assert type(source) is pa.PythonFile and source.read() == b"1"
    storage = wrapped.resolve(local)[0]
    assert [op.name for op in storage.log] == ["head", "get_range"]


def test_a_known_size_saves_a_request(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"a": range(3)}), path)
    columns, size = [SourceColumn("a", INT64)], path.stat().st_size
    asked = []
    for known in (None, size):
        stores = Stores(wrap=FaultyStorage)
        batches = scan_file(data_files(stores), str(path), columns, size=known)
        assert pa.Table.from_batches(batches).to_pydict() == {"a": [0, 1, 2]}
        asked.append([op.name for op in stores.resolve(str(path))[0].log])
    assert asked[0] == ["head", *asked[1]] and "head" not in asked[1]
    with pytest.raises(NotFoundError):
        list(scan_file(data_files(Stores(wrap=FaultyStorage)), str(tmp_path / "none"), columns, size=size))
    with pytest.raises(CorruptTableError):
        list(scan_file(data_files(Stores(wrap=FaultyStorage)), str(path), columns, size=size - 1))


def test_faults_reach_data_files(tmp_path: Path) -> None:
    stores = Stores(wrap=lambda inner: FaultyStorage(inner, Plan(writes={1: Fault.UNSENT, 2: Fault.LOST})))
    files = data_files(stores)
    for name, landed in (("a", False), ("b", True)):
        with pytest.raises(UndecidedError):
            with files.open_output(str(tmp_path / name)) as sink:
                sink.write(b"1")
        assert (tmp_path / name).exists() is landed
    assert sorted(os.listdir(tmp_path)) == ["b"]


def test_pickled_files_read_in_another_process_without_obstore(tmp_path: Path, s3) -> None:
    script = (
        "import pickle, sys\n"
        "files, uris = pickle.load(sys.stdin.buffer)\n"
        "for uri in uris: assert files.open_input(uri).read() == b'sent', uri\n"
        "assert 'obstore' not in sys.modules"
    )
    stores = Stores(s3.options)
    files, uris = data_files(stores), [str(tmp_path / "f"), f"s3://{s3.bucket()}/f"]
    for uri in uris:
        with files.open_output(uri) as sink:
            sink.write(b"sent")
    for sent in (files, NativeFiles(stores.options)):
        subprocess.run([sys.executable, "-c", script], input=pickle.dumps((sent, uris)), check=True)
    assert pickle.loads(pickle.dumps(files)) == NativeFiles(stores.options)
    assert "testsecret" not in repr(NativeFiles(stores.options))
    with pytest.raises(UnsupportedFeatureError):
        pickle.dumps(data_files(Stores(wrap=FaultyStorage)))


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("memory://m/k", {}),
        ("gs://b/k", {"service_account_key": "{}"}),
        ("az://c/k", {"account_name": "a", "bearer_token": "t"}),
    ],
)
def test_what_executors_cannot_open_is_refused(uri: str, options: dict[str, str]) -> None:
    for ask in ("open_input", "open_output", "size", "delete"):
        with pytest.raises(UnsupportedFeatureError, match="Executors cannot"):
            getattr(NativeFiles(StorageOptions.of(options)), ask)(uri)


@pytest.mark.parametrize("scheme", ["file", "s3", "gs", "az", "abfss"])
def test_plain_options_are_native(scheme: str) -> None:
    assert not_native(StorageOptions.of({"region": "x", "account_name": "a", "account_key": "YQ=="}), scheme) is None


@pytest.mark.parametrize(
    ("endpoint", "native"),
    [
        ("https://acc.blob.core.windows.net", True),
        ("https://acc.blob.core.windows.net/", True),
        ("https://acc.blob.storage.azure.net", True),
        ("http://127.0.0.1:10000/acc", True),
        ("http://127.0.0.1:10000/other", False),
        ("https://storage.example", False),
        ("https://account.example", False),
    ],
)
def test_azure_endpoints_that_arrow_can_address(endpoint: str, native: bool) -> None:
    for given, uri in (({"account_name": "acc"}, "az://c/k"), ({}, "abfss://c@acc.dfs.core.windows.net/k")):
        options = StorageOptions.of({**given, "account_key": "c2VjcmV0", "endpoint": endpoint})
        if native:
            assert NativeFiles(options)._system(uri)[0].type_name == "abfs"
            continue
        with pytest.raises(UnsupportedFeatureError, match="no endpoint without the account"):
            NativeFiles(options)._system(uri)


def test_azure_and_gcs_open_lazily() -> None:
    options = StorageOptions.of({"account_key": "c2VjcmV0", "gcs.oauth2.token": "t"})
    gcs, path = NativeFiles(options)._system("gs://b/k x#1")
    assert gcs.type_name == "gcs" and path == "b/k x#1"
    azure, path = NativeFiles(StorageOptions.of({"account_key": "c2VjcmV0"}))._system(
        "abfss://c@acc.dfs.core.windows.net/k"
    )
    assert azure.type_name == "abfs" and path == "c/k"


def test_native_errors_are_typed_and_tell_no_secret(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError):
        NativeFiles(StorageOptions()).open_output(str(tmp_path / "file/below"))
    options = {
        "endpoint": "http://127.0.0.1:1",
        "access_key_id": "theKey",
        "secret_access_key": "theSecret",
        "region": "x",
        "max_retries": "0",
        "connect_timeout": "1s",
    }
    with pytest.raises(UndecidedError) as caught:
        NativeFiles(StorageOptions.of(options)).size("s3://b/k")
    assert caught.value.__context__ is None and "theKey" not in str(caught.value)
