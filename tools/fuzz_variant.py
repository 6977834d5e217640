"""Mutated variants through every reader: no crash, no hang, no silent wrong value, no growth.

    python tools/fuzz_variant.py --cases 2000000 --seed 1

Valid values (built here, and of the public corpus where it is found) are mutated; a batch of them is read one by one
(`validate`, `to_python`, `to_json`) and as a column (every kernel), leniently and strictly. What must hold:
- nothing is raised but the library's own errors;
- the column's results equal those of the single-value implementation, row by row, including what is malformed;
- every value that decodes is shredded and rebuilt as the same value;
- a batch takes no longer than its size allows, and memory does not grow from batch to batch.
`--what leaves` does the same with mutated leaves of shredded columns, `--what json` with mutated JSON text.
"""

from __future__ import annotations

import argparse
import faulthandler
import math
import os
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from pathlib import Path

import pyarrow as pa

from boathouse import variant as v
from boathouse.errors import BoathouseError, InvalidJsonError, MalformedVariant, UnsupportedFeatureError
from boathouse.variant import Variant
from boathouse.variant.columns.decode import to_pylist
from boathouse.variant.columns.schema_of import schema_of
from boathouse.variant.columns.valid import is_valid
from boathouse.variant.shredding.choose import choose
from boathouse.variant.shredding.get import get

STORAGE = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
CORPUS = Path(os.environ.get("BOATHOUSE_CORPORA", "../shared/corpora")) / "variant" / "encoding"
SECONDS_A_BATCH = 60
WIDE = Context(prec=60)
MALFORMED = object()
UNKNOWN = object()
Case = tuple[bytes, bytes]


def scalar(rng: random.Random) -> object:
    return rng.choice(
        [
            lambda: None,
            lambda: rng.random() < 0.5,
            lambda: rng.randint(-(1 << rng.choice([7, 15, 31, 63])), (1 << rng.choice([7, 15, 31, 63])) - 1),
            lambda: rng.uniform(-1e9, 1e9),
            lambda: "".join(rng.choice('abé€😀～"\\\n ') for _ in range(rng.choice([0, 1, 5, 63, 64, 70]))),
            lambda: rng.randbytes(rng.choice([0, 3, 40])),
            lambda: Decimal(rng.randint(-(10 ** rng.choice([8, 17, 37])), 10**37)).scaleb(-rng.randint(0, 9), WIDE),
        ]
    )()


def python_value(rng: random.Random, depth: int = 0) -> object:
    kind = rng.random()
    if depth > 2 or kind < 0.4 + depth * 0.15:
        return scalar(rng)
    size = rng.choice([0, 1, 2, 3, 5, 8, 33])
    if kind < 0.7:
        return [python_value(rng, depth + 1) for _ in range(min(size, 8))]
    names = ["a", "b", "A", "", "a.b", "😀", "～", *(f"k{i}" for i in range(40))]
    return {name: python_value(rng, depth + 1) for name in rng.sample(names, size)}


def seeds(rng: random.Random, count: int) -> list[Case]:
    """Valid values: the corpus's, and of random Python values."""
    out = [(path.with_suffix(".metadata").read_bytes(), path.read_bytes()) for path in sorted(CORPUS.glob("*.value"))]
    while len(out) < count:
        made = Variant.from_python(python_value(rng))
        out.append((made.metadata, made.value))
    return out


