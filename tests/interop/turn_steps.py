"""Random steps on an Iceberg table that either side can take: what ours calls, what the reference is told, and which
rows there must be afterwards."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import random_tables as draw

from boathouse.arrow.schema import to_arrow

LATER = "2100-01-01 00:00:00"
COLUMNS = """k bigint, p string, i int, f float, d double, n decimal(9, 2), day date, ts timestamp, tn timestamp_ntz,
    bo boolean, bi binary, `a.b` string, `né x` int, st struct<a: int, b: string>, li array<int>, m map<string, int>"""
LAYOUTS = ((), ("p",), ("bucket(2, k)", "days(ts)"), ("truncate(1, p)", "i"), ("months(day)",), ("`a.b`",), ("d",))
NAMES = ("a", "b", "c", "E", "f g", "né", "x.y")
DEFAULTS = {"int": "-7", "string": "né", "double": "1.5", "date": "1969-12-31", "decimal(9, 2)": "-7.50",
            "long": "-1", "boolean": "true"}  # fmt: skip
NOT_ORC = {"0.0": "-0.0", draw.TIMES[0]: draw.TIMES[1]}
"""Java's ORC reads zeros of both signs, if there is nothing else, as the first of them; and no ORC file has a timestamp
in the last second before 1970."""
Rows = dict[int, dict[str, Any]]
"""Rows by their key `k`."""


@dataclass(frozen=True)
class Step:
    """In the statements `{t}` is the table or its branch, `{table}` the table, `{system}` where the procedures are and
    `{arg}` the table's name as they take it. `expected` makes the rows of the branch from those before and from the
    keys that `where` chooses; without it nothing is known of them. `same_ids`: a row that stays keeps its row id."""

    title: str
    ours: Callable[[Any], object] | None
    theirs: tuple[str, ...] | None
    ref: str = "main"
    where: str | None = None
    expected: Callable[[Rows, set[int]], Rows] | None = lambda rows, hit: rows
    same_ids: bool = True
    upkeep: bool = False
    """No row gets another version."""
    forgets: bool = False
    """The reference gives the rows that stay other ids."""
    moved: str | None = None
    """A branch that is made, moved or dropped."""
    every_branch: bool = False
    """What is expected is so on each branch."""


class Drawer:
    """Draws steps for a table as it is: `document`, its metadata, and the rows of its branches by their keys. With a
    Spark session, ours gets rows as its frames."""

    def __init__(self, chance, formats, scratch, spark=None):
        self.chance, self.formats, self.scratch, self.spark = chance, formats, scratch, spark
        self.keys = self.files = 0
        self.starts = [1]
        """The first keys of what was appended."""

    def look(self, table, rows):
        self.document = table._handle.snapshot.metadata.document
        ids = {s["schema-id"]: s for s in self.document["schemas"]}
        self.fields = ids[self.document["current-schema-id"]]["fields"]
        self.schema, self.all = to_arrow(table.schema), rows
        self.version = self.document["format-version"]
        self.refs = {n: r["type"] for n, r in self.document.get("refs", {}).items() if n != "main"}

    def branches(self):
        return [n for n, kind in self.refs.items() if kind == "branch"]

    def step(self):
        """A step; None where none of the kind is possible."""
        kind = self.chance.choice((
            *("append", "delete", "update", "merge") * 4, "overwrite", "overwrite", "dynamic", "key_upsert",
            *("add", "add_default", "rename", "drop", "widen", "move"), "spec", "spec", "modes", "modes", "upgrade",
            "order",
            *("branch", "branch", "tag", "drop_ref", "fast_forward", "rollback"),
            *("data_files", "data_files", "row_deletes", "row_deletes", "manifests", "expire", "orphans"),
        ))  # fmt: skip
        return getattr(self, kind)()

    def ref(self):
        names = self.branches()
        return self.chance.choice(names) if names and self.chance.random() < 0.35 else "main"

    # --- rows

    def value(self, type):
        if self.chance.random() < 0.15:
            return None
        match draw.kind(type):
            case "struct":
                return {f["name"]: self.value(f["type"]) for f in type["fields"]}
            case "list":
                return [self.value(type["element"]) for _ in range(self.chance.randrange(3))]
            case "map":
                return [(f"k{n}", self.value(type["value"])) for n in range(self.chance.randrange(3))]
        return value_of(type, self.text(type))

    def text(self, type):
        found = self.chance.choice(draw.VALUES[draw.kind(type)])
        return NOT_ORC.get(found, found) if "orc" in self.formats else found

    def rows(self, keys):
        made = [{f["name"]: k if f["name"] == "k" else self.value(f["type"]) for f in self.fields} for k in keys]
        return pa.Table.from_pylist(made, self.schema)

    def fresh(self, number):
        self.starts.append(self.keys + 1)
        self.keys += number
        return range(self.keys - number + 1, self.keys + 1)

    def source(self, data):
        """The rows as a file that the reference reads."""
        self.files += 1
        path = self.scratch / f"rows{self.files}.parquet"
        pq.write_table(data, path)
        return f"parquet.`{path}`"

    def given(self, data):
        """The rows as ours gets them."""
        return data if self.spark is None else self.spark.table(self.source(data))

    def append(self):
        data, ref, files = self.rows(self.fresh(self.chance.randint(2, 6))), self.ref(), self.chance.randint(1, 3)
        told = f"INSERT INTO {{t}} SELECT /*+ REPARTITION({files}) */ * FROM {self.source(data)}"
        return Step(f"append {len(data)}", lambda t: t.append(self.given(data)), (told,), ref,
                    expected=lambda rows, hit: rows | by_key(data))  # fmt: skip

    def where(self):
        keys = ", ".join(str(self.chance.randint(1, self.keys)) for _ in range(3))
        return self.chance.choice((f"k IN ({keys})", f"k % 5 = {self.chance.randrange(5)}",
                                   draw.condition(self.chance, self.fields, 1)))  # fmt: skip

    def delete(self):
        where = self.where()
        # Where it deletes whole files by their metadata, the reference takes `i <> 1` for true of nulls.
        told = where if where.startswith("k ") else f"({where}) AND k % 1 = 0"
        return Step(f"delete where {where}", lambda t: t.delete(where), (f"DELETE FROM {{t}} WHERE {told}",),
                    self.ref(), where, lambda rows, hit: {k: r for k, r in rows.items() if k not in hit})  # fmt: skip

    def update(self):
        path, type = self.chance.choice([v for v in draw.leaves(self.fields) if len(v[0]) == 1 and v[0] != ("k",)])
        text, where, name = self.text(type), self.where(), draw.dotted(path)
        told, new = f"CAST('{text}' AS {draw.sql_type(type)})", value_of(type, text)
        return Step(f"update {name} = {told} where {where}", lambda t: t.update({name: told}, where),
                    (f"UPDATE {{t}} SET {name} = {told} WHERE {where}",), self.ref(), where,
                    lambda rows, hit: {k: r | {path[0]: new} if k in hit else r for k, r in rows.items()})  # fmt: skip

    def merge(self):
        ref = self.ref()
        old = self.chance.sample(sorted(self.all[ref]), min(3, len(self.all[ref])))
        data, rest = self.rows([*old, *self.fresh(2)]), self.chance.choice((None, self.chance.randrange(7)))
        told = (f"MERGE INTO {{t}} t USING (SELECT * FROM {self.source(data)}) s ON t.k = s.k WHEN MATCHED AND "
                "t.k % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")  # fmt: skip
        if rest is not None:
            told += f" WHEN NOT MATCHED BY SOURCE AND t.k % 7 = {rest} THEN DELETE"

        def ours(t):
            merge = t.merge(self.given(data), "target.k = source.k").when_matched_delete("target.k % 3 = 0")
            merge = merge.when_matched_update_all().when_not_matched_insert_all()
            if rest is not None:
                merge = merge.when_not_matched_by_source_delete(f"target.k % 7 = {rest}")
            merge.execute()

        def expected(rows, hit):
            new = by_key(data)
            kept = {k: r for k, r in rows.items() if k in new or rest is None or k % 7 != rest}
            return {k: r for k, r in (kept | new).items() if k not in rows or k not in new or k % 3}

        return Step(f"merge {data['k'].to_pylist()}, {rest}", ours, (told,), ref, expected=expected)

    def overwrite(self):
        """The rows from a key on, which the reference does where all rows of a file match, or none."""
        start = self.chance.choice(self.starts)
        where, data = f"k >= {start}", self.rows(self.fresh(3))
        told = f"INSERT INTO {{t}} REPLACE WHERE {where} SELECT * FROM {self.source(data)}"
        return Step(f"overwrite where {where}", lambda t: t.overwrite(self.given(data), where=where), (told,),
                    self.ref(),
                    expected=lambda rows, hit: {k: r for k, r in rows.items() if k < start} | by_key(data))  # fmt: skip

    def dynamic(self):
        data = self.rows(self.fresh(2))
        mode = "SET spark.sql.sources.partitionOverwriteMode={}"
        told = (mode.format("dynamic"), f"INSERT OVERWRITE {{t}} SELECT * FROM {self.source(data)}")
        return Step("overwrite of partitions", lambda t: t.overwrite(self.given(data), partitions="dynamic"),
                    told, self.ref(), expected=None)  # fmt: skip

    def key_upsert(self):
        """By equality deletes, which the reference reads, and Spark does not write."""
        ref = self.ref()
        old = self.chance.sample(sorted(self.all[ref]), min(2, len(self.all[ref])))
        data = self.rows([*old, *self.fresh(1)])
        if self.version < 2:
            return None
        return Step("upsert by equality deletes", lambda t: t.upsert(self.given(data), on="k", deletes="equality"),
                    None, ref, expected=lambda rows, hit: rows | by_key(data), same_ids=False)  # fmt: skip

    # --- columns

    def place(self):
        """The path of a struct or of the table, its fields, and a free name."""
        above, own = self.chance.choice([s for s in draw.structs(self.fields) if "element" not in s[0]])
        taken = {f["name"].lower() for f in own}
        return above, own, self.chance.choice([n for n in NAMES if n.lower() not in taken] or [f"z{len(own)}"])

    def add(self):
        above, _, name = self.place()
        path, first, type = draw.dotted((*above, name)), self.chance.random() < 0.3, self.chance.choice(draw.LEAVES)
        sql = draw.sql_type(type)
        told = f"ALTER TABLE {{table}} ADD COLUMN {path} {sql} {'FIRST' if first else ''}"
        return Step(told, lambda t: t.add_column(path, sql, first=first), (told,), expected=each(
                    above, lambda row: row | {name: None}), upkeep=True, every_branch=True)  # fmt: skip

    def add_default(self):
        """For which the reference has no SQL."""
        above, _, name = self.place()
        if above or self.version < 3 or self.formats != ("parquet",):
            return None  # Java reads no defaults of fields that a file in ORC lacks
        path, (type, text) = draw.dotted((*above, name)), self.chance.choice(list(DEFAULTS.items()))
        sql, value = draw.sql_type(type), value_of(type, text)
        told = f"CAST('{text}' AS {sql})"
        return Step(f"add {path} {sql} default {told}", lambda t: t.add_column(path, sql, default=told), None,
                    expected=each(above, lambda row: row | {name: value}), upkeep=True, every_branch=True)  # fmt: skip

    def some_field(self, kept=()):
        above, own, free = self.place()
        some = self.chance.choice(own)
        fixed = (some["name"] == "k" and not above) or len(own) == 1 or {some["id"], *_below(some["type"])} & set(kept)
        return None if fixed else (above, some, free)

    def partition_sources(self, *transforms):
        specs = [f for spec in self.document["partition-specs"] for f in spec["fields"]]
        orders = [f for order in self.document["sort-orders"] for f in order["fields"]]
        return [f["source-id"] for f in specs + orders if not transforms or f["transform"] in transforms]

    def rename(self):
        if (found := self.some_field()) is None:
            return None
        above, some, free = found
        old, path = some["name"], draw.dotted((*above, some["name"]))
        return Step(f"rename {path} to {free}", lambda t: t.rename_column(path, free),
                    (f"ALTER TABLE {{table}} RENAME COLUMN {path} TO `{free}`",), expected=each(
                        above, lambda row: {free if n == old else n: v for n, v in row.items()}),
                    upkeep=True, every_branch=True)  # fmt: skip

    def drop(self):
        # Java reads no more of a table that lost the source of a partition field.
        if (found := self.some_field(self.partition_sources())) is None:
            return None
        above, some, _ = found
        path = draw.dotted((*above, some["name"]))
        return Step(f"drop {path}", lambda t: t.drop_column(path), (f"ALTER TABLE {{table}} DROP COLUMN {path}",),
                    expected=each(above, lambda row: {n: v for n, v in row.items() if n != some["name"]}),
                    upkeep=True, every_branch=True)  # fmt: skip

    def widen(self):
        # Java reads no older snapshots of a table that widened the source of an identity transform.
        narrow = self.partition_sources("identity")
        wide = [((*above, f["name"]), f["type"]) for above, own in draw.structs(self.fields) for f in own
                if str(f["type"]) in draw.WIDER and f["id"] not in narrow and "element" not in above]  # fmt: skip
        if not wide:
            return None
        path, type = self.chance.choice(wide)
        name, wider = draw.dotted(path), draw.WIDER[type]
        return Step(f"widen {name} to {wider}", lambda t: t.widen_column(name, wider),
                    (f"ALTER TABLE {{table}} ALTER COLUMN {name} TYPE {wider}",), upkeep=True)  # fmt: skip

    def move(self):
        above, own, _ = self.place()
        some, other = self.chance.sample(own, 2) if len(own) > 1 else (own[0], None)
        if other is None:
            return None
        path, after = draw.dotted((*above, some["name"])), self.chance.choice((None, other["name"]))
        told = "FIRST" if after is None else f"AFTER `{after}`"
        return Step(f"move {path} {told}", lambda t: t.move_column(path, after=after),
                    (f"ALTER TABLE {{table}} ALTER COLUMN {path} {told}",), upkeep=True)  # fmt: skip

    # --- the table

    def spec(self):
        names = {f["id"]: path for path, f in _paths(self.fields)}
        spec = next(s for s in self.document["partition-specs"] if s["spec-id"] == self.document["default-spec-id"])
        live = [f for f in spec["fields"] if f["transform"] != "void"]
        texts = [_text(f["transform"], draw.dotted(names[f["source-id"]])) for f in live]
        if live and self.chance.random() < 0.4:
            at = self.chance.randrange(len(live))
            told, wanted = f"DROP PARTITION FIELD `{live[at]['name']}`", texts[:at] + texts[at + 1 :]
        else:
            new = draw.transform(self.chance, self.fields)
            if new in texts:
                return None
            told, wanted = f"ADD PARTITION FIELD {new}", [*texts, new]
        return Step(told, lambda t: t.partition_by(*wanted), (f"ALTER TABLE {{table}} {told}",), upkeep=True)

    def order(self):
        return Step("order", lambda t: t.sort_by("k desc", "p"),
                    ("ALTER TABLE {table} WRITE LOCALLY ORDERED BY k DESC",), upkeep=True)  # fmt: skip

    def modes(self, version=None):
        options = properties(self.chance, self.formats, version or self.version)
        if version is not None:
            options["format-version"] = str(version)
        told = f"ALTER TABLE {{table}} SET TBLPROPERTIES ({listed(options)})"
        return Step(f"set {listed(options)}", lambda t: t.set_properties(options), (told,), upkeep=True)

    def upgrade(self):
        return self.modes(self.version + 1) if self.version < 3 else None

    # --- refs

    def branch(self):
        name = f"b{self.chance.randrange(3)}"
        if name in self.refs:
            return Step(f"replace {name}", lambda t: t.refs.replace_branch(name),
                        (f"ALTER TABLE {{table}} REPLACE BRANCH {name}",), upkeep=True, moved=name)  # fmt: skip
        keep = self.chance.choice((None, 2))
        told = f"ALTER TABLE {{table}} CREATE BRANCH {name}"
        told += "" if keep is None else f" WITH SNAPSHOT RETENTION {keep} SNAPSHOTS"
        return Step(told, lambda t: t.refs.create_branch(name, min_snapshots_to_keep=keep), (told,), upkeep=True,
                    moved=name)  # fmt: skip

    def tag(self):
        name = f"g{len(self.document['snapshots'])}-{len(self.refs)}"
        return Step(f"tag {name}", lambda t: t.refs.create_tag(name), (f"ALTER TABLE {{table}} CREATE TAG `{name}`",),
                    upkeep=True)  # fmt: skip

    def drop_ref(self):
        if not self.refs:
            return None
        name, kind = self.chance.choice(sorted(self.refs.items()))
        return Step(f"drop {kind} {name}", lambda t: getattr(t.refs, f"drop_{kind}")(name),
                    (f"ALTER TABLE {{table}} DROP {kind.upper()} `{name}`",), upkeep=True, moved=name)  # fmt: skip

    def fast_forward(self):
        if not self.branches():
            return None
        name = self.chance.choice(self.branches())
        return Step(f"fast forward to {name}", lambda t: t.refs.fast_forward("main", name),
                    (f"CALL {{system}}.fast_forward('{{arg}}', 'main', '{name}')",),
                    expected=lambda rows, hit: self.all[name], same_ids=False)  # fmt: skip

    def rollback(self):
        past = [e["snapshot-id"] for e in self.document["snapshot-log"]][-4:]
        if not past:
            return None
        id = self.chance.choice(past)
        return Step(f"roll back to {id}", lambda t: t.refs.rollback(id),
                    (f"CALL {{system}}.rollback_to_snapshot('{{arg}}', {id})",), expected=None,
                    same_ids=False)  # fmt: skip

    # --- upkeep

    def data_files(self):
        where = self.chance.choice(("", ", where => 'k > 5'"))
        options = ", options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')"
        done = self.chance.choice(("optimize", "purge"))
        told = f"CALL {{system}}.rewrite_data_files(table => '{{arg}}'{where}{options})"
        return Step(done, lambda t: getattr(t, done)(), (told,), upkeep=True)

    def row_deletes(self):
        if self.version < 2:
            return None
        told = "CALL {system}.rewrite_position_delete_files(table => '{arg}', options => map('rewrite-all', 'true'))"
        return Step("rewrite of deletes", lambda t: t.rewrite_deletes(), (told,), upkeep=True)

    def manifests(self):
        """The reference writes entries without the first row ids that they had inherited (1.10)."""
        return Step("rewrite of manifests", lambda t: t.rewrite_manifests(),
                    ("CALL {system}.rewrite_manifests('{arg}')",), upkeep=True, forgets=True)  # fmt: skip

    def expire(self):
        keep = self.chance.randint(1, 3)
        told = f"CALL {{system}}.expire_snapshots('{{arg}}', TIMESTAMP '{LATER}', {keep})"
        return Step(f"expire all but {keep}", lambda t: t.expire_snapshots(LATER[:10], retain_last=keep), (told,),
                    upkeep=True)  # fmt: skip

    def orphans(self):
        """The reference's procedure leaves what is younger than a day."""
        return Step("removal of orphans",
                    lambda t: t.remove_orphan_files(LATER[:10], enforce_retention_duration=False), None,
                    upkeep=True)  # fmt: skip


