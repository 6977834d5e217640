"""What tests of cleaned tables ask of them, and of copies that pylance cleaned."""

from __future__ import annotations

import datetime as dt
import shutil
from dataclasses import replace

import pyarrow as pa
import pytest

from boathouse.bits import system
from boathouse.lance.manifests.file import parse, serialise
from boathouse.lance.manifests.versions import parse_name

lance = pytest.importorskip("lance")
LATER = "2100-01-01"


def rows(*ids):
    return pa.table({"a": pa.array(ids, pa.int64()), "s": [f"v{i}" for i in ids]})


def ids(found) -> list[int]:
    return sorted(found["a"].to_pylist())


def by_pylance(kit) -> dict[int, list[int]]:
    """The rows of every version that pylance lists."""
    found = {}
    for version in (v["version"] for v in kit.dataset().versions()):
        opened = kit.dataset(version=version)
        opened.validate()
        found[version] = ids(opened.to_table())
    return found


def by_us(kit) -> dict[int, list[int]]:
    versions = sorted(parse_name(p.name).version for p in kit.manifests())
    return {v: ids(kit.open(version=v).to_arrow()) for v in versions}


def cleaned_by_pylance(kit, **options) -> set[str]:
    """What its cleanup leaves of a copy of the table."""
    copy = kit.root.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(kit.root, copy)
    lance.dataset(str(copy)).cleanup_old_versions(error_if_tagged_old_versions=False, **options)
    return {str(p.relative_to(copy)) for p in copy.rglob("*") if p.is_file()}


def days_ago(days):
    return dt.datetime.fromtimestamp(system.current().now_ms() / 1000 - days * 86_400, dt.UTC)


def edited(path, change) -> bytes:
    document = parse(path.read_bytes(), where=str(path))
    return serialise(replace(document, manifest=change(document.manifest)))


def of_branch(kit, name):
    return kit.dataset().checkout_version((name, None)).to_table()
