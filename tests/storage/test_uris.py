"""Addresses: one spelling for each place, and arithmetic on them."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.storage import Stores, absolute, basename, join, parent, relative, same, split

AZURE = "abfss://c@acc.dfs.core.windows.net"


@pytest.mark.parametrize(
    ("given_", "canonical"),
    [
        ("/tmp/x", "file:///tmp/x"),
        ("/tmp/x/", "file:///tmp/x"),
        ("/tmp/a b#c%20d", "file:///tmp/a b#c%20d"),
        ("file:/tmp/a%20b", "file:///tmp/a%20b"),
        ("file:///tmp/x#12?y", "file:///tmp/x#12?y"),
        ("FILE:///tmp/x", "file:///tmp/x"),
        ("file://localhost/tmp/x", "file:///tmp/x"),
        ("file:///tmp//x/./y/../z/", "file:///tmp/x/z"),
        ("file:////tmp/x", "file:///tmp/x"),
        ("//tmp/x", "file:///tmp/x"),
        ("/", "file:///"),
        ("file:/", "file:///"),
        ("/tmp/a:b", "file:///tmp/a:b"),
        ("/tmp/s3://x", "file:///tmp/s3:/x"),
        ("s3://b/k", "s3://b/k"),
        ("s3a://b/k/", "s3://b/k"),
        ("S3N://b/k//x", "s3://b/k//x"),
        ("s3://b", "s3://b"),
        ("s3://b/", "s3://b"),
        ("s3://b/a b#1%20/ü", "s3://b/a b#1%20/ü"),
        ("gs://b/k", "gs://b/k"),
        ("gcs://b/k", "gs://b/k"),
        ("az://c/k", "az://c/k"),
        ("azure://c/k", "az://c/k"),
        ("abfs://c/k", "az://c/k"),
        ("abfs://c@acc.dfs.core.windows.net/k", AZURE + "/k"),
        ("abfss://c@Acc.DFS.core.windows.net/k", AZURE + "/k"),
        ("wasbs://c@acc.blob.core.windows.net/k", AZURE + "/k"),
        ("abfss://w@onelake.dfs.fabric.microsoft.com/k", "abfss://w@onelake.dfs.fabric.microsoft.com/k"),
        ("memory://name/k", "memory://name/k"),
    ],
)
def test_absolute(given_: str, canonical: str) -> None:
    assert absolute(given_) == canonical
    assert absolute(canonical) == canonical
    assert Stores().absolute(given_) == canonical
    assert same(given_, canonical)


def test_relative_paths_start_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = "file://" + os.getcwd()
    assert absolute("x/y") == absolute(Path("x/y")) == here + "/x/y"
    assert absolute(".") == here
    assert absolute("a b%20#1") == here + "/a b%20#1"
    assert absolute("a:b") == here + "/a:b"


@pytest.mark.parametrize("text", ["", "s3:/b/k", "s3:///k", "gs://", "file://host/x", "az://c@nothing/x", "/a\0b"])
def test_what_names_no_place(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        absolute(text)


@pytest.mark.parametrize("text", ["hdfs://n/x", "dbfs:/x", "https://h/x"])
def test_other_schemes_are_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=text.partition(":")[0]):
        Stores().resolve(text)


@pytest.mark.parametrize("root", ["/data/t", "file:/data/t", "s3a://b/t", "s3://b", AZURE + "/t", "memory://m/t", "/"])
def test_arithmetic(root: str) -> None:
    root = absolute(root)
    child = join(root, "a b", "", "p=%41/f#12")
    assert relative(child, root) == "a b/p=%41/f#12"
    assert relative(root, root) == ""
    assert relative(root, child) is None
    assert relative(child + "x", child) is None
    assert basename(child) == "f#12"
    assert parent(child) == join(root, "a b/p=%41")
    assert parent(parent(parent(child))) == root
    storage, key = Stores({"account_key": "YQ==", "region": "x"}).resolve(child)
    assert storage.uri(key) == child


def test_roots() -> None:
    assert parent("s3://b") == "s3://b" and parent("file:///x") == parent("/") == "file:///"
    assert basename("s3://b") == "" and basename("file:///") == "" and basename("s3://b/k/") == "k"
    assert split("file:///a/b") == ("file", "", "a/b")
    with pytest.raises(InvalidArgumentError):
        join("s3://b", "/etc/passwd")


def test_same_ignores_the_spelling_of_scheme_and_authority() -> None:
    assert same("file:/a", "file:///a") and same("/a", "file:///a/") and same("s3a://b/k", "s3://b/k")
    assert same("az://c/k", AZURE + "/k") and relative(AZURE + "/k/x", "az://c/k") == "x"
    assert not same(AZURE + "/k", "abfss://c@other.dfs.core.windows.net/k")
    assert not same("s3://b/k", "gs://b/k") and not same("s3://b/k", "s3://b/K") and not same("/a%20b", "/a b")


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), min_size=1).filter(
        lambda s: s not in (".", "..")
    )
)
def test_any_name_survives(name: str) -> None:
    for root in ("file:///r", "s3://b/r", AZURE):
        uri = join(root, name)
        assert absolute(uri) == uri and basename(uri) == name and relative(uri, root) == name
