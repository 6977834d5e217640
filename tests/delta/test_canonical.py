"""The canonical form of JSON and its checksum."""

import pytest

from boathouse.delta.checkpoint.canonical import canonical, checksum
from boathouse.errors import CorruptTableError

SAMPLE = (
    """{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", """
    """"k1":{"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}"""
)


@pytest.mark.spec("D-072")
@pytest.mark.parametrize("text", ["true", "false", "null", "42", "3.14"])
def test_literals_and_numbers_stay(text):
    assert canonical(text) == text
    assert canonical(f'{{"a": {text}}}') == f'"a"={text}'


def test_numbers_keep_their_spelling():
    assert canonical("[1.0, 1e5, -0, 1E+2]") == "0=1.0,1=1e5,2=-0,3=1E+2"


@pytest.mark.spec("D-074")
def test_string():
    assert canonical('"hello world"') == '"hello%20world"'


@pytest.mark.spec("D-075")
def test_object():
    text = '{"a": 10, "b": {"y": null, "x": "https://delta.io"}}'
    assert canonical(text) == '"a"=10,"b"+"x"="https%3A%2F%2Fdelta.io","b"+"y"=null'


@pytest.mark.spec("D-076")
def test_array():
    assert canonical('[null, "hi ho", 2.71]') == '0=null,1="hi%20ho",2=2.71'


@pytest.mark.spec("D-077")
def test_order_is_that_of_the_bytes_of_whole_paths():
    assert canonical('{"b": 1, "a": 2}') == '"a"=2,"b"=1'
    assert canonical('{"a": {"z": 1}, "b": 2}') == '"a"+"z"=1,"b"=2'
    many = canonical(str(list(range(12))))
    assert [part.split("=")[0] for part in many.split(",")] == ["0", "1", "10", "11", *"23456789"]
    assert canonical('{"é": 1, "z": 2}') == '"%C3%A9"=1,"z"=2'


@pytest.mark.spec("D-078")
def test_checksum_is_left_out_at_the_top_only():
    assert canonical('{"k1": "v1", "checksum": "x", "k3": 23}') == '"k1"="v1","k3"=23'
    assert canonical('{"a": {"checksum": 1}}') == '"a"+"checksum"=1'


@pytest.mark.spec("D-080")
def test_the_sample_of_the_protocol():
    assert canonical(SAMPLE) == (
        '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,'
        '"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"'
    )
    assert checksum(SAMPLE) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


@pytest.mark.spec("D-081")
def test_never_encoded():
    free = "~-._azAZ09"
    assert canonical(f'"{free}"') == f'"{free}"'


@pytest.mark.spec("D-082")
@pytest.mark.parametrize(
    ("char", "encoded"),
    [(" ", "%20"), ("+", "%2B"), ("/", "%2F"), ("%", "%25"), (">", "%3E"), ("é", "%C3%A9"), ("😀", "%F0%9F%98%80")],
)
def test_always_encoded(char, encoded):
    assert canonical(f'"{char}"') == f'"{encoded}"'


def test_a_repeated_key_and_no_json_are_refused():
    for text in ('{"a": 1, "a": 2}', "{", ""):
        with pytest.raises(CorruptTableError):
            canonical(text)