def mutated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """`data` with one to four mutations."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out)) if out else 0
        match rng.randrange(8):
            case 0 if out:
                out[at] ^= 1 << rng.randrange(8)
            case 1 if out:
                out[at] = rng.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF, rng.randrange(256)])
            case 2:
                del out[at : at + rng.choice([1, 1, 2, 4, 9])]
            case 3:
                out[at:at] = rng.randbytes(rng.choice([1, 1, 2, 4]))
            case 4:
                del out[at:]
            case 5:
                piece = other[(start := rng.randrange(len(other) or 1)) : start + rng.randint(1, 16)]
                out[at : at + len(piece)] = piece
            case 6 if len(out) > 4:
                out[at : at + 4] = (0xFFFFFFFF - rng.randrange(3)).to_bytes(4, "little")
            case _:
                piece = bytes(out[at : at + rng.randint(1, 12)])
                out[at:at] = piece
    return bytes(out)


def batches(rng: random.Random, cases: int, rows: int) -> Iterator[list[Case]]:
    """Batches of mutated values, some of them valid."""
    done = 0
    while done < cases:
        pool = seeds(rng, 80)
        batch = []
        for _ in range(min(rows, cases - done)):
            metadata, value = rng.choice(pool)
            where = rng.random()
            if where < 0.75:
                value = mutated(rng, value, rng.choice(pool)[1])
            if 0.7 < where < 0.95:
                metadata = mutated(rng, metadata, rng.choice(pool)[0])
            batch.append((metadata, value))
        done += len(batch)
        yield batch


def attempt(read: Callable[[], object]) -> object:
    """The result of `read`; MALFORMED and UNKNOWN represent the two errors that hostile bytes may raise."""
    try:
        return read()
    except MalformedVariant:
        return MALFORMED
    except UnsupportedFeatureError:
        return UNKNOWN
    except BoathouseError as problem:
        return type(problem)


def same(left: object, right: object) -> bool:
    """Equality of decoded values in which NaN equals NaN and 1 does not equal True or 1.0."""
    stack = [(left, right)]
    while stack:
        a, b = stack.pop()
        if a is b:
            continue
        if type(a) is not type(b):
            return False
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            stack += [(a[k], b[k]) for k in a]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            stack += list(zip(a, b, strict=True))
        elif isinstance(a, float) and isinstance(b, float) and math.isnan(a):
            if not math.isnan(b):
                return False
        elif a != b:
            return False
    return True


def column_of(cases: list[Case]) -> pa.Array:
    parts = [pa.array([c[i] for c in cases], pa.binary()) for i in (0, 1)]
    return pa.StructArray.from_arrays(parts, fields=list(STORAGE))


def check_values(cases: list[Case], rng: random.Random) -> int:
    """Reads a batch in every way; returns the number of rows that decode. Raises AssertionError naming the case."""
    single = [attempt(lambda m=m, b=b: Variant(m, b).to_python()) for m, b in cases]
    valid = is_valid(column_of(cases)).to_pylist()
    for case, one, sound in zip(cases, single, valid, strict=True):
        findings = attempt(lambda c=case: Variant(*c).validate())
        broken = findings is MALFORMED or any(f.kind == "error" for f in findings)
        stopped = one is UNKNOWN or isinstance(one, type)  # stops early, so it does not cover what follows
        assert stopped or broken == (one is MALFORMED), (
            f"validate and to_python disagree: {findings} {one!r} {told(case)}"
        )
        assert sound != broken, f"is_valid says {sound}, validate {findings}: {told(case)}"
    check_paths(cases, column_of(cases), rng)
    # Values that Python cannot hold, and unknown types, fail the reading of the whole column.
    kept = [(c, one) for c, one in zip(cases, single, strict=True) if one is not UNKNOWN and not isinstance(one, type)]
    check_whole([c for c, _ in kept], [one for _, one in kept])
    return check_shredding([c for c, one in kept if one is not MALFORMED])


def told(case: Case) -> str:
    return f"metadata={case[0].hex()} value={case[1].hex()}"


def check_whole(cases: list[Case], single: list[object]) -> None:
    column, lenient = column_of(cases), v.Lenient()
    rows = to_pylist(column, lenient=lenient)
    texts = v.to_json(column, lenient=v.Lenient(), special="string").to_pylist()
    for case, one, row, text in zip(cases, single, rows, texts, strict=True):
        if one is MALFORMED:
            assert row is None and text is None, f"a malformed row reads as {row!r}, {text!r}: {told(case)}"
            continue
        assert same(row, one), f"column {row!r}, one value {one!r}: {told(case)}"
        wanted = attempt(lambda c=case: Variant(*c).to_json(special="string"))
        assert text == wanted, f"JSON: column {text!r}, one value {wanted!r}: {told(case)}"
    assert lenient.count == sum(one is MALFORMED for one in single)


def check_paths(cases: list[Case], column: pa.Array, rng: random.Random) -> None:
    path = rng.choice(["$.a", "$.b", "$.k1", "$[0]", "$.a[1]", "$['a.b']", "$", "$.k2.k3"])
    found = v.extract(column, path, "variant", lenient=v.Lenient())
    for i, case in enumerate(cases):
        one = attempt(lambda c=case: Variant(*c).get(path))
        many = found[i].as_py()
        value = None if many is None else many["value"]
        if isinstance(one, Variant):
            wanted = attempt(lambda one=one: one.value)
            ok = value == wanted or (value is None and wanted in (MALFORMED, UNKNOWN))
            assert ok, f"{path}: column {value!r}, one value {wanted!r}: {case[0].hex()} {case[1].hex()}"
        else:
            assert value is None, f"{path}: column {value!r}, one value {one!r}: {case[0].hex()} {case[1].hex()}"
    kind = rng.choice(["int", "string", "double", "boolean", "decimal(20,2)", "timestamp", "binary", "date"])
    v.extract(column, path, kind, safe=True, lenient=v.Lenient())
    attempt(lambda: v.extract(column, path, kind))
    attempt(lambda: to_pylist(column))
    attempt(lambda: schema_of(column))


def check_shredding(cases: list[Case]) -> int:
    if not cases:
        return 0
    column = column_of(cases)
    back = v.unshred(v.shred(column, choose(column)))
    for case, row in zip(cases, back.to_pylist(), strict=True):
        assert Variant(row["metadata"], row["value"]) == Variant(*case), f"shredding: {told(case)}"
    return len(cases)


def check_leaves(cases: list[Case], rng: random.Random) -> int:
    """Mutated leaves of a shredded column: unshredding and reading a path give rows or the library's errors."""
    whole = [c for c in cases if isinstance(attempt(lambda c=c: Variant(*c).to_python()), dict | list | int | str)]
    if not whole:
        return 0
    column = column_of(whole)
    shredded = v.shred(column, choose(column))
    wounded = wound(shredded, rng)
    lenient = v.Lenient()
    strict = attempt(lambda: v.unshred(wounded))
    found = attempt(lambda: v.unshred(wounded, lenient=lenient))
    if isinstance(found, pa.Array):
        assert (strict in (MALFORMED, UNKNOWN)) == bool(lenient.count), (
            f"strict gives {strict}, lenient counts {lenient.count}"
        )
    attempt(lambda: get(wounded, "$.a", "string"))
    return len(whole)