def properties(chance, formats, version):
    """Modes of row deletes where the version has them, and formats of files."""
    modes = ("copy-on-write", "merge-on-read", "merge-on-read") if version > 1 else ("copy-on-write",)
    found = {f"write.{n}.mode": chance.choice(modes) for n in ("delete", "update", "merge")}
    found["write.delete.granularity"] = chance.choice(("file", "partition"))
    return found | {f"write.{n}format.default": chance.choice(formats) for n in ("", "delete.")}


def listed(options):
    return ", ".join(f"'{k}'='{v}'" for k, v in options.items())


def value_of(type, text):
    """What `CAST('text' AS type)` is."""
    match draw.kind(type):
        case "int" | "long":
            return int(text)
        case "float":
            return pa.scalar(float(text), pa.float32()).as_py()
        case "double":
            return float(text)
        case "decimal":
            return Decimal(text)
        case "boolean":
            return text == "true"
        case "date":
            return dt.date.fromisoformat(text)
        case "timestamp":
            return dt.datetime.fromisoformat(text)
        case "timestamptz":
            return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
        case "binary":
            return text.encode()
    return text


def by_key(data):
    return {row["k"]: row for row in data.to_pylist()}


def each(above, change):
    """The change of every row, or of the structs at the path."""

    def at(value, path):
        if value is None or not path:
            return value if value is None else change(value)
        return value | {path[0]: at(value[path[0]], path[1:])}

    return lambda rows, hit: {k: at(row, above) for k, row in rows.items()}


def _below(type):
    return {f["id"] for _, fields in draw._structs_below(type, ()) for f in fields}


def _paths(fields, above=()):
    for f in fields:
        yield (*above, f["name"]), f
        if draw.kind(f["type"]) == "struct":
            yield from _paths(f["type"]["fields"], (*above, f["name"]))


def _text(transform, name):
    word, _, number = transform.rstrip("]").partition("[")
    if word == "identity":
        return name
    return f"{word}({number}, {name})" if number else f"{word}({name})"
