"""Random histories of a schema: fields at every depth come, go, swap names, move and widen between files of every
format. Rows are compared with a model that keeps them by field id."""

import copy
import datetime as dt
import itertools
import json
import math
import random
from decimal import Decimal

import pyarrow as pa
import pytest
from file_writers import arrow_schema
from mixed_files import FORMATS, opener

import boathouse as bh
from boathouse.arrow.schema import to_arrow
from boathouse.types import INT32, INT64, STRING, Field, Schema, StructType

WIDER = {"int": "long", "float": "double", "decimal(9,2)": "decimal(20,2)"}
LEAVES = ("int", "float", "decimal(9,2)", "string", "date", "boolean", "long", "binary")
NAMES = ("a", "b", "c", "d", "E", "f g")


class History:
    """A table, and what every row of it is by the ids of fields; struct: {id: value}."""

    def __init__(self, files, seed):
        self.files = files
        self.chance = random.Random(seed)
        self.fields = [{"id": 1, "name": "id", "required": False, "type": "long"}]
        self.last = 1
        self.rows = []
        self.nulls_below = True

    def id(self):
        self.last += 1
        return self.last

    # --- values

    def value(self, type, top=False):
        chance = self.chance
        whole = isinstance(type, dict) and type["type"] == "struct" and not top
        if (self.nulls_below or not whole) and chance.random() < 0.2:
            return None
        if isinstance(type, str):
            return self.leaf(type)
        if type["type"] == "struct":
            return {f["id"]: self.value(f["type"]) for f in type["fields"]}
        items = range(chance.randrange(3))
        if type["type"] == "list":
            return [self.value(type["element"]) for _ in items]
        return [(f"k{n}", self.value(type["value"])) for n in items]

    def leaf(self, type):
        chance = self.chance
        match type:
            case "int" | "long":
                return chance.choice((0, 1, -7, (1 << 31) - 1))
            case "float" | "double":
                return chance.choice(
                    (0.5, -1.0, 2.0**40, 0.0, -0.0, 2.0**-149, 2.0**127, math.inf, -math.inf, math.nan)
                )
            case "string":
                return chance.choice(("", "x", "longer text"))
            case "date":
                return dt.date(2000, 1, 1) + dt.timedelta(days=chance.randrange(-20_000, 20_000))
            case "boolean":
                return chance.random() < 0.5
            case "binary":
                return chance.choice((b"", b"\0\xff"))
        return Decimal(chance.choice((0, 1, -99999, 12345))).scaleb(-2)

    def default(self, type):
        """An initial default as JSON, often none."""
        if self.chance.random() < 0.4:
            return {}
        if isinstance(type, dict):
            return {"initial-default": {}} if type["type"] == "struct" else {}
        value = self.leaf(type)
        if isinstance(value, float) and not math.isfinite(value):  # JSON has none
            return {}
        text = {"date": str, "binary": lambda v: v.hex()}.get(type, str if type.startswith("decimal") else lambda v: v)
        return {"initial-default": text(value)}

    # --- changes of the schema

    def field(self, names, depth):
        free = [n for n in NAMES if n not in names]
        type = self.type(depth)
        return {
            "id": self.id(),
            "name": self.chance.choice(free),
            "required": False,
            "type": type,
            **self.default(type),
        }

    def type(self, depth):
        kind = self.chance.choice(("leaf", "leaf", "struct", "list", "map")) if depth < 3 else "leaf"
        if kind == "leaf":
            return self.chance.choice(LEAVES)
        if kind == "struct":
            fields = []
            for _ in range(self.chance.randint(1, 3)):
                fields.append(self.field([f["name"] for f in fields], depth + 1))
            return {"type": "struct", "fields": fields}
        if kind == "list":
            return {"type": "list", "element-id": self.id(), "element": self.type(depth + 1), "element-required": False}
        return {"type": "map", "key-id": self.id(), "key": "string", "value-id": self.id(),
                "value": self.type(depth + 1), "value-required": False}  # fmt: skip

    def structs(self, fields, depth=0):
        """The fields of every struct, the table's first."""
        yield fields, depth
        for f in fields:
            yield from self.below(f["type"], depth + 1)

    def below(self, type, depth):
        if isinstance(type, dict):
            if type["type"] == "struct":
                yield from self.structs(type["fields"], depth)
            else:
                yield from self.below(type["element" if type["type"] == "list" else "value"], depth + 1)

    def change(self):
        chance = self.chance
        fields, depth = chance.choice(list(self.structs(self.fields)))
        own = [f for f in fields if f["id"] != 1]
        match chance.choice(("add", "add", "drop", "rename", "swap", "move", "widen", "widen")):
            case "add" if len(fields) < len(NAMES):
                fields.insert(chance.randint(0, len(fields)), self.field([f["name"] for f in fields], depth))
            case "drop" if len(fields) > 1 and own:
                fields.remove(chance.choice(own))
            case "rename" if own and len(fields) < len(NAMES):
                chance.choice(own)["name"] = chance.choice([n for n in NAMES if n not in {f["name"] for f in fields}])
            case "swap" if len(own) > 1:
                one, two = chance.sample(own, 2)
                one["name"], two["name"] = two["name"], one["name"]
            case "move":
                chance.shuffle(fields)
            case "widen":
                self.widen()

    def widen(self):
        holders = [(f, "type") for fields, _ in self.structs(self.fields) for f in fields]
        inner = [f["type"] for f, _ in holders if isinstance(f["type"], dict)]
        holders += [(t, k) for t in inner for k in ("element", "value") if k in t]
        found = [(h, k) for h, k in holders if isinstance(h[k], str) and h[k] in WIDER]
        if found:
            holder, key = self.chance.choice(found)
            holder[key] = WIDER[holder[key]]

    # --- what happens to the table

    def evolve(self):
        for _ in range(self.chance.randint(1, 4)):
            self.change()
        fields = copy.deepcopy(self.fields)

        def edit(document):
            id = len(document["schemas"])
            document["schemas"].append({"type": "struct", "schema-id": id, "fields": fields})
            document["current-schema-id"], document["last-column-id"] = id, self.last

        self.files.edit(edit)

    def append(self):
        entries = []
        for format in self.chance.sample(FORMATS, 2):
            # pyarrow's writer of ORC loses track of the values after an inner struct that is null.
            self.nulls_below = format != "orc"
            made = [{f["id"]: self.value(f["type"], True) for f in self.fields} for _ in range(4)]
            made = [{**row, 1: len(self.rows) + n} for n, row in enumerate(made)]
            self.rows += made
            schema = {"fields": copy.deepcopy(self.fields)}
            data = [named(row, schema["fields"]) for row in made]
            entries.append(self.files.file(format, pa.Table.from_pylist(data, arrow_schema(schema)), schema))
        self.files.commit(*entries)

    def expected(self):
        return [model(row, self.fields) for row in self.rows]


