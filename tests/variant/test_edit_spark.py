"""Paths, edits, schemas and explode against Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations_with_replacement

import pytest

from boathouse.errors import EvaluationError, ExpressionError
from boathouse.variant import edit
from boathouse.variant.explode import explode
from boathouse.variant.path import format_path, parse_path
from boathouse.variant.schemas import merge, schema_of
from boathouse.variant.value import Variant

pytestmark = pytest.mark.spark

DOCUMENT = """{"a":1,"b":{"c":[1,{"d":2}],"n":null},"s":"x","e":[],"o":{},"n":null,"arr":[1,null,3],"A":12,
"a b":3,"a.b":4,"":5,"a'b":6,"x]y":7,"*":8,"é":9,"0":10,"$":11,"a?":13,"😀":14,"a\\"b":15}"""
PATHS = [
    "$", "$.a", "$.A", "a", "", ".a", "$a", "$.", "$..a", "$.b.c", "$.b.c[0]", "$.b.c[1].d", "$.b.c[-1]", "$.b.c[01]",
    "$.b.c[ 0 ]", "$.b.c[*]", "$.*", "$[*]", "$['a']", '$["a"]', "$['a b']", "$['a.b']", "$.a b", "$.a.b", "$['']",
    '$[""]', "$['a''b']", '$["a\'b"]', "$['x]y']", "$.x]y", "$['*']", "$[*", "$['a'", "$['a", "$.a ", "$ .a", " $.a",
    "$.é", "$.0", "$[0]", "$.$", "$.b['c'][0]", "$.b.c[2147483647]", "$.b.c[2147483648]", "$.b.c[+0]", "$.b.c[1",
    "$.b.c]", "$.b.c[]", "$['a' ]", "$[ 'a']", "$.a[0]", "$.b[0]", "$.b.c.d", "$.'a'", '$."a"', "$.b.c[1]d", "$['a']b",
    "$['a?']", "$.a?", "$['a\"b']", "$.b.c[１]", "$.a.[0]", "$[a]", "$['b','a']", "$.a\n", "$\n", "$.😀", "$['😀']",
    "$[0x1]", "$[1.0]", "$$", "$[0].", "$[0]]", "$.b. c", "$.b.c[00000000000000000001]",
]  # fmt: skip
EDITED = [
    "$.a", "$.new", "$.b.c[0]", "$.b.c[1]", "$.b.c[2]", "$.b.c[4]", "$.b.c[1].d", "$.b.c[1].x", "$.b.x.y",
    "$.b.x[1].y", "$.x[2]", "$.x[0][1]", "$.s.x", "$.s[0]", "$.b[0]", "$.e[0]", "$.e[1]", "$.e.x", "$.o[0]", "$.o.x",
    "$.n", "$.n.x", "$.arr[1]", "$.arr[1].x", "$.arr[1][0]", "$.arr", "$.e", "$['']", "$['a.b']", "$.b.c", "$.b",
]  # fmt: skip
ROOTS = ["[1,2,3]", "[]", "{}", "null", "5", '"x"']
ROOT_PATHS = ["$[0]", "$[1]", "$[3]", "$[5].x", "$.x", "$[0].x", "$[0][0]", "$.x.y", "$.x[1]"]


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


@pytest.fixture(scope="module")
def ask(spark):
    """One row of many expressions."""

    def run(expressions: list[str]) -> list[object]:
        found: list[object] = []
        for i in range(0, len(expressions), 80):
            columns = ", ".join(f"{e} AS c{j}" for j, e in enumerate(expressions[i : i + 80]))
            found += spark.sql(f"SELECT {columns}").collect()[0]
        return found

    return run


@pytest.mark.spec("V-061", "V-062")
def test_paths(spark, ask):
    def refused(path: str) -> bool:
        try:
            parse_path(path)
        except ExpressionError:
            return True
        return False

    right = [p for p in PATHS if not refused(p)]
    document = f"parse_json({quoted(DOCUMENT)})"
    found = ask([f"to_json(variant_get({document}, {quoted(p)}))" for p in right])
    for path, theirs in zip(right, found, strict=True):
        ours = Variant.from_json(DOCUMENT).get(path)
        assert (None if ours is None else json.loads(ours.to_json())) == (theirs and json.loads(theirs)), path
    spelt = ask([f"to_json(variant_get({document}, {quoted(format_path(parse_path(p)))}))" for p in right])
    assert spelt == found
    wrong = [p for p in PATHS if refused(p)]
    assert len(wrong) > 25
    for path in wrong:
        with pytest.raises(Exception, match="INVALID_VARIANT_GET_PATH"):
            ask([f"variant_get({document}, {quoted(path)})"])


EDITS: dict[str, Callable[[Variant, str], Variant | None]] = {
    "try_variant_set({v}, {p}, 99)": lambda v, p: edit.set(v, p, 99, safe=True),
    "try_variant_set({v}, {p}, 99, false)": lambda v, p: edit.set(v, p, 99, create_if_missing=False, safe=True),
    "try_variant_insert({v}, {p}, parse_json('{{\"q\":[1]}}'))": lambda v, p: edit.insert(v, p, {"q": [1]}, safe=True),
    "variant_delete({v}, {p})": lambda v, p: edit.delete(v, p),
    "variant_delete({v}, NULL, {p}, {p})": lambda v, p: edit.delete(v, None, p, p),
    "try_variant_array_append({v}, {p}, 'x')": lambda v, p: edit.array_append(v, p, "x", safe=True),
}


@pytest.mark.parametrize("form", EDITS)
@pytest.mark.route("edits of variants")
def test_edits(ask, form):
    jobs = [(DOCUMENT, p) for p in EDITED] + [(r, p) for r in ROOTS for p in ROOT_PATHS]
    found = ask([f"to_json({form.format(v=f'parse_json({quoted(d)})', p=quoted(p))})" for d, p in jobs])
    for (document, path), theirs in zip(jobs, found, strict=True):
        ours = EDITS[form](Variant.from_json(document), path)
        assert (None if ours is None else json.loads(ours.to_json())) == (theirs and json.loads(theirs)), (
            document,
            path,
        )
        assert ours is None or not ours.validate()


def test_edits_that_raise(spark, ask):
    for form, path, ours in [
        ("variant_set({v}, {p}, 1)", "$.s.x", lambda v, p: edit.set(v, p, 1)),
        ("variant_set({v}, {p}, 1, false)", "$.s.x", lambda v, p: edit.set(v, p, 1, create_if_missing=False)),
        ("variant_insert({v}, {p}, 1)", "$.a", lambda v, p: edit.insert(v, p, 1)),
        ("variant_array_append({v}, {p}, 1)", "$", lambda v, p: edit.array_append(v, p, 1)),
        ("variant_set({v}, {p}, 1)", "$", lambda v, p: edit.set(v, p, 1)),
        ("variant_delete({v}, {p})", "$", lambda v, p: edit.delete(v, p)),
        ("try_variant_insert({v}, {p}, 1)", "$", lambda v, p: edit.insert(v, p, 1, safe=True)),
        ("variant_delete({v}, {p})", "$.a[-1]", lambda v, p: edit.delete(v, p)),
    ]:
        with pytest.raises((EvaluationError, ExpressionError)):
            ours(Variant.from_json(DOCUMENT), path)
        with pytest.raises(Exception, match=r"VARIANT_PATH|VARIANT_DUPLICATE_KEY"):
            ask([form.format(v=f"parse_json({quoted(DOCUMENT)})", p=quoted(path))])


def test_strip_nulls(ask):
    documents = [DOCUMENT, *ROOTS, "[null]", '[[null],null,{"a":null}]', '{"a":{"b":null},"c":[null,{"d":null}]}']
    for flag in (True, False):
        found = ask([f"to_json(variant_strip_nulls(parse_json({quoted(d)}), {flag}))" for d in documents])
        ours = [edit.strip_nulls(Variant.from_json(d), include_arrays=flag).to_json() for d in documents]
        assert list(map(json.loads, ours)) == list(map(json.loads, found))


def test_explode(spark):
    for outer in (False, True):
        name = "variant_explode_outer" if outer else "variant_explode"
        for document in ['{"b":1,"a":[2],"A":null}', *ROOTS, "null"]:
            rows = spark.sql(f"SELECT pos, key, to_json(value) FROM {name}(parse_json({quoted(document)}))").collect()
            ours = [(p, k, v and v.to_json()) for p, k, v in explode(Variant.from_json(document), outer)]
            assert ours == list(map(tuple, rows)), document


LEAVES = [
    "null", "true", "1", "1.5", "1.25", "0.001", "100.0", "1e3", '"x"', "123456789012345678901234567890",
    "12345678901234567890.12345678", "0.00000000000000000001", "[]", "{}", "[1]", '["x"]', '{"a":1}', '{"a":"x"}',
    '{"b":[1.5]}', '{"a b":1,"😀":{"a`b":null}}',
]  # fmt: skip
CASTS = [
    "CAST(CAST(1 AS TINYINT) AS VARIANT)", "CAST(1.5f AS VARIANT)", "CAST(DATE'2020-01-01' AS VARIANT)",
    "CAST(TIMESTAMP'2020-01-01 00:00:00' AS VARIANT)", "CAST(TIMESTAMP_NTZ'2020-01-01 00:00:00' AS VARIANT)",
    "CAST(X'00' AS VARIANT)", "CAST(CAST('99999999999999999999' AS DECIMAL(38,0)) AS VARIANT)",
]  # fmt: skip


def test_schemas(spark):
    """Spark's own bytes, their schema, and that of each pair."""
    all = [f"parse_json({quoted(j)})" for j in LEAVES] + CASTS
    rows = " UNION ALL ".join(f"SELECT {i} k, {e} v" for i, e in enumerate(all))
    frame = spark.sql(rows).coalesce(1)
    frame.createOrReplaceTempView("leaves")
    schemas = {}
    for row in spark.sql("SELECT k, v, schema_of_variant(v) s FROM leaves").collect():
        schemas[row.k] = schema_of(Variant(row.v.metadata, row.v.value))
        assert str(schemas[row.k]) == row.s
    pairs = list(combinations_with_replacement(range(len(all)), 2))
    spark.createDataFrame(
        [(g, k) for g, pair in enumerate(pairs) for k in pair], "g int, k int"
    ).createOrReplaceTempView("pairs")
    found = spark.sql("SELECT g, schema_of_variant_agg(v) s FROM pairs JOIN leaves USING (k) GROUP BY g").collect()
    assert len(found) == len(pairs)
    for row in found:
        assert str(merge([schemas[k] for k in pairs[row.g]])) == row.s, [all[k] for k in pairs[row.g]]


def test_schemas_that_spark_cannot_merge(spark):
    """It prints UUID for one, and fails to read that back for two."""
    from pyspark.sql.types import VariantVal

    value = Variant(b"\x11\x00\x00", bytes([20 << 2, *range(16)]))
    frame = spark.createDataFrame([(VariantVal(value.value, value.metadata),)] * 2, "v variant")
    assert {r[0] for r in frame.selectExpr("schema_of_variant(v)").collect()} == {"UUID"} == {str(schema_of(value))}
    with pytest.raises(Exception, match="INVALID_JSON_DATA_TYPE"):
        frame.selectExpr("schema_of_variant_agg(v)").collect()
    assert str(merge([schema_of(value)] * 2)) == "UUID"
