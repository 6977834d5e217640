"""Feature flags, one table for each bit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from boathouse.errors import UnsafeStorageError, UnsupportedFeatureError
from boathouse.lance.adapter import FORMAT
from boathouse.lance.manifests import features
from boathouse.lance.manifests.messages import BasePath
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import Location

KNOWN = (1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 2048)


@pytest.fixture
def flagged(kit, numbers):
    kit.pylance(numbers)
    original = kit.manifests()[0].read_bytes()

    def flag(**words):
        kit.manifests()[0].write_bytes(original)
        kit.edit(lambda m: replace(m, **words))

    return flag


def _pylance_opens(kit) -> bool:
    try:
        return kit.dataset().version == 1
    except (OSError, ValueError):
        return False


@pytest.mark.spec("L-044", "L-013")
@pytest.mark.feature("feature flags", format="lance")
def test_every_bit_of_the_reader_word(kit, flagged):
    for i in range(64):
        flagged(reader_feature_flags=1 << i)
        if 1 << i in KNOWN:
            assert kit.load().version == 1
        else:
            with pytest.raises(UnsupportedFeatureError, match=rf"flag {1 << i}\b.*cannot be read"):
                kit.load()
            if 1 << i >= 4096:
                assert not _pylance_opens(kit)


@pytest.mark.spec("L-045", "L-013")
@pytest.mark.feature("feature flags", format="lance")
def test_every_bit_of_the_writer_word(kit, flagged, numbers):
    for i in range(64):
        flagged(writer_feature_flags=1 << i)
        snapshot = kit.load()
        if 1 << i in KNOWN:
            snapshot.check_writable()
        else:
            with pytest.raises(UnsupportedFeatureError, match=rf"flag {1 << i}\b.*cannot be written"):
                snapshot.check_writable()
    flagged(writer_feature_flags=1 << 40)
    assert kit.read().num_rows == 10
    before = kit.files()
    with pytest.raises(UnsupportedFeatureError, match="1099511627776"):
        kit.open().append(numbers)
    assert kit.files() == before


@pytest.mark.spec("L-046")
def test_the_deletion_flag_follows_the_content(kit, numbers):
    table = kit.create(numbers)
    assert kit.load().manifest.reader_feature_flags == 0
    table.delete("a = 3")
    m = kit.load().manifest
    assert (m.reader_feature_flags & 1, m.writer_feature_flags & 1) == (1, 1)
    table.overwrite(numbers)
    m = kit.load().manifest
    assert (m.reader_feature_flags & 1, m.writer_feature_flags & 1) == (0, 0)


@pytest.mark.spec("L-047")
def test_sticky_flags_stay(kit, flagged, numbers):
    flagged(reader_feature_flags=256, writer_feature_flags=256)
    kit.open().append(numbers)
    m = kit.load().manifest
    assert m.reader_feature_flags & 256 and m.writer_feature_flags & 256
    assert kit.dataset().count_rows() == 20


def test_the_config_flag_follows_the_config(kit, numbers):
    table = kit.create(numbers)
    table.set_properties({"x": "1"})
    assert kit.load().manifest.writer_feature_flags == features.CONFIG
    assert kit.dataset().config() == {"x": "1"}
    table.set_properties({"x": None})
    assert kit.load().manifest.writer_feature_flags == 0
    assert kit.dataset().config() == {}


def test_a_table_without_transaction_files_gets_none(kit, flagged, numbers):
    flagged(writer_feature_flags=features.NO_TRANSACTION_FILE)
    before = {f for f in kit.files() if f.endswith(".txn")}
    kit.open().append(numbers)
    assert {f for f in kit.files() if f.endswith(".txn")} == before
    assert kit.load().manifest.transaction_file == ""
    assert kit.dataset().read_transaction(2).operation.fragments


def test_an_unknown_base_path_is_corrupt(kit, numbers):
    kit.pylance(numbers)
    kit.edit(
        lambda m: replace(
            m,
            base_paths=(BasePath(id=1, path="/nowhere"),),
            fragments=tuple(replace(f, files=tuple(replace(d, base_id=3) for d in f.files)) for f in m.fragments),
        )
    )
    with pytest.raises(ValueError, match="base path 3"):
        list(kit.load().files())


@pytest.mark.spec("L-061")
def test_a_store_without_put_if_absent_is_not_written(numbers):
    class Unsafe:
        atomic_create = False

        def __init__(self, inner):
            self._inner = inner

        def __getattr__(self, name):
            return getattr(self._inner, name)

    import boathouse as bh

    bh.write(numbers, "memory://lance-unsafe/t", format="lance")
    stores = Stores(wrap=Unsafe)
    snapshot = FORMAT.open(TableContext(Location("memory://lance-unsafe/t"), stores))
    with pytest.raises(UnsafeStorageError):
        snapshot.check_writable()


def test_names_of_flags():
    assert features.describe(1 | 256 | 1 << 50) == ("deletion files", "mixed data file versions", f"flag {1 << 50}")
