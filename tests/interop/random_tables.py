"""Random values, conditions and changes of a schema and of a partitioning as Spark SQL, drawn from the
metadata document of an Iceberg table."""

from __future__ import annotations

import re

LEAVES = ("int", "long", "float", "double", "decimal(9, 2)", "string", "boolean", "date", "timestamp", "timestamptz",
          "binary")  # fmt: skip
NAMES = ("a", "b", "c", "E", "f g", "né")
WIDER = {"int": "bigint", "float": "double", "decimal(9, 2)": "decimal(20, 2)", "decimal(20, 2)": "decimal(38, 2)"}
SQL_NAMES = {"long": "bigint", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"}
FLOATS = ("NaN", "-0.0", "0.0", "1.5", "-2.25", "Infinity", "-Infinity", "-1e10", "1.4e-45", "3.4028234663852886e38")
TIMES = ("1969-12-31 23:59:59.999999", "1960-02-29 12:30:15.123456", "1970-01-01 00:00:00", "2024-02-29 01:00:00")
VALUES = {
    "int": ("0", "1", "-1", "-7", "5", "12", "2147483647", "-2147483648"),
    "long": ("0", "1", "-1", "-7", "5", "12", "9223372036854775807"),
    "float": FLOATS,
    "double": FLOATS,
    "decimal": ("0.00", "-0.01", "12345.67", "-9999999.99", "7.50"),
    "string": ("", "a", "a", "b", "ab", "longer than sixteen characters", "é🚣"),
    "boolean": ("true", "false"),
    "date": ("1969-12-31", "1970-01-01", "1960-02-29", "2024-02-29", "1969-11-30"),
    "timestamp": TIMES,
    "timestamptz": TIMES,
    "binary": ("", "x", "longer than sixteen bytes"),
}
TIMED = ("date", "timestamp", "timestamptz")


def kind(type):
    """The name of a type: of a nested one as it stands, of decimals without digits."""
    return type["type"] if isinstance(type, dict) else type.partition("(")[0]


def sql_type(type):
    match kind(type):
        case "struct":
            return "struct<" + ", ".join(f"`{f['name']}`: {sql_type(f['type'])}" for f in type["fields"]) + ">"
        case "list":
            return f"array<{sql_type(type['element'])}>"
        case "map":
            return f"map<{sql_type(type['key'])}, {sql_type(type['value'])}>"
    return SQL_NAMES.get(type, type)


def dotted(path):
    return ".".join(f"`{name}`" for name in path)


# --- values


def value(chance, type):
    """A value of the type."""
    return f"CAST({_value(chance, type)} AS {sql_type(type)})"


def _value(chance, type):
    """Leaves as texts: the cast around all of it makes them what they are to be."""
    if chance.random() < 0.15:
        return "NULL"
    match kind(type):
        case "struct":
            fields = ", ".join(f"'{f['name']}', {_value(chance, f['type'])}" for f in type["fields"])
            return f"named_struct({fields})"
        case "list":
            return f"array({', '.join(_value(chance, type['element']) for _ in range(chance.randrange(3)))})"
        case "map":
            pairs = [f"'k{n}', {_value(chance, type['value'])}" for n in range(chance.randrange(3))]
            return f"map({', '.join(pairs)})"
        case leaf:
            return f"'{chance.choice(VALUES[leaf])}'"


def row(chance, fields, key):
    return ", ".join(str(key) if f["name"] == "k" else value(chance, f["type"]) for f in fields)


def literal(chance, type):
    """A value of a leaf, as it stands in a condition."""
    text = chance.choice(VALUES[kind(type)])
    match kind(type):
        case "string":
            return f"'{text}'"
        case "float" | "double" if text in ("NaN", "Infinity", "-Infinity"):
            return f"CAST('{text}' AS double)"
        case "float" | "double":
            return f"{text}D"
        case "long" if len(text) > 12:
            return f"{text}L"
        case "binary":
            return f"X'{text.encode().hex()}'"
        case "date":
            return f"DATE '{text}'"
        case "timestamp":
            return f"TIMESTAMP_NTZ '{text}'"
        case "timestamptz":
            return f"TIMESTAMP '{text}Z'"
    return text


# --- conditions


def leaves(fields, above=()):
    """The paths and types of the leaves that are in no list or map."""
    for f in fields:
        path = (*above, f["name"])
        if kind(f["type"]) == "struct":
            yield from leaves(f["type"]["fields"], path)
        elif not isinstance(f["type"], dict):
            yield path, f["type"]


def condition(chance, fields, depth=0):
    """A condition on the columns of a schema."""
    match chance.choice(("one", "one", "and", "or", "not")) if depth < 2 else "one":
        case "one":
            return _comparison(chance, *chance.choice(list(leaves(fields))))
        case "not":
            return f"NOT ({condition(chance, fields, depth + 1)})"
        case both:
            found = [condition(chance, fields, depth + 1) for _ in range(2)]
            return f"({found[0]}) {both.upper()} ({found[1]})"


def _comparison(chance, path, type):
    name, one = dotted(path), literal(chance, type)
    sign = chance.choice(("=", "<>", "<", "<=", ">", ">=", "<=>"))
    forms = [f"{name} {sign} {one}"] * 3
    forms += [f"{name} IS NULL", f"{name} IS NOT NULL", f"{name} IN ({one}, {literal(chance, type)})",
              f"{name} NOT IN ({one}, {literal(chance, type)})",
              f"{name} BETWEEN {one} AND {literal(chance, type)}"]  # fmt: skip
    match kind(type):
        case "boolean":
            forms += [name]
        case "string":
            forms += [f"{name} LIKE 'a%'", f"{name} LIKE '%e%'"]
        case "float" | "double":
            forms += [f"isnan({name})"]
    return chance.choice(forms)


# --- changes of the schema


def structs(fields, above=()):
    """The paths of the structs at every depth, and the fields of each; the table's own first."""
    yield above, fields
    for f in fields:
        yield from _structs_below(f["type"], (*above, f["name"]))


def _structs_below(type, path):
    match kind(type):
        case "struct":
            yield from structs(type["fields"], path)
        case "list":
            yield from _structs_below(type["element"], (*path, "element"))
        case "map":
            yield from _structs_below(type["value"], (*path, "value"))


def schema_change(chance, table, fields, kept, narrow):
    """A statement that changes the schema; fields with the ids `kept` stay, those with the ids `narrow` as they are."""
    above, own = chance.choice(list(structs(fields)))
    free = [n for n in NAMES if n.lower() not in {f["name"].lower() for f in own}]
    some = chance.choice(own)
    name, path = dotted([*above, some["name"]]), f"ALTER TABLE {table}"
    place = chance.choice(("FIRST", f"AFTER `{chance.choice(own)['name']}`"))
    fixed = some["name"] == "k" and not above
    match chance.choice(("add", "add", "drop", "rename", "move", "widen", "widen")):
        case "add" if free:
            new = dotted([*above, chance.choice(free)])
            return f"{path} ADD COLUMN {new} {sql_type(_type(chance))} {chance.choice(('', place))}"
        case "drop" if len(own) > 1 and not fixed and not kept & {some["id"], *_ids_below(some["type"])}:
            return f"{path} DROP COLUMN {name}"
        case "rename" if free and not fixed:
            return f"{path} RENAME COLUMN {name} TO `{chance.choice(free)}`"
        case "move" if f"`{some['name']}`" not in place:
            return f"{path} ALTER COLUMN {name} {place}"
    wide = [(p, f) for p, inner in structs(fields) for f in inner if str(f["type"]) in WIDER and f["id"] not in narrow]
    if not wide:
        return None
    above, some = chance.choice(wide)
    return f"{path} ALTER COLUMN {dotted([*above, some['name']])} TYPE {WIDER[some['type']]}"


def _type(chance):
    leaf = chance.choice(LEAVES)
    nested = {"type": "struct", "fields": [{"name": "a", "type": leaf}, {"name": "b", "type": "string"}]}
    return chance.choice((leaf, leaf, leaf, nested, {"type": "list", "element": leaf}))


def _ids_below(type):
    return {f["id"] for _, fields in _structs_below(type, ()) for f in fields}


# --- changes of the partitioning


def transform(chance, fields):
    """A partition field over a random leaf."""
    path, type = chance.choice(list(leaves(fields)))
    name, simple = dotted(path), kind(type)
    # Java reads a null struct as one of nulls where a field of it has an identity transform.
    forms = [] if simple == "binary" or len(path) > 1 else [name]
    if simple not in ("boolean", "float", "double"):
        forms.append(f"bucket({chance.randint(1, 3)}, {name})")
    if simple in ("int", "long", "decimal", "string", "binary"):
        forms.append(f"truncate({chance.choice((1, 2, 10))}, {name})")
    if simple in TIMED:
        forms += [f"{part}({name})" for part in ("years", "months", "days")]
    return chance.choice(forms) if forms else transform(chance, fields)


def spec_change(chance, table, fields, spec):
    """A statement that changes the partition fields."""
    old = [f["name"] for f in spec["fields"] if f["transform"] != "void"]
    new = transform(chance, fields)
    match chance.choice(("add", "add", "drop", "replace")) if old else "add":
        case "drop":
            return f"ALTER TABLE {table} DROP PARTITION FIELD `{chance.choice(old)}`"
        case "replace":
            return f"ALTER TABLE {table} REPLACE PARTITION FIELD `{chance.choice(old)}` WITH {new}"
    named = f" AS `p{chance.randrange(100)}`" if chance.random() < 0.3 else ""
    return f"ALTER TABLE {table} ADD PARTITION FIELD {new}{named}"


def digits(name):
    """The number in a metadata file's name."""
    return int(re.match(r"v(\d+)", name)[1])