def named(row, fields):
    """A row as Arrow takes it."""
    return None if row is None else {f["name"]: as_named(row[f["id"]], f["type"]) for f in fields}


def as_named(value, type):
    if value is None or isinstance(type, str):
        return value
    if type["type"] == "struct":
        return named(value, type["fields"])
    if type["type"] == "list":
        return [as_named(v, type["element"]) for v in value]
    return [(k, as_named(v, type["value"])) for k, v in value]


def model(row, fields):
    """What a row reads as: values by id, defaults of fields that came later."""
    return {f["name"]: read_as(row[f["id"]], f["type"]) if f["id"] in row else default_of(f) for f in fields}


def read_as(value, type):
    if value is None or isinstance(type, str):
        return value
    if type["type"] == "struct":
        return model(value, type["fields"])
    if type["type"] == "list":
        return [read_as(v, type["element"]) for v in value]
    return [(k, read_as(v, type["value"])) for k, v in value]


def default_of(field):
    value, type = field.get("initial-default"), field["type"]
    if value is None:
        return None
    if isinstance(type, dict):
        return model({}, type["fields"])
    if type == "date":
        return dt.date.fromisoformat(value)
    if type == "binary":
        return bytes.fromhex(value)
    return Decimal(value) if type.startswith("decimal") else value


def leaves(fields, above=()):
    """The paths of leaves through structs."""
    for f in fields:
        if isinstance(f["type"], str):
            yield (*above, f["name"])
        elif f["type"]["type"] == "struct":
            yield from leaves(f["type"]["fields"], (*above, f["name"]))


def at(row, path):
    for name in path:
        row = None if row is None else row[name]
    return row


def comparable(value):
    """The value with each NaN equal to the others."""
    match value:
        case float():
            return "NaN" if math.isnan(value) else value
        case dict():
            return {k: comparable(v) for k, v in value.items()}
        case list() | tuple():
            return [comparable(v) for v in value]
    return value


def literal(value):
    if isinstance(value, float):
        return f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, bool) or not isinstance(value, str | bytes | dt.date):
        return str(value)
    return {bytes: lambda v: f"X'{v.hex()}'", str: lambda v: f"'{v}'"}.get(type(value), lambda v: f"DATE'{v}'")(value)


@pytest.fixture
def new(tmp_path):
    return opener(tmp_path)


@pytest.mark.few(1)
@pytest.mark.spec("I-056", "I-065", "I-070", "I-075", "I-076", "I-084")
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 80))])
def test_random_evolution(new, seed):
    history = History(new(Schema((Field("id", INT64),))).upgrade(), seed)
    for _ in range(5):
        history.evolve()
        history.append()
    history.evolve()
    check(history, bh.open(str(history.files.root)))


