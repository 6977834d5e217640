"""A conformance suite for storages: subclass `StorageConformance` in a test file and give it a fresh storage.

    class TestMyStorage(StorageConformance):
        @pytest.fixture
        def storage(self):
            return MyStorage(...)

`prefix` is the folder in which a test writes, "" for the whole store; it must be empty at the start.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from boathouse.errors import AlreadyExistsError, BoathouseError, InvalidArgumentError, NotFoundError
from boathouse.storage import ObjectInfo, PutMode, Storage

AWKWARD = (
    "plain.txt",
    "with space",
    "per%cent",
    "en%20coded%2Fslash",
    "hash#fragment",
    "trailing#12",
    "colon:plus+",
    "question?mark&amp=;",
    "brackets[1]{2}(3)",
    "star*pipe|tilde~caret^",
    "quote\"single'back`",
    "back\\slash",
    ".dot",
    "_under",
    "größe-日本-🚤",
    "key=value/nested=a%3Ab/part-0.parquet",
    "comma,dollar$at@bang!",
)


class StorageConformance:
    """The behaviour that all storages share. Fixtures to override: `storage`, and `prefix` where a store is shared."""

    awkward: ClassVar[tuple[str, ...]] = AWKWARD
    keeps_empty_segments: ClassVar[bool] = True  # False: such keys are refused with InvalidArgumentError

    @pytest.fixture
    def storage(self) -> Storage:
        raise NotImplementedError("override the fixture `storage`")

    @pytest.fixture
    def prefix(self) -> str:
        return "conformance"

    # -- reading and writing --------------------------------------------------------------------------------------

    def test_put_then_get(self, storage: Storage, prefix: str) -> None:
        for data in (b"", b"x", bytes(range(256)) * 1000):
            storage.put(f"{prefix}/a/b", data)
            assert storage.get(f"{prefix}/a/b") == data

    def test_put_takes_any_buffer(self, storage: Storage, prefix: str) -> None:
        storage.put(f"{prefix}/bytearray", bytearray(b"abc"))
        storage.put(f"{prefix}/memoryview", memoryview(b"xabcx")[1:4])
        assert storage.get(f"{prefix}/bytearray") == storage.get(f"{prefix}/memoryview") == b"abc"

    def test_reads_give_bytes(self, storage: Storage, prefix: str) -> None:
        storage.put(f"{prefix}/k", b"0123456789")
        assert type(storage.get(f"{prefix}/k")) is bytes
        assert type(storage.get_range(f"{prefix}/k", 1, 2)) is bytes
        assert {type(part) for part in storage.get_ranges(f"{prefix}/k", [(0, 1), (5, 1)])} == {bytes}

    def test_awkward_names(self, storage: Storage, prefix: str) -> None:
        keys = sorted(f"{prefix}/{name}" for name in self.awkward)
        for key in keys:
            storage.put(key, key.encode())
        for key in keys:
            assert storage.get(key) == key.encode()
            assert storage.head(key).key == key
        assert [info.key for info in storage.list(prefix)] == keys
        for key in keys:
            assert [info.key for info in storage.list(prefix, start_after=key)] == keys[keys.index(key) + 1 :]
        with pytest.raises(AlreadyExistsError):
            storage.put(keys[0], b"", PutMode.CREATE)
        storage.delete(keys)
        assert list(storage.list(prefix)) == []

    def test_doubled_slash(self, storage: Storage, prefix: str) -> None:
        key = f"{prefix}/x//y"
        if self.keeps_empty_segments:
            storage.put(key, b"1")
            assert storage.get(key) == b"1"
            assert storage.exists(key)
            storage.delete([key])
            assert not storage.exists(key)
        else:
            with pytest.raises(InvalidArgumentError):
                storage.put(key, b"1")

    def test_ranges_are_slices(self, storage: Storage, prefix: str) -> None:
        data, key = bytes(range(100)), f"{prefix}/r"
        storage.put(key, data)
        asked = [
            (0, 10),
            (90, 10),
            (95, 50),
            (200, 5),
            (100, 1),
            (-8, 8),
            (-8, 4),
            (-500, 3),
            (-500, 600),
            (5, 0),
            (3, 1),
        ]
        wanted = [data[max(s + 100, 0) if s < 0 else s :][:n] for s, n in asked]
        assert [storage.get_range(key, s, n) for s, n in asked] == wanted
        assert storage.get_ranges(key, asked) == wanted
        assert storage.get_ranges(key, [(50, 5), (0, 5), (50, 5)]) == [data[50:55], data[:5], data[50:55]]
        assert storage.get_ranges(key, []) == []

    def test_range_of_an_empty_object(self, storage: Storage, prefix: str) -> None:
        storage.put(f"{prefix}/empty", b"")
        assert storage.get_range(f"{prefix}/empty", 0, 5) == b""
        assert storage.get_range(f"{prefix}/empty", -5, 5) == b""

    def test_head(self, storage: Storage, prefix: str) -> None:
        storage.put(f"{prefix}/h", b"12345")
        info = storage.head(f"{prefix}/h")
        assert (info.key, info.size) == (f"{prefix}/h", 5)
        assert info.modified_ms > 1_500_000_000_000
        listed = list(storage.list(prefix))
        assert [(i.key, i.size, i.etag) for i in listed] == [(info.key, info.size, info.etag)]
        assert pickle.loads(pickle.dumps(info)) == info
        storage.put(f"{prefix}/h", b"another")
        assert storage.head(f"{prefix}/h").etag != info.etag or info.etag is None

    def test_absent(self, storage: Storage, prefix: str) -> None:
        key = f"{prefix}/folder/not there"
        storage.put(f"{prefix}/folder/file", b"")
        for absent in (key, f"{prefix}/folder", f"{prefix}/nowhere/at/all", f"{prefix}/folder/file/below"):
            assert not storage.exists(absent)
            for read in (
                lambda absent=absent: storage.get(absent),
                lambda absent=absent: storage.head(absent),
                lambda absent=absent: storage.get_range(absent, 0, 1),
                lambda absent=absent: storage.get_range(absent, -1, 1),
                lambda absent=absent: storage.get_ranges(absent, [(0, 1), (5, 1)]),
            ):
                with pytest.raises(NotFoundError) as caught:
                    read()
                assert caught.value.where == storage.uri(absent)

    # -- put-if-absent --------------------------------------------------------------------------------------------

    def test_create_never_overwrites(self, storage: Storage, prefix: str) -> None:
        assert storage.atomic_create
        key = f"{prefix}/c/1.json"
        storage.put(key, b"first", PutMode.CREATE)
        with pytest.raises(AlreadyExistsError) as caught:
            storage.put(key, b"second", PutMode.CREATE)
        assert caught.value.where == storage.uri(key)
        assert storage.get(key) == b"first"
        assert [info.key for info in storage.list(f"{prefix}/c")] == [key]
        storage.put(key, b"third")
        assert storage.get(key) == b"third"
        storage.delete([key])
        storage.put(key, b"fourth", PutMode.CREATE)
        assert storage.get(key) == b"fourth"

    def test_create_has_one_winner_among_threads(self, storage: Storage, prefix: str) -> None:
        def attempt(key: str, worker: int) -> int | None:
            try:
                storage.put(key, b"%d" % worker * 1000, PutMode.CREATE)
            except AlreadyExistsError:
                return None
            return worker

        with ThreadPoolExecutor(8) as pool:
            for turn in range(5):
                key = f"{prefix}/race/{turn}"
                winners = [w for w in pool.map(lambda n, key=key: attempt(key, n), range(8)) if w is not None]
                assert len(winners) == 1
                assert storage.get(key) == b"%d" % winners[0] * 1000

    # -- writers --------------------------------------------------------------------------------------------------

    def test_writer_shows_nothing_before_close(self, storage: Storage, prefix: str) -> None:
        key = f"{prefix}/w"
        writer = storage.open_write(key)
        assert writer.write(b"abc") == 3
        writer.write(memoryview(b"def"))
        assert writer.tell() == 6
        assert not storage.exists(key)
        assert list(storage.list(prefix)) == []
        assert storage.list_dir(prefix)[1] in ([], ())
        writer.close()
        writer.close()
        assert writer.closed
        assert storage.get(key) == b"abcdef"
        with pytest.raises(ValueError):
            writer.write(b"more")

    def test_writer_overwrites_or_not(self, storage: Storage, prefix: str) -> None:
        key = f"{prefix}/w"
        with storage.open_write(key) as writer:
            writer.write(b"1")
        with storage.open_write(key) as writer:
            writer.write(b"2")
            assert storage.get(key) == b"1"
        assert storage.get(key) == b"2"
        with pytest.raises(AlreadyExistsError), storage.open_write(key, PutMode.CREATE) as writer:
            writer.write(b"3")
        assert storage.get(key) == b"2"

    def test_writer_loses_to_one_who_was_faster(self, storage: Storage, prefix: str) -> None:
        key = f"{prefix}/w"
        writer = storage.open_write(key, PutMode.CREATE)
        writer.write(b"slow")
        storage.put(key, b"fast", PutMode.CREATE)
        with pytest.raises(AlreadyExistsError):
            writer.close()
        assert storage.get(key) == b"fast"
        assert [info.key for info in storage.list(prefix)] == [key]

    @pytest.mark.parametrize("mode", PutMode)
    def test_writer_leaves_nothing_after_an_exception(self, storage: Storage, prefix: str, mode: PutMode) -> None:
        with pytest.raises(RuntimeError), storage.open_write(f"{prefix}/a", mode) as writer:
            writer.write(b"x" * 100)
            raise RuntimeError("stop")
        writer.close()
        aborted = storage.open_write(f"{prefix}/b", mode)
        aborted.write(b"x")
        aborted.abort()
        aborted.abort()
        dropped = storage.open_write(f"{prefix}/c", mode)
        dropped.write(b"x")
        del dropped
        assert list(storage.list(prefix)) == []

    def test_large_object_in_pieces(self, storage: Storage, prefix: str) -> None:
        piece = bytes(range(256)) * 4096
        with storage.open_write(f"{prefix}/large") as writer:
            for _ in range(20):
                writer.write(piece)
        assert storage.head(f"{prefix}/large").size == 20 * len(piece)
        assert storage.get_range(f"{prefix}/large", 10 * len(piece) - 3, 6) == piece[-3:] + piece[:3]

    # -- listing --------------------------------------------------------------------------------------------------

    @pytest.fixture
    def tree(self, storage: Storage, prefix: str) -> list[str]:
        names = ["a-b", "a.b/1", "a/1", "a/b/2", "a/b.c", "a0", "b/c/d/e/f", "ab", "a b/3", "z"]
        keys = sorted(f"{prefix}/{name}" for name in names)
        for key in keys:
            storage.put(key, b"1")
        storage.put(f"{prefix}beside/x", b"1")
        return keys

    def test_list_is_sorted_and_recursive(self, storage: Storage, prefix: str, tree: list[str]) -> None:
        assert [info.key for info in storage.list(prefix)] == tree
        assert [info.key for info in storage.list(prefix + "/")] == tree
        assert all(isinstance(info, ObjectInfo) and info.size == 1 for info in storage.list(prefix))
        inside = [key for key in tree if key.startswith(f"{prefix}/a/")]
        assert [info.key for info in storage.list(f"{prefix}/a")] == inside

    def test_list_after_any_text(self, storage: Storage, prefix: str, tree: list[str]) -> None:
        borders = [
            *tree,
            prefix,
            f"{prefix}/",
            f"{prefix}/a",
            f"{prefix}/a/",
            f"{prefix}/a/b/",
            f"{prefix}/zz",
            "!",
            "~",
        ]
        for border in borders:
            found = [info.key for info in storage.list(prefix, start_after=border)]
            assert found == [key for key in tree if key > border], border

    def test_list_of_what_is_not_there(self, storage: Storage, prefix: str, tree: list[str]) -> None:
        for absent in (f"{prefix}/nowhere", f"{prefix}/nowhere/deep", f"{prefix}/a0/below", f"{prefix}/a-"):
            assert list(storage.list(absent)) == []
            assert [list(part) for part in storage.list_dir(absent)] == [[], []]

    def test_holds_what_a_list_would_find(self, storage: Storage, prefix: str, tree: list[str]) -> None:
        for folder in (prefix, f"{prefix}/", f"{prefix}/a", f"{prefix}/b", f"{prefix}/b/c/d"):
            assert storage.holds(folder), folder
        for absent in (f"{prefix}/nowhere", f"{prefix}/nowhere/deep", f"{prefix}/a0/below", f"{prefix}/a-"):
            assert not storage.holds(absent), absent
        storage.delete(key for key in tree if key.startswith(f"{prefix}/b/"))
        assert not storage.holds(f"{prefix}/b")

    def test_list_dir(self, storage: Storage, prefix: str, tree: list[str]) -> None:
        folders, files = storage.list_dir(prefix)
        assert list(folders) == [f"{prefix}/{name}" for name in ("a", "a b", "a.b", "b")]
        assert [info.key for info in files] == [f"{prefix}/{name}" for name in ("a-b", "a0", "ab", "z")]
        assert storage.list_dir(f"{prefix}/b")[0] == [f"{prefix}/b/c"]

    def test_list_dir_looks_at_what_is_wanted(self, storage: Storage, prefix: str, tree: list[str]) -> None:
        asked: list[list[str]] = []

        def wanted(names: Sequence[str]) -> set[str]:
            asked.append(sorted(names))
            return {"z", "a0"}

        folders, files = storage.list_dir(prefix, wanted)
        assert len(folders) == 4 and asked == [["a-b", "a0", "ab", "z"]]
        assert [*files] == [storage.head(f"{prefix}/{name}") for name in ("a0", "z")]

    def test_empty_objects_are_listed(self, storage: Storage, prefix: str) -> None:
        keys = [f"{prefix}/{name}" for name in ("_SUCCESS", "a/1", "a/b", "c")]
        for key in keys:
            storage.put(key, b"")
        assert [(info.key, info.size) for info in storage.list(prefix)] == [(key, 0) for key in keys]
        assert [info.key for info in storage.list_dir(prefix)[1]] == [keys[0], keys[3]]

    def test_many_keys(self, storage: Storage, prefix: str) -> None:
        keys = [f"{prefix}/{n:05d}" for n in range(1100)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda key: storage.put(key, b"1"), keys))
        assert [info.key for info in storage.list(prefix)] == keys
        assert [info.key for info in storage.list(prefix, start_after=keys[1050])] == keys[1051:]
        storage.delete(iter(keys))
        assert list(storage.list(prefix)) == []

    # -- deleting and addresses -----------------------------------------------------------------------------------

    def test_delete(self, storage: Storage, prefix: str) -> None:
        for name in "abc":
            storage.put(f"{prefix}/{name}", b"")
        storage.delete([f"{prefix}/x", f"{prefix}/a", f"{prefix}/folder/y", f"{prefix}/c", f"{prefix}/b/below"])
        assert [info.key for info in storage.list(prefix)] == [f"{prefix}/b"]
        storage.delete([])

    def test_uri(self, storage: Storage) -> None:
        root = storage.uri("")
        assert storage.uri("a b/c#1%20") == (root if root.endswith("/") else root + "/") + "a b/c#1%20"

    def test_is_a_storage(self, storage: Storage) -> None:
        assert isinstance(storage, Storage)

    def test_a_key_that_names_nothing(self, storage: Storage) -> None:
        with pytest.raises(BoathouseError):
            storage.put("", b"")
        with pytest.raises(BoathouseError):
            storage.get("")
