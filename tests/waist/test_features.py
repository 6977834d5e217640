"""What only some formats have: who offers it, and the one error of those that lack it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse import registry
from boathouse.errors import UnsupportedFeatureError
from boathouse.storage import Stores
from boathouse.table import features
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.features import required
from boathouse.table.location import Location
from boathouse.table.snapshot import Target
from boathouse.types import INT64, Field, Schema
from makers.traits import FORMATS, TRAITS

PARTS = {
    features.CommitFiles,
    features.ExpiryRule,
    features.FeatureDrop,
    features.Keys,
    features.HeldFile,
    features.Outline,
    features.Picked,
    features.Places,
    features.Rewritable,
    features.RewrittenPaths,
    features.Step,
    features.VectorIndex,
    features.WantedIndex,
}
"""What features give."""
ALL = [f for name in features.__all__ if isinstance(f := getattr(features, name), type) and f not in PARTS]
OF_SETTINGS = {features.Clustering, features.CommitRetries, features.Identifiers, features.Staging}
"""Values that a table has by its settings; none of those here."""


def table(folder, format: str) -> bh.Table:
    uri = str(folder / format)
    bh.create(uri, "id bigint", format=format)
    bh.open(uri, format=format).append(pa.table({"id": [1, 2]}))
    return bh.open(uri, format=format)


def to_be_created(folder, format: str) -> Target:
    context = TableContext(Location(f"file://{folder}/new-{format}"), Stores())
    return registry.load(format).create(context, CreateTable(Schema((Field("id", INT64),))))


@pytest.mark.parametrize("format", FORMATS)
def test_a_format_offers_what_its_traits_name(tmp_path, format):
    snapshot = table(tmp_path, format)._handle.snapshot
    assert {f for f in ALL if snapshot.offers(f) is not None} == TRAITS[format].offers
    new = to_be_created(tmp_path, format)
    assert {f for f in ALL if new.offers(f) is not None} == TRAITS[format].offers_new


def test_every_feature_is_offered_by_a_format():
    offered = frozenset().union(*(t.offers | t.offers_new for t in TRAITS.values()))
    assert offered == set(ALL) - OF_SETTINGS


@pytest.mark.parametrize("feature", ALL)
def test_a_format_that_lacks_a_feature_gives_the_one_error(tmp_path, feature):
    """A table that is not created yet lacks those that every table has."""
    asked = 0
    for format in FORMATS:
        for target in (table(tmp_path, format)._handle.snapshot, to_be_created(tmp_path, format)):
            if target.offers(feature) is not None:
                assert required(target, feature, "this") is not None
                continue
            with pytest.raises(UnsupportedFeatureError) as caught:
                required(target, feature, f"{feature.__name__} of it")
            assert caught.value.message == f"{feature.__name__} of it is not offered for {format} tables"
            assert caught.value.where == str(target.context.location)
            assert caught.value.advice == "use the format's own library for it"
            asked += 1
    assert asked >= len(FORMATS) - 1


CALLS = {
    "clone": (features.Clonable, lambda t, other: t.clone(other)),
    "compact_log": (features.CompactableLog, lambda t, other: t.compact_log()),
    "conversion of a folder": (features.Adoption, lambda t, other: bh.convert(other, format=t.format)),
    "add_files": (features.Adoption, lambda t, other: t.add_files(other)),
    "drop_feature": (features.ProtocolFeatures, lambda t, other: t.drop_feature("deletionVectors")),
    "branches and tags": (features.Refs, lambda t, other: len(t.refs)),
    "statistics of columns": (features.ColumnStatistics, lambda t, other: t.compute_statistics()),
    "rewrite_manifests": (features.FileLists, lambda t, other: t.rewrite_manifests()),
    "rewrite_table_path": (features.Relocation, lambda t, other: t.rewrite_table_path(other, other)),
    "restore": (features.Restorable, lambda t, other: t.restore(0)),
    "expire_snapshots": (features.Expiry, lambda t, other: t.expire_snapshots()),
    "remove_orphan_files": (features.Orphans, lambda t, other: t.remove_orphan_files()),
    "take": (features.RandomAccess, lambda t, other: t.take([])),
    "sample": (features.RandomAccess, lambda t, other: t.sample(0)),
    "take_blobs": (features.Blobs, lambda t, other: t.take_blobs("b", [])),
    "nearest": (features.RandomAccess, lambda t, other: t.nearest("v", [0.5])),
    "vacuum": (features.Retention, lambda t, other: t.vacuum()),
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("operation", CALLS)
def test_an_operation_says_that_it_is_not_offered(tmp_path, format, operation):
    feature, call = CALLS[operation]
    offered = TRAITS[format].offers | TRAITS[format].offers_new
    if feature in offered or (operation == "vacuum" and features.Expiry in offered):
        pytest.skip("offered")
    other = tmp_path / "files"
    other.mkdir()
    pq.write_table(pa.table({"id": [1]}), other / "a.parquet")
    t = table(tmp_path, format)
    with pytest.raises(UnsupportedFeatureError, match=f"^{operation} is not offered for {format} tables"):
        call(t, str(other))
    assert bh.open(t.uri, format=format).version == t.version and {p.name for p in other.iterdir()} == {"a.parquet"}