def check(history, table):
    expected = {row["id"]: row for row in history.expected()}
    found = {row["id"]: row for row in table.to_arrow().to_pylist()}
    assert comparable(found) == comparable(expected), json.dumps(history.fields)
    paths = list(leaves(history.fields))
    for path in history.chance.sample(paths, min(6, len(paths))):
        name = ".".join(f"`{p}`" for p in path)
        values = [v for row in expected.values() if (v := at(row, path)) is not None]
        tests = [(f"{name} IS NULL", lambda v: v is None), (f"{name} IS NOT NULL", lambda v: v is not None)]
        if values:
            one = history.chance.choice(values)
            tests.append(
                (f"{name} = {literal(one)}", lambda v, one=one: v is not None and comparable(v) == comparable(one))
            )
        for where, test in tests:
            ids = table.scan(["id"], where).to_arrow()["id"].to_pylist()
            assert sorted(ids) == [id for id, row in sorted(expected.items()) if test(at(row, path))], where
    for column in history.fields:
        alone = table.scan(["id", column["name"]] if column["id"] != 1 else ["id"]).to_arrow().to_pylist()
        assert all(comparable(row[column["name"]]) == comparable(expected[row["id"]][column["name"]]) for row in alone)


# --- our own changes

STEPS = ("add", "add", "rename", "rename", "drop", "widen", "append", "append", "delete", "update")


class Ours:
    """A table that only this library changes, and its rows by name: {name: value}, structs in the same way."""

    def __init__(self, table, seed):
        self.table = table
        self.chance = random.Random(seed)
        self.types = {"id": "bigint", "s": {"x": "int", "y": "string"}}
        self.numbers = itertools.count(1)
        self.rows = []

    def structs(self):
        """The prefix, the types and the rows' members of the table and of its structs."""
        yield "", self.types, lambda row: row
        for name, type in self.types.items():
            if isinstance(type, dict):
                yield f"`{name}`.", type, lambda row, name=name: row[name]

    def step(self):
        chance = self.chance
        prefix, types, member = chance.choice(list(self.structs()))
        free = [n for n in NAMES if n not in types]
        own = [n for n in types if n != "id"]
        match chance.choice(
            ("add", "add", "rename", "rename", "drop", "widen", "append", "append", "delete", "update")
        ):
            case "add" if free:
                name = chance.choice(free)
                types[name] = chance.choice(("int", "string"))
                self.table.add_column(f"{prefix}`{name}`" if prefix else name, types[name])
                self.each(member, lambda found: found.update({name: None}))
            case "rename" if own and free:
                old, new = chance.choice(own), chance.choice(free)
                self.table.rename_column(f"{prefix}`{old}`", new)
                types[new] = types.pop(old)
                self.each(member, lambda found: found.update({new: found.pop(old)}))
            case "drop" if own and len(types) > 1:
                gone = chance.choice(own)
                self.table.drop_column(f"{prefix}`{gone}`")
                del types[gone]
                self.each(member, lambda found: found.pop(gone))
            case "widen" if ints := [n for n in own if types[n] == "int"]:
                self.table.widen_column(f"{prefix}`{chance.choice(ints)}`", "bigint")
            case "append":
                self.append()
            case "delete" if self.rows:
                gone = chance.choice(self.rows)["id"]
                self.table.delete(f"id = {gone}")
                self.rows = [r for r in self.rows if r["id"] != gone]
            case "update" if strings := [n for n, t in self.types.items() if t == "string"]:
                name = chance.choice(strings)
                self.table.update({name: "'new'"}, "id % 2 = 0")
                for row in self.rows:
                    row[name] = "new" if row["id"] % 2 == 0 else row[name]

    def each(self, member, change):
        for row in self.rows:
            if member(row) is not None:
                change(member(row))

    def append(self):
        made = [self.filled(self.types) for _ in range(3)]
        self.rows += [{**row, "id": next(self.numbers)} for row in made]
        data = pa.Table.from_pylist(copy.deepcopy(self.rows[-3:]), to_arrow(self.table.schema))
        self.table.append(data)

    def filled(self, types):
        chance, found = self.chance, {}
        for name, type in types.items():
            if isinstance(type, dict):
                found[name] = self.filled(type) if chance.random() < 0.8 else None
            else:
                found[name] = chance.choice((None, 1, 2) if type != "string" else (None, "a", "b"))
        return found


@pytest.mark.spec("I-074", "I-075", "I-076")
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 40))])
def test_our_changes(tmp_path, seen, seed):
    inner = StructType((Field("x", INT32), Field("y", STRING)))
    table = bh.create(str(tmp_path / "t"), Schema((Field("id", INT64), Field("s", inner))), format="iceberg")
    ours = Ours(table, seed)
    ours.append()
    for _ in range(14):
        ours.step()
    found = bh.open(table.uri).to_arrow().to_pylist()
    assert sorted(found, key=lambda r: r["id"]) == sorted(ours.rows, key=lambda r: r["id"])
    theirs = seen(tmp_path / "t").rows().to_pylist()
    assert sorted(theirs, key=lambda r: r["id"]) == sorted(ours.rows, key=lambda r: r["id"])
