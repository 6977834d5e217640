"""Azure's own protocol, spoken by Azurite: conformance, and tables through both of its clients."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.arrow.filesystem import NativeFiles
from boathouse.errors import InvalidArgumentError, NotFoundError, UnsupportedFeatureError
from boathouse.storage import StorageOptions, Stores
from boathouse.testing.storage import AWKWARD, StorageConformance
from makers.stand_ins import AzureStandIn, azure_stand_in

FORMATS = ["delta", "iceberg", "lance"]


@pytest.fixture(scope="session")
def azure() -> Iterator[AzureStandIn]:
    try:
        with azure_stand_in() as server:
            yield server
    except UnsupportedFeatureError as error:
        pytest.skip(error.message)


class TestAzure(StorageConformance):
    keeps_empty_segments = False
    awkward = tuple(name for name in AWKWARD if "\\" not in name)

    @pytest.fixture
    def storage(self, azure):
        return Stores(azure.options).resolve(f"az://{azure.container()}/")[0]


def test_backslashes_are_refused(azure: AzureStandIn) -> None:
    storage, _ = Stores(azure.options).resolve(f"az://{azure.container()}/")
    for act in (
        lambda: storage.put("a\\b", b""),
        lambda: storage.get("a\\b"),
        lambda: storage.open_write("a\\b"),
        lambda: storage.delete(["a\\b"]),
    ):
        with pytest.raises(InvalidArgumentError, match="backslash"):
            act()
    assert list(storage.list("")) == []


@pytest.mark.parametrize("format", FORMATS)
def test_tables(azure: AzureStandIn, format: str) -> None:
    uri = f"az://{azure.container()}/a folder/t+1"
    rows = pa.table({"k": [1, 2, 3], "name": ["größe", None, "x"]})
    bh.write(rows, uri, format=format, storage_options=azure.options)
    table = bh.open(uri, storage_options=azure.options)
    table.append(rows)
    table = bh.open(uri, storage_options=azure.options)
    table.delete("k = 2")
    got = bh.open(uri, storage_options=azure.options).to_arrow()
    assert (
        sorted(got.to_pylist(), key=lambda row: row["k"])
        == [{"k": 1, "name": "größe"}] * 2 + [{"k": 3, "name": "x"}] * 2
    )


def test_the_native_client_reaches_the_same_files(azure: AzureStandIn) -> None:
    container = azure.container()
    storage, _ = Stores(azure.options).resolve(f"az://{container}/")
    files = NativeFiles(StorageOptions.of(azure.options))
    with files.open_output(f"az://{container}/x/y") as out:
        out.write(b"abc")
    assert storage.get("x/y") == b"abc" and files.size(f"az://{container}/x/y") == 3
    with pytest.raises(NotFoundError):
        files.open_input(f"az://{container}/x/z")
