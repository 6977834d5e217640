"""Everything public has a docstring that says what it does, and the examples in docstrings run.

Public is what the five modules export, the methods and properties of those classes, and so on for what they return.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import sys
from collections import deque
from functools import cache, cached_property
from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import BoathouseError

SRC = Path(bh.__file__).parent
MODULES = (
    "boathouse",
    "boathouse.variant",
    "boathouse.errors",
    "boathouse.types",
    "boathouse.compat.delta_tables",
)


def exports(module):
    names = getattr(module, "__all__", None) or [n for n, v in vars(module).items() if inspect.isclass(v)]
    return [(name, getattr(module, name)) for name in names if not name.startswith("_")]


@cache
def imported(module):
    """The names that a module imports, those for type checkers too, with where they are from."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: (node.module, alias.name) for node in froms for alias in node.names}


def returned(function):
    """Our classes in what a function says that it returns."""
    module = function.__module__
    words = re.findall(r"\w+", str(function.__annotations__.get("return", "")))
    while words:
        word = words.pop()
        found = getattr(sys.modules[module], word, None)
        if found is None and imported(module).get(word, ("",))[0].startswith("boathouse"):
            home, name = imported(module)[word]
            found = getattr(importlib.import_module(home), name)
        if inspect.isclass(found) and found.__module__.startswith("boathouse"):
            yield found
            for base in getattr(found, "__orig_bases__", ()):  # a list of ours
                yield from (a for a in base.__args__ if a.__module__.startswith("boathouse"))
        elif hasattr(found, "__args__"):  # an alias, such as list[HistoryEntry]
            yield from (a for a in found.__args__ if inspect.isclass(a) and a.__module__.startswith("boathouse"))


def members(owner):
    """The methods and properties of a class that are ours, as (name, object with the docstring, function)."""
    for name, member in inspect.getmembers_static(owner):
        match member:
            case staticmethod() | classmethod():
                function = member.__func__
            case property():
                function = member.fget
            case cached_property():
                function = member.func
            case _:
                function = member
        ours = inspect.isfunction(function) and function.__module__.startswith("boathouse")
        if ours and not name.startswith("_"):
            yield name, member, function


@cache
def public():
    """Every public object by its name."""
    found, seen = {}, set()
    work = deque((f"{m}.{name}", value) for m in MODULES for name, value in exports(importlib.import_module(m)))
    while work:
        name, value = work.popleft()
        if inspect.ismodule(value) or value in seen:
            continue
        if not inspect.isclass(value) and not callable(value):  # a constant: its class says what it is
            work.append((path_of(type(value)), type(value)))
            continue
        seen.add(value)
        found[name] = value
        if not inspect.isclass(value):
            work += [(path_of(c), c) for c in returned(inspect.unwrap(value))]
            continue
        for attribute, member, function in members(value):
            found[f"{name}.{attribute}"] = member
            work += [(path_of(c), c) for c in returned(function)]
    return dict(sorted(found.items()))


def path_of(owner):
    return f"{owner.__module__}.{owner.__name__}"


def text_of(value):
    """The object's own docstring; '' for the one that a dataclass gets if it has none."""
    text = (vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__) or ""
    return "" if inspect.isclass(value) and text.startswith(f"{value.__name__}(") else inspect.cleandoc(text)


def test_everything_public_has_a_docstring():
    assert len(public()) > 300
    assert {"boathouse.Table.uri", "boathouse.Schema.names", "boathouse.table.history.HistoryEntry"} <= set(public())
    assert [name for name, value in public().items() if len(text_of(value).split()) < 2] == []


@pytest.mark.parametrize("kind", [v for _, v in exports(bh.errors) if issubclass(v, BoathouseError)])
def test_every_error_says_when_it_is_raised_and_what_to_do(kind):
    first, *rest = text_of(kind).split("\n\n")
    assert first.endswith(".")
    assert [part.split()[:2] for part in rest if part.startswith("Raised")] == [["Raised", "when"]]
    assert sum(part.startswith("What to do: ") for part in rest) == 1


def test_no_docstring_sends_the_reader_elsewhere_for_the_errors():
    jumps = re.compile(r"[Rr]aises?\s+(?:as|what)\b|\bwhat\s+`?\w+`?\s+(?:raises|raise)\b|,\s+as\s+`\w+`\s+raises")
    assert {n: m[0] for n, v in public().items() if (m := jumps.search(text_of(v)))} == {}


def is_internal(path):
    """Whether dotted names lead into the source: `boathouse.a.b` that is not public, or `module.function`."""
    if path.startswith("boathouse."):
        return path not in {*public(), *MODULES}
    *_, head, last = path.split(".")
    if any(SRC.glob(f"**/{head}/{last}.py")):
        return True
    return any(re.search(rf"^(?:def|class) {last}\b", p.read_text(), re.MULTILINE) for p in SRC.glob(f"**/{head}.py"))


def test_no_docstring_names_an_internal_path():
    dotted = re.compile(r"`([a-z_]+(?:\.[A-Za-z_]+)+)(?:\(.*?\))?`")
    named = {(name, path) for name, value in public().items() for path in dotted.findall(text_of(value))}
    assert {(name, path) for name, path in named if is_internal(path)} == set()


def with_examples():
    finder = doctest.DocTestParser()
    for name, value in public().items():
        examples = finder.get_doctest(text_of(value), {}, name, None, None)
        if examples.examples:
            yield examples


EXAMPLES = tuple(with_examples())
ON_SPARK = [e for e in EXAMPLES if any(re.search(r"\bspark\b", one.source) for one in e.examples)]
IN_PROCESS = [e for e in EXAMPLES if e not in ON_SPARK]


def failures_of(examples, **names):
    """Runs the examples of one docstring: `t` is a table of three cities."""
    t = bh.create("cities", "id bigint, city string, price double")
    t.append(pa.table({"id": [1, 2, 3], "city": ["Kiel", "Bergen", None], "price": [10.0, 30.0, 40.0]}))
    examples.globs = {"bh": bh, "pa": pa, "t": t, **names}
    printed: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples, out=printed.append, clear_globs=False)
    return "".join(printed)


@pytest.mark.parametrize("examples", IN_PROCESS, ids=lambda e: e.name)
def test_the_examples_of_docstrings_run(examples, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert failures_of(examples) == ""


@pytest.mark.spark
def test_the_examples_of_docstrings_run_on_spark(spark, tmp_path, monkeypatch):
    from boathouse.compat.delta_tables import DeltaTable

    assert len(ON_SPARK) > 3
    for examples in ON_SPARK:
        folder = tmp_path / examples.name
        folder.mkdir()
        monkeypatch.chdir(folder)
        assert failures_of(examples, spark=spark, DeltaTable=DeltaTable) == ""
