"""Projections through partition transforms against brute force and against pyiceberg's."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.arrow.schema import from_arrow, to_arrow_type
from boathouse.arrow.transforms import transform
from boathouse.compute.evaluate import mask
from boathouse.expr.parse import parse
from boathouse.expr.project import project
from boathouse.expr.resolve import bind_predicate
from boathouse.types import (
    BINARY,
    DATE,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    DecimalType,
    PartitionField,
    PartitionSpec,
    Transform,
)  # fmt: skip

DEC = DecimalType(9, 2)
UTC = dt.UTC
TYPES = {"i": INT32, "l": INT64, "s": STRING, "d": DATE, "ts": TIMESTAMP, "dec": DEC, "x": BINARY}
VALUES = {
    "i": [-21, -11, -10, -9, -1, 0, 1, 9, 10, 11, 34, 2**31 - 1],
    "l": [-(2**40), -10, -1, 0, 1, 10, 34, 2**40],
    "s": ["", "a", "ab", "abc", "abcd", "abd", "é", "\U0001f389ab", "\U0001f389abc", "ice", "iceberg"],
    "d": [dt.date(1968, 12, 31), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(1970, 2, 1), dt.date(2020, 2, 29)],
    "ts": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), dt.datetime(1969, 12, 31, 22, tzinfo=UTC),
           dt.datetime(1970, 1, 1, tzinfo=UTC), dt.datetime(1970, 1, 1, 0, 0, 0, 1, UTC),
           dt.datetime(2020, 1, 1, 1, tzinfo=UTC), dt.datetime(1969, 1, 1, tzinfo=UTC)],
    "dec": [Decimal("-10.65"), Decimal("-0.01"), Decimal("0.00"), Decimal("10.49"), Decimal("10.50"), Decimal("10.65")],
    "x": [b"", b"\x00", b"\x00\x01\x02\x03", b"\xff\xff\xff\xff", b"abc"],
}  # fmt: skip
TRANSFORMS = {
    "i": ["identity", "bucket[16]", "truncate[10]", "void"],
    "l": ["identity", "bucket[7]", "truncate[10]"],
    "s": ["identity", "bucket[5]", "truncate[3]", "truncate[1]"],
    "d": ["identity", "bucket[16]", "year", "month", "day"],
    "ts": ["identity", "bucket[4]", "year", "month", "day", "hour"],
    "dec": ["identity", "bucket[16]", "truncate[50]"],
    "x": ["identity", "bucket[16]", "truncate[3]"],
}


def make(text: str) -> Transform:
    name, _, number = text.partition("[")
    return Transform(name, int(number[:-1]) if number else None)


def sql(value) -> str:
    match value:
        case dt.datetime():
            return f"TIMESTAMP'{value:%Y-%m-%d %H:%M:%S.%f}Z'" if value.year > 999 else "NULL"
        case dt.date():
            return f"DATE'{value}'"
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return f"'{value}'"
    return str(value)


@st.composite
def predicates(draw, name):
    literal = st.sampled_from([sql(v) for v in VALUES[name]])
    kind = draw(st.sampled_from(["compare", "compare", "in", "null", "prefix" if name == "s" else "in"]))
    if kind == "compare":
        return f"{name} {draw(st.sampled_from(['=', '!=', '<', '<=', '>', '>=', '<=>']))} {draw(literal)}"
    if kind == "in":
        return f"{name} IN ({', '.join(draw(st.lists(literal | st.just('NULL'), min_size=1, max_size=3)))})"
    if kind == "prefix":
        return f"startswith({name}, {draw(literal)})"
    return f"{name} IS NULL"


@st.composite
def cases(draw):
    name = draw(st.sampled_from(sorted(TYPES)))
    text = draw(
        st.recursive(
            predicates(name),
            lambda e: st.one_of(
                e.map("NOT ({})".format),
                st.tuples(e, st.sampled_from(["AND", "OR"]), e).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
            ),
            max_leaves=3,
        )
    )
    chosen = draw(st.lists(st.sampled_from(TRANSFORMS[name]), min_size=1, max_size=2))
    return name, text, chosen


@pytest.mark.spec("I-129", "I-203")
@settings(max_examples=500)
@given(cases())
def test_inclusive_never_loses_a_row_and_strict_never_claims_one(case):
    name, text, chosen = case
    type = TYPES[name]
    values = pa.array([*VALUES[name], None], to_arrow_type(type))
    batch = pa.record_batch({name: values})
    schema = from_arrow(batch.schema)
    fields = [PartitionField(f"p{i}", (name,), make(t), 1000 + i, make(t).result(type)) for i, t in enumerate(chosen)]
    spec = PartitionSpec(0, tuple(fields))
    partitions = pa.record_batch([transform(values, f.transform, type) for f in fields], [f.name for f in fields])
    bound = bind_predicate(parse(text), schema)
    rows = mask(bound, batch).to_pylist()
    inclusive = mask(project(bound, spec, schema), partitions).to_pylist()
    strict = mask(project(bound, spec, schema, strict=True), partitions).to_pylist()
    for value, row, kept, whole in zip(values.to_pylist(), rows, inclusive, strict):
        assert kept or not row, (value, "lost")
        assert row or not whole, (value, "claimed")


def spec_of(name: str, text: str) -> tuple[PartitionSpec, object]:
    t = make(text)
    return PartitionSpec(0, (PartitionField("p", (name,), t, 1000, t.result(TYPES[name])),)), t


@pytest.mark.parametrize(
    ("name", "how", "text", "inclusive", "strict"),
    [
        ("i", "truncate[10]", "i < 10", "p <= 0", "p < 10"),
        ("i", "truncate[10]", "i >= 10", "p >= 10", "p > 0"),
        ("i", "bucket[16]", "i = 34", "p = 3", "false"),
        ("i", "bucket[16]", "i != 34", "true", "p != 3"),
        ("i", "bucket[16]", "i > 34", "true", "false"),
        ("s", "truncate[3]", "s LIKE 'ic%'", "startswith(p, 'ic')", "startswith(p, 'ic')"),
        ("s", "truncate[3]", "s LIKE 'iceb%'", "p = 'ice'", "false"),
        ("s", "truncate[3]", "s NOT LIKE 'iceb%'", "true", "NOT startswith(p, 'ice')"),
        ("ts", "day", "ts > TIMESTAMP'2020-01-01 12:00:00Z'", "p >= DATE'2020-01-01'", "p > DATE'2020-01-01'"),
        ("ts", "hour", "ts < TIMESTAMP'1970-01-01 00:00:00Z'", "p <= 0", "p < 0"),
        ("d", "year", "d = DATE'1969-05-05'", "p IN (-1, 0)", "false"),
        ("d", "void", "d = DATE'1969-05-05'", "true", "false"),
        ("i", "identity", "i % 2 = 0", "(p % 2) = 0", "(p % 2) = 0"),
    ],
)
@pytest.mark.spec("I-128", "I-203")
def test_the_projection_itself(name, how, text, inclusive, strict):
    spec, _ = spec_of(name, how)
    schema = from_arrow(pa.schema([(name, to_arrow_type(TYPES[name]))]))
    bound = bind_predicate(parse(text), schema)
    assert str(project(bound, spec, schema)) == inclusive
    assert str(project(bound, spec, schema, strict=True)) == strict


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("name", "how"),
    [(n, h) for n in ("i", "l", "s", "d", "ts") for h in TRANSFORMS[n] if h not in ("void", "identity")],
)
def test_agrees_with_pyiceberg_on_partitions(name, how, strict):
    """pyiceberg's projections keep (inclusive) or claim (strict) the same partition values, one operator at a time."""
    from pyiceberg import expressions as ice
    from pyiceberg import partitioning, transforms, types
    from pyiceberg.expressions.visitors import bind, expression_evaluator, inclusive_projection
    from pyiceberg.schema import Schema

    ice_types = {"i": types.IntegerType(), "l": types.LongType(), "s": types.StringType(), "d": types.DateType(),
                 "ts": types.TimestamptzType()}  # fmt: skip
    ice_schema = Schema(types.NestedField(1, name, ice_types[name]))
    ice_spec = partitioning.PartitionSpec(
        partitioning.PartitionField(1, 1000, transforms.parse_transform(how), "p"), spec_id=0
    )
    values = pa.array(VALUES[name], to_arrow_type(TYPES[name]))
    schema = from_arrow(pa.schema([(name, values.type)]))
    spec, t = spec_of(name, how)
    parts = transform(values, t, TYPES[name])
    physical = parts.view(pa.int32()) if pa.types.is_date32(parts.type) else parts
    partition_schema = Schema(*ice_spec.partition_type(ice_schema).fields)
    operators = {"=": ice.EqualTo, "<": ice.LessThan, "<=": ice.LessThanOrEqual, ">": ice.GreaterThan,
                 ">=": ice.GreaterThanOrEqual, "!=": ice.NotEqualTo}  # fmt: skip
    for op, predicate in operators.items():
        for value in VALUES[name]:
            given_value = value.isoformat() if isinstance(value, dt.date) else value
            theirs = predicate(name, given_value)
            if strict:
                bound_ice = bind(ice_schema, theirs, True)
                found = transforms.parse_transform(how).strict_project("p", bound_ice)
                theirs_partition = found if found is not None else ice.AlwaysFalse()
            else:
                theirs_partition = inclusive_projection(ice_schema, ice_spec)(theirs)
            ours = project(bind_predicate(parse(f"{name} {op} {sql(value)}"), schema), spec, schema, strict)
            kept = mask(ours, pa.record_batch({"p": parts})).to_pylist()
            row = [_Record(v) for v in physical.to_pylist()]
            judge = expression_evaluator(partition_schema, theirs_partition, True)
            expected = [judge(r) for r in row]
            for partition, mine, other in zip(parts.to_pylist(), kept, expected):
                # Ours may widen for values that early writers cut towards zero, never the other way.
                agreed = (mine or not other) if not strict else (other or not mine)
                negative_time = how in ("year", "month", "day", "hour")
                assert mine == other or (negative_time and agreed), (op, value, partition, str(ours), theirs_partition)


class _Record:
    """A partition tuple of one value, as pyiceberg's evaluator reads it."""

    def __init__(self, value):
        self.value = value

    def __getitem__(self, position):
        return self.value
