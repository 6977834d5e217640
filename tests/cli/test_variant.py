"""`boathouse variant` over bytes written by others, and over wrong input."""

from __future__ import annotations

import json

import pytest

from boathouse.cli.app import exit_code
from boathouse.errors import (
    ExpressionError,
    InvalidArgumentError,
    InvalidJsonError,
    MalformedVariant,
    NotFoundError,
)

ARRAY = "110000 03 02 00 01 03 00 0c01"  # [null, 1]


@pytest.fixture
def nested(corpora):
    folder = corpora / "variant" / "encoding"
    return folder / "object_nested.value", "--metadata", folder / "object_nested.metadata"


@pytest.fixture
def digits(tmp_path):
    """A file of hexadecimal digits."""

    def write(text: str):
        file = tmp_path / "digits"
        file.write_text(text)
        return file, "--hex"

    return write


def test_every_pair_of_the_corpus_is_shown_without_error(asjson, corpora):
    folder = corpora / "variant" / "encoding"
    expected = json.loads((folder / "expected.json").read_text())
    values = sorted(folder.glob("*.value"))
    assert len(values) == 29 <= len(expected)
    for file in values:
        found = asjson("variant", file, "--metadata", file.with_suffix(".metadata"))
        assert found["size"] == file.stat().st_size and found["tree"][0]["offset"] == 0
        assert not [f for f in found["findings"] if f["kind"] == "error"], file.name


def test_shredded_corpus_holds_metadata_then_value(asjson, corpora):
    files = sorted((corpora / "variant" / "shredded").glob("*.variant.bin"))
    assert files
    for file in files[:20]:
        found = asjson("variant", file)
        assert found["metadata"]["size"] + found["size"] == file.stat().st_size


def test_a_path_queries(asjson, run, nested):
    found = asjson("variant", *nested[:1], "$.observation['value'].humidity", *nested[1:])
    assert (found["type"], found["json"], found["path"]) == ("int16", "456", "$.observation.value.humidity")
    code, out = run("variant", nested[0], "$['species']", *nested[1:])
    assert code == 0 and "lava monster" in out and "Volcano" not in out


def test_the_tree_is_the_bytes(asjson, nested):
    """Sizes of a container's own bytes and of its children add up to the whole value."""
    found = asjson("variant", *nested)
    assert sum(len(n["bytes"]) // 2 for n in found["tree"]) == found["size"] == nested[0].stat().st_size
    raw = nested[0].read_bytes()
    for node in found["tree"]:
        own = bytes.fromhex(node["bytes"])
        assert raw[node["offset"] : node["offset"] + len(own)] == own
    assert [n["name"] for n in found["tree"] if n["depth"] == 1] == ["id", "observation", "species"]


def test_json_text_is_encoded(asjson, tmp_path):
    (tmp_path / "a.json").write_text('{"a": [1, 2.50, "x"]}')
    found = asjson("variant", tmp_path / "a.json")
    assert found["json"] == '{"a":[1,2.50,"x"]}' and found["metadata"]["names"] == ["a"]


def test_limit(asjson, digits):
    assert not asjson("variant", *digits(ARRAY))["more"]
    found = asjson("variant", *digits(ARRAY), "-n", "2")
    assert len(found["tree"]) == 2 and found["more"]


def test_a_truncated_value_is_shown_as_far_as_it_goes(run, digits):
    code, out = run("variant", *digits(ARRAY[:-4] + "5d00"))
    assert code == 5 and "error at $[1], byte 6" in out and "[0]: null" in out


@pytest.mark.spec("V-054")
def test_unknown_types_are_named_beside_their_siblings(run, digits):
    code, out = run("variant", *digits("110000 03 02 00 01 03 54 0c07"))
    assert code == 0 and "primitive type 21" in out and "int8 7" in out and "oddity at $[0]" in out


def test_sharing_does_not_expand(run, digits):
    """24 levels of two equal children: 16 million leaves in 150 bytes."""
    value = bytes.fromhex("0c01")
    for _ in range(24):
        value = bytes([0x03, 2, 0, 0, len(value)]) + value
    code, out = run("variant", *digits(f"110000{value.hex()}"), "-n", "50", "--json")
    found = json.loads(out)
    assert code == 5 and len(found["tree"]) == 50 and found["more"] and found["json"] is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "JSON text"),
        ("5041523100", "hexadecimal digits: add --hex"),
        ("hello", "text that starts with 'hello'"),
        ("", "no bytes"),
    ],
)
def test_wrong_input_says_what_was_found(run, tmp_path, text, words):
    (tmp_path / "f").write_text(text)
    with pytest.raises(MalformedVariant, match=words) as caught:
        run("variant", tmp_path / "f")
    assert caught.value.where == str(tmp_path / "f") and exit_code(caught.value) == 5


def test_a_parquet_file_is_no_variant(run, corpora):
    file = next((corpora / "variant" / "shredded").glob("*.parquet"))
    with pytest.raises(MalformedVariant, match="a Parquet file"):
        run("variant", file)


def test_errors_and_their_exit_codes(run, tmp_path, digits):
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "b").write_bytes(b"xyz")
    for kind, code, arguments in [
        (NotFoundError, 3, [tmp_path / "absent"]),
        (InvalidArgumentError, 2, [tmp_path]),
        (InvalidArgumentError, 2, [tmp_path / "b", "--hex"]),
        (InvalidJsonError, 5, [tmp_path / "bad.json"]),
        (ExpressionError, 2, [*digits(ARRAY), "a"]),
        (NotFoundError, 3, [*digits(ARRAY), "$[2]"]),
    ]:
        with pytest.raises(kind) as caught:
            run("variant", *arguments)
        assert exit_code(caught.value) == code


def test_a_path_that_leads_nowhere_says_where_it_stopped(run, nested):
    with pytest.raises(NotFoundError, match=r"at \$.species there is an object with the fields 'name', 'population'"):
        run("variant", nested[0], "$.species.colour", *nested[1:])


def test_standard_input(process):
    import subprocess
    import sys

    command = [sys.executable, "-m", "boathouse.cli", "variant", "-", "--hex", "--json"]
    done = subprocess.run(command, input=ARRAY, capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)["json"] == "[null,1]"


def test_nothing_heavy_is_loaded(process, digits):
    file, option = digits(ARRAY)
    code = f"""
import sys
sys.argv = ["boathouse", "variant", {str(file)!r}, {option!r}]
from boathouse.cli.app import main
main()
assert not {{"pyarrow", "pyspark", "obstore", "sqlglot"}} & set(sys.modules), "loaded"
"""
    done = process(code=code)
    assert done.returncode == 0, done.stderr