def wound(array: pa.Array, rng: random.Random) -> pa.Array:
    """A shredded column with some bytes of its `value` and `metadata` leaves changed, and some nulls moved."""
    if pa.types.is_struct(array.type):
        children = [wound(array.field(i), rng) for i in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(array.type), mask=array.is_null())
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, wound(array.values, rng), type=array.type)
    if pa.types.is_binary(array.type) and len(array) and rng.random() < 0.5:
        rows = array.to_pylist()
        for _ in range(rng.randint(1, 4)):
            i = rng.randrange(len(rows))
            rows[i] = mutated(rng, rows[i] or b"\x00", b"\x02\x00\x00")
        return pa.array(rows, array.type)
    return array


def check_json(cases: list[Case], rng: random.Random) -> int:
    """Mutated JSON text: the column parser accepts, refuses and returns the same as the single-value parser."""
    texts = []
    for metadata, value in cases:
        text = attempt(lambda m=metadata, b=value: Variant(m, b).to_json(special="string"))
        if isinstance(text, str):
            raw = text.encode()
            texts.append(mutated(rng, raw, b'{"a":[1,2.50,"x\\u00e9"]}') if rng.random() < 0.7 else raw)
    lenient = v.Lenient()
    found = v.from_json(pa.array(texts, pa.binary()), lenient=lenient).to_pylist()
    for raw, row in zip(texts, found, strict=True):
        try:
            one = Variant.from_json(raw)
        except InvalidJsonError:
            one = None
        assert (one is None) == (row is None), f"JSON {raw!r}: column {row}, one value {one!r}"
        if one is not None:
            assert (row["metadata"], row["value"]) == (one.metadata, one.value), f"JSON {raw!r}"
    return len(texts)


def check_alike(cases: list[Case], rng: random.Random) -> int:
    """Rows that share little more than the layout of their metadata, each mutated differently: as `values`."""
    bases = [c for c in cases if isinstance(attempt(lambda c=c: Variant(*c).to_python()), dict | list)][:3]
    if not bases:
        return 0
    made = []
    for i in range(len(cases)):
        metadata, value = rng.choice(bases)
        names = bytearray(metadata)
        for _ in range(rng.randrange(3)):
            names[rng.randrange(len(names) // 2, len(names))] ^= 1 << rng.randrange(8)
        names += i.to_bytes(4, "little")  # after the dictionary: no two rows have the same bytes
        made.append((bytes(names), value if rng.random() < 0.6 else mutated(rng, value, value)))
    return check_values(made, rng)


def memory() -> float:
    """Resident memory in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


CHECKS = {"values": check_values, "alike": check_alike, "leaves": check_leaves, "json": check_json}


def run(cases: int, seed: int, rows: int = 500, what: str = "values", quiet: bool = False) -> int:
    """Checks this number of cases; returns how many were valid. Raises AssertionError."""
    rng = random.Random(seed)
    done = whole = 0
    started, settled = time.perf_counter(), 0.0
    for i, batch in enumerate(batches(rng, cases, rows)):
        faulthandler.dump_traceback_later(SECONDS_A_BATCH, exit=True)
        whole += CHECKS[what](batch, rng)
        faulthandler.cancel_dump_traceback_later()
        done += len(batch)
        if i == 50:
            settled = memory()
        if not quiet and i % 200 == 0:
            spent = time.perf_counter() - started
            print(f"{what}: {done:,} cases, {whole:,} valid, {spent:,.0f} s, {memory():,.0f} MiB", flush=True)
    if settled:
        assert memory() < settled * 1.5 + 100, f"memory grew from {settled:,.0f} to {memory():,.0f} MiB"
    return whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--what", choices=sorted(CHECKS), default="values")
    options = parser.parse_args()
    pa.set_cpu_count(1)
    # Metadata of many rows is read differently from that of a few.
    whole = run(options.cases, options.seed, rows=3000 if options.what == "alike" else 500, what=options.what)
    print(f"{options.what}: {options.cases:,} cases, seed {options.seed}: no failures; {whole:,} of them valid")


if __name__ == "__main__":
    sys.exit(main())
