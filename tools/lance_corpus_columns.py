"""The columns of the corpus of Lance tables: types, shapes of values, requested encodings.

Runs under every release of pylance that the corpus is written with, so nothing but pyarrow and numpy is used here.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

ROWS, FEW = 1300, 24
Made = tuple[pa.Array, dict[str, str], bool]  # values, metadata of the field, nullable


def rng(name: str) -> np.random.RandomState:
    return np.random.RandomState(sum(ord(c) * (i + 1) for i, c in enumerate(name)) % 2**31)


def holes(n: int, every: int = 5) -> np.ndarray:
    """True where a value is null."""
    return np.arange(n) % every == every - 2


def masked(array: pa.Array, every: int = 5) -> pa.Array:
    mask = holes(len(array), every).tolist()
    return pa.array([None if m else v for m, v in zip(mask, array.to_pylist())], array.type)


def lists(items: pa.Array, n: int, *, large: bool = False, empty: bool = True) -> pa.Array:
    """Lists of 0 to 3 items, some null and some empty."""
    values = items.to_pylist()
    out, at = [], 0
    for i in range(n):
        size = i % 4
        if i % 7 == 3:
            out.append(None)
            continue
        if not empty:
            size += 1
        out.append([values[(at + k) % len(values)] for k in range(size)])
        at += size
    return pa.array(out, pa.large_list(items.type) if large else pa.list_(items.type))


NUMBERS = {
    **{f"{s}int{b}": getattr(pa, f"{s}int{b}")() for s in ("", "u") for b in (8, 16, 32, 64)},
    "date32": pa.date32(),
    "time32_s": pa.time32("s"),
    "time32_ms": pa.time32("ms"),
    "time64_us": pa.time64("us"),
    "time64_ns": pa.time64("ns"),
    "timestamp_s": pa.timestamp("s"),
    "timestamp_ms": pa.timestamp("ms"),
    "timestamp_us": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamp_utc": pa.timestamp("us", "UTC"),
    "timestamp_zone": pa.timestamp("us", "America/New_York"),
    **{f"duration_{u}": pa.duration(u) for u in ("s", "ms", "us", "ns")},
    "date64": pa.date64(),
}
MOST = {"date32": 40_000, "time32_s": 86_400, "int32": 2**30, "uint32": 2**30, **dict.fromkeys(
    ("time32_ms", "time64_us", "time64_ns"), 86_400_000)}  # fmt: skip
FLOATS = {"float16": np.float16, "float32": np.float32, "float64": np.float64}


def words_of(kind: pa.DataType, values: np.ndarray) -> pa.Array:
    """Integers as values of a type of the same width."""
    width = kind.bit_width // 8
    raw = values.astype(f"<i{width}")
    return pa.Array.from_buffers(kind, len(raw), [None, pa.py_buffer(raw.tobytes())])


def spread(name: str, n: int) -> np.ndarray:
    day = 86_400_000 if name == "date64" else 1
    return (np.arange(n) * 37 % 101) * day


def numbers() -> Iterator[tuple[str, Callable[[], Made]]]:
    for name, kind in NUMBERS.items():
        day = 86_400_000 if name == "date64" else 1
        shapes = {
            "": lambda name=name, kind=kind: words_of(kind, spread(name, ROWS)),
            "_null": lambda name=name, kind=kind: masked(words_of(kind, spread(name, ROWS))),
            "_runs": lambda kind=kind, day=day: words_of(kind, np.arange(ROWS) // 90 * day),
            "_runs_null": lambda kind=kind, day=day: masked(words_of(kind, np.arange(ROWS) // 90 * day), 60),
            "_constant": lambda kind=kind, day=day: words_of(kind, np.full(ROWS, 7 * day)),
        }
        if name.startswith(("int", "uint")):
            shapes["_full"] = lambda name=name, kind=kind: words_of(kind, rng(name).randint(-(2**62), 2**62, 300))
        for shape, make in shapes.items():
            yield name + shape, lambda make=make, shape=shape: (make(), {}, shape.endswith("null"))


def floats() -> Iterator[tuple[str, Callable[[], Made]]]:
    def few(kind: type) -> pa.Array:
        values = (np.arange(ROWS) * 37 % 101 / 8).astype(kind)
        values[[3, 500]] = [np.nan, -0.0]
        values[7] = np.inf
        return pa.array(values)

    for name, kind in FLOATS.items():
        yield name, lambda kind=kind: (few(kind), {}, False)
        yield f"{name}_null", lambda kind=kind: (masked(few(kind)), {}, True)
        yield f"{name}_runs", lambda kind=kind: (pa.array((np.arange(ROWS) // 90 / 4).astype(kind)), {}, False)
        yield f"{name}_random", lambda kind=kind: (pa.array(rng("f").random_sample(300).astype(kind)), {}, False)
        for split in ("on", "off", "auto"):
            yield (
                f"{name}_bss_{split}",
                lambda kind=kind, split=split: (
                    pa.array(rng("f").random_sample(300).astype(kind)),
                    {"lance-encoding:bss": split, "lance-encoding:compression": "lz4"},
                    False,
                ),
            )
            yield (
                f"{name}_bss_{split}_alone",
                lambda kind=kind, split=split: (
                    pa.array(rng("f").random_sample(300).astype(kind)),
                    {"lance-encoding:bss": split},
                    False,
                ),
            )


def texts(n: int = ROWS) -> pa.Array:
    return pa.array([f"v{i * 7919 % 1009}é" for i in range(n)])


def few_words(n: int = ROWS) -> pa.Array:
    return pa.array([["red", "green", "blue", ""][i * i % 4] for i in range(n)])


def long_texts(n: int = FEW) -> pa.Array:
    return pa.array([f"{i:04d}-" * (60 + i) for i in range(n)])


def strings() -> Iterator[tuple[str, Callable[[], Made]]]:
    kinds = {"string": pa.string(), "large_string": pa.large_string(), "binary": pa.binary()}
    kinds["large_binary"] = pa.large_binary()
    for name, kind in kinds.items():
        for shape, make in {
            "": texts,
            "_few": few_words,
            "_constant": lambda: pa.array(["same"] * ROWS),
            "_empty": lambda: pa.array([""] * 9),
            "_some_empty": lambda: pa.array(["", "a", "", "", "bc", ""] * 3),
            "_long": long_texts,
            "_huge": lambda: pa.array(["ab" * 2_000, "", "c" * 33_000]),
        }.items():
            yield f"{name}{shape}", lambda make=make, kind=kind: (make().cast(kind), {}, False)
            if not shape.endswith("empty") or shape == "_some_empty":
                yield f"{name}{shape}_null", lambda make=make, kind=kind: (masked(make()).cast(kind), {}, True)
    yield "string_all_null", lambda: (pa.nulls(ROWS, pa.string()), {}, True)
    for scheme in ("zstd", "lz4", "none", "fsst"):
        for shape, make in {"": texts, "_few": few_words, "_long": long_texts}.items():
            asked = {"lance-encoding:compression": scheme}
            yield f"string{shape}_{scheme}", lambda make=make, asked=asked: (make(), asked, False)
            yield f"string{shape}_{scheme}_null", lambda make=make, asked=asked: (masked(make()), asked, True)
        asked = {"lance-encoding:compression": scheme}
        yield f"int64_{scheme}", lambda asked=asked: (words_of(pa.int64(), spread("", ROWS)), asked, False)
        yield f"int64_{scheme}_null", lambda asked=asked: (masked(words_of(pa.int64(), spread("", ROWS))), asked, True)
        yield f"list_{scheme}", lambda asked=asked: (lists(texts(50), 300), asked, True)
        yield f"float64_{scheme}", lambda asked=asked: (pa.array(rng("f").random_sample(300)), asked, False)
    yield (
        "int64_zstd_level",
        lambda: (
            words_of(pa.int64(), spread("", ROWS)),
            {"lance-encoding:compression": "zstd", "lance-encoding:compression-level": "9"},
            False,
        ),
    )


def decimals() -> Iterator[tuple[str, Callable[[], Made]]]:
    def made(kind: pa.DataType, values: list[str]) -> pa.Array:
        return pa.array([decimal.Decimal(v) for v in values], kind)

    for name, kind in {
        "decimal128": pa.decimal128(10, 2),
        "decimal128_wide": pa.decimal128(38, 10),
        "decimal256": pa.decimal256(50, 3),
    }.items():
        yield name, lambda kind=kind: (made(kind, [f"{(i * 37 % 101) - 50}.25" for i in range(300)]), {}, False)
        yield f"{name}_runs", lambda kind=kind: (made(kind, [f"{i // 90}.5" for i in range(300)]), {}, False)
        yield (
            f"{name}_null",
            lambda kind=kind: (masked(made(kind, [f"{(i * 37 % 101) - 50}.25" for i in range(300)])), {}, True),
        )
    negative = pa.decimal128(5, -2)
    yield "decimal_negative_scale", lambda: (made(negative, [f"{i}E2" for i in range(9)]), {}, False)


def bools() -> Iterator[tuple[str, Callable[[], Made]]]:
    yield "bool", lambda: (pa.array((np.arange(ROWS) * 7 % 3) == 0), {}, False)
    yield "bool_null", lambda: (masked(pa.array((np.arange(ROWS) * 7 % 3) == 0)), {}, True)
    yield "bool_true", lambda: (pa.array([True] * ROWS), {}, False)
    yield "bool_runs", lambda: (pa.array(np.arange(ROWS) // 90 % 2 == 0), {}, False)
    yield "null", lambda: (pa.nulls(ROWS), {}, True)


def vectors_of(items: pa.Array, size: int) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(items, size)


def vectors() -> Iterator[tuple[str, Callable[[], Made]]]:
    def values(kind: pa.DataType, count: int) -> pa.Array:
        raw = np.arange(count) * 37 % 101
        if pa.types.is_boolean(kind):
            return pa.array(raw % 3 == 0)
        if pa.types.is_floating(kind):
            return pa.array((raw / 8).astype({16: np.float16, 32: np.float32, 64: np.float64}[kind.bit_width]))
        return words_of(kind, raw)

    kinds = {"float": pa.float32(), "int32": pa.int32(), "bool": pa.bool_(), "halffloat": pa.float16()}
    kinds |= {"uint8": pa.uint8(), "double": pa.float64(), "timestamp": pa.timestamp("us")}
    for name, kind in kinds.items():
        for size in (4, 3, 100, 600):
            n = FEW if size > 50 else 300
            yield f"vector_{name}_{size}", lambda k=kind, s=size, n=n: (vectors_of(values(k, n * s), s), {}, True)
            yield (
                f"vector_{name}_{size}_null",
                lambda k=kind, s=size, n=n: (masked(vectors_of(values(k, n * s), s)), {}, True),
            )
            yield (
                f"vector_{name}_{size}_nulls_inside",
                lambda k=kind, s=size, n=n: (vectors_of(masked(values(k, n * s)), s), {}, True),
            )
            yield (
                f"vector_{name}_{size}_nulls_both",
                lambda k=kind, s=size, n=n: (masked(vectors_of(masked(values(k, n * s)), s)), {}, True),
            )
    for size, n in ((64, 300), (65, 300), (1000, 40)):
        yield (
            f"vector_int32_{size}_many",
            lambda s=size, n=n: (masked(vectors_of(masked(values(pa.int32(), n * s)), s)), {}, True),
        )
        yield (
            f"list_vector_int32_{size}_many",
            lambda s=size, n=n: (lists(vectors_of(masked(values(pa.int32(), 40 * s)), s), n), {}, True),
        )
    for size in (4, 100, 9000):
        for scheme in ("zstd", "lz4"):
            for structure in ("fullzip", "miniblock"):
                asked = {"lance-encoding:compression": scheme, "lance-encoding:structural-encoding": structure}
                n = 300 if size < 9000 else 4
                yield (
                    f"{structure}_vector_int32_{size}_{scheme}",
                    lambda s=size, n=n, asked=asked: (
                        masked(vectors_of(masked(values(pa.int32(), n * s)), s)),
                        asked,
                        True,
                    ),
                )
                yield (
                    f"{structure}_vector_float_{size}_{scheme}",
                    lambda s=size, n=n, asked=asked: (masked(vectors_of(values(pa.float32(), n * s), s)), asked, True),
                )
    for size in (4, 100):
        for structure in ("fullzip", "miniblock"):
            asked = {"lance-encoding:structural-encoding": structure}
            yield (
                f"{structure}_vector_int32_{size}_of_nulls",
                lambda s=size, asked=asked: (vectors_of(pa.nulls(30 * s, pa.int32()), s), asked, True),
            )
            yield (
                f"{structure}_vector_int32_{size}_constant",
                lambda s=size, asked=asked: (vectors_of(masked(pa.array([7] * (30 * s), pa.int32())), s), asked, True),
            )
            yield (
                f"{structure}_list_vector_{size}",
                lambda s=size, asked=asked: (lists(vectors_of(masked(values(pa.int32(), 40 * s)), s), 90), asked, True),
            )
            yield (
                f"{structure}_vector_nested_{size}",
                lambda s=size, asked=asked: (
                    masked(vectors_of(masked(vectors_of(masked(values(pa.int32(), 30 * s * 2)), s)), 2)),
                    asked,
                    True,
                ),
            )
    yield "vector_nested", lambda: (vectors_of(vectors_of(values(pa.float32(), 600), 3), 2), {}, True)
    yield "vector_nested_null", lambda: (masked(vectors_of(vectors_of(values(pa.float32(), 600), 3), 2)), {}, True)
    pair = pa.StructArray.from_arrays([values(pa.int32(), 40), values(pa.float64(), 40)], ["x", "y"])
    yield "vector_struct", lambda: (vectors_of(pair, 2), {}, True)
    yield "binary16", lambda: (pa.array([bytes([i % 256] * 16) for i in range(300)], pa.binary(16)), {}, False)
    yield (
        "binary16_null",
        lambda: (
            masked(pa.array([bytes([i % 256] * 16) for i in range(300)], pa.binary(16))),
            {},
            True,
        ),
    )
    yield "binary3", lambda: (pa.array([bytes([i % 256] * 3) for i in range(300)], pa.binary(3)), {}, False)
    yield "binary300", lambda: (pa.array([bytes([i % 256] * 300) for i in range(FEW)], pa.binary(300)), {}, False)
    yield (
        "binary300_null",
        lambda: (
            masked(pa.array([bytes([i % 256] * 300) for i in range(FEW)], pa.binary(300))),
            {},
            True,
        ),
    )


def nested() -> Iterator[tuple[str, Callable[[], Made]]]:
    numbers, words = words_of(pa.int64(), spread("", 97)), texts(97)
    pairs = [{"x": i, "y": f"s{i}"} for i in range(97)]
    pair = pa.struct([("x", pa.int32()), ("y", pa.string())])
    for name, items in {
        "int": numbers,
        "int_null": masked(numbers),
        "string": words,
        "string_null": masked(words),
        "few": few_words(97),
        "bool": pa.array(np.arange(97) % 3 == 0),
        "long": long_texts(),
        "long_null": masked(long_texts()),
        "float_vector": vectors_of(pa.array(np.arange(97 * 4) / 4), 4),
        "big_vector": vectors_of(pa.array((np.arange(20 * 100) / 4).astype("f4")), 100),
        "timestamp": words_of(pa.timestamp("us"), spread("", 97)),
        "list": lists(numbers, 40),
        "list_string": lists(masked(words), 40),
        "list_long": lists(long_texts(), 20),
        "struct": pa.array(pairs, pair),
        "struct_null": masked(pa.array(pairs, pair)),
        "dictionary": few_words(97).dictionary_encode(),
    }.items():
        n = 30 if "long" in name or "big" in name else 400
        yield f"list_{name}", lambda items=items, n=n: (lists(items, n), {}, True)
        yield f"list_{name}_filled", lambda items=items, n=n: (lists(items, n, empty=False), {}, True)
        if name in ("int", "string_null", "struct"):
            yield f"large_list_{name}", lambda items=items, n=n: (lists(items, n, large=True), {}, True)
    yield "list_all_empty", lambda: (pa.array([[]] * 30, pa.list_(pa.int64())), {}, True)
    yield "list_all_null", lambda: (pa.array([None] * 30, pa.list_(pa.int64())), {}, True)
    yield "list_of_nulls", lambda: (pa.array([[None], [None, None], []] * 10, pa.list_(pa.int64())), {}, True)
    yield from structs()


def structs() -> Iterator[tuple[str, Callable[[], Made]]]:
    deep = pa.struct([("a", pa.int64()), ("s", pa.struct([("b", pa.string()), ("c", pa.float32())]))])
    rows = [{"a": i, "s": {"b": f"b{i % 9}", "c": i / 2}} for i in range(300)]
    holed = [{"a": None if i % 3 == 0 else i, "s": {"b": None if i % 4 == 0 else "b", "c": i / 2}} for i in range(300)]
    yield "struct", lambda: (pa.array(rows, deep), {}, False)
    yield "struct_nulls_inside", lambda: (pa.array(holed, deep), {}, True)
    yield "struct_null", lambda: (masked(pa.array(holed, deep)), {}, True)
    yield "struct_inner_null", lambda: (pa.array([{**r, "s": None if i % 4 else r["s"]} for i, r in enumerate(rows)], deep), {}, True)  # fmt: skip  # noqa: E501
    yield "struct_all_null", lambda: (pa.nulls(30, deep), {}, True)
    yield "struct_none", lambda: (pa.array([{}] * 5, pa.struct([])), {}, True)
    holding = pa.struct([("l", pa.list_(pa.int32())), ("k", pa.int32())])
    yield "struct_list", lambda: (pa.array([{"l": [i] * (i % 3), "k": i} for i in range(200)], holding), {}, True)
    yield (
        "struct_list_null",
        lambda: (
            masked(pa.array([{"l": None if i % 4 == 1 else [i] * (i % 3), "k": i} for i in range(200)], holding)),
            {},
            True,
        ),
    )
    fixed = pa.struct([("x", pa.int32()), ("y", pa.float64())])
    for key in ("packed", "lance-encoding:packed"):
        yield (
            f"struct_{key.replace(':', '_')}",
            lambda key=key: (pa.array([{"x": i, "y": i / 2} for i in range(200)], fixed), {key: "true"}, False),
        )
    loose = pa.struct([("x", pa.int32()), ("y", pa.string())])
    yield (
        "struct_packed_strings",
        lambda: (
            pa.array([{"x": i, "y": "é" * (i % 5)} for i in range(60)], loose),
            {"lance-encoding:packed": "true"},
            False,
        ),
    )
    entries = pa.map_(pa.string(), pa.int64())
    yield "map", lambda: (pa.array([[(f"k{j}", j) for j in range(i % 4)] for i in range(200)], entries), {}, True)
    yield (
        "map_null",
        lambda: (
            masked(pa.array([[(f"k{j}", None) for j in range(i % 4)] for i in range(200)], entries)),
            {},
            True,
        ),
    )


def dictionaries() -> Iterator[tuple[str, Callable[[], Made]]]:
    words = ["red", "green", "blue", ""]

    def coded(index: pa.DataType, values: pa.Array, n: int, null: bool) -> pa.Array:
        codes = [None if null and h else i * i % len(values) for i, h in enumerate(holes(n))]
        return pa.DictionaryArray.from_arrays(pa.array(codes, index), values)

    for index in ("int8", "uint8", "int16", "uint16", "int32", "int64"):
        kind = getattr(pa, index)()
        for null in (False, True):
            yield (
                f"dictionary_{index}{'_null' if null else ''}",
                lambda kind=kind, null=null: (coded(kind, pa.array(words), ROWS, null), {}, True),
            )
    others = {
        "large_string": pa.array(words, pa.large_string()),
        "binary": pa.array([w.encode() for w in words]),
        "int64": pa.array([10, 20, 30, 40]),
        "int32": pa.array([10, 20, 30, 40], pa.int32()),
        "float": pa.array([0.5, 1.5, 2.5], pa.float32()),
    }
    for name, values in others.items():
        for null in (False, True):
            yield (
                f"dictionary_of_{name}{'_null' if null else ''}",
                lambda values=values, null=null: (coded(pa.int16(), values, ROWS, null), {}, True),
            )
    nothing = pa.DictionaryArray.from_arrays(pa.array([None] * 9, pa.int8()), pa.array([], pa.string()))
    yield "dictionary_without_values", lambda: (nothing, {}, True)
    none = pa.DictionaryArray.from_arrays(pa.array([0, None, 0], pa.int8()), pa.array([None], pa.string()))
    yield "dictionary_of_null", lambda: (none, {}, True)
    empty = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1], pa.int8()), pa.array(["", "a"]))
    yield "dictionary_of_empty", lambda: (empty, {}, True)
    yield "dictionary_of_empty_filled", lambda: (empty, {}, False)
    holed = pa.array(["a", None, "c"])
    yield (
        "dictionary_null_value",
        lambda: (
            pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1, 0], pa.int8()), holed),
            {},
            True,
        ),
    )


def others() -> Iterator[tuple[str, Callable[[], Made]]]:
    documents = ['{"a":1,"b":[true,null,"x"]}', "[1,2.5]", '"text"', "null", "{}", "-7", '{"n":{"m":"é"}}']
    extension = {"ARROW:extension:name": "arrow.json"}
    yield "json", lambda: (pa.array(documents * 5), extension, False)
    yield "json_null", lambda: (masked(pa.array(documents * 5)), extension, True)
    yield "json_large", lambda: (pa.array(documents * 5, pa.large_string()), extension, True)
    half = {"ARROW:extension:name": "lance.bfloat16"}
    brain = pa.array([bytes([0, 63 + i % 3]) for i in range(30)], pa.binary(2))
    yield "bfloat16", lambda: (brain, half, True)
    yield "bfloat16_null", lambda: (masked(brain), half, True)
    blob = {"lance-encoding:blob": "true"}
    held = pa.array([b"x" * i for i in range(30)], pa.large_binary())
    yield "blob", lambda: (held, blob, True)
    yield "blob_null", lambda: (masked(held), blob, True)
    for structure in ("miniblock", "fullzip"):
        asked = {"lance-encoding:structural-encoding": structure}
        plain: dict[str, Callable[[], pa.Array]] = {
            "int64": lambda: masked(words_of(pa.int64(), spread("", 300))),
            "string": lambda: masked(texts(300)),
            "bool": lambda: pa.array(np.arange(300) % 3 == 0),
            "bool_null": lambda: masked(pa.array(np.arange(300) % 3 == 0)),
            "list_int": lambda: lists(words_of(pa.int64(), spread("", 97)), 300),
            "list_bool": lambda: lists(pa.array(np.arange(97) % 3 == 0), 300),
            "list_string": lambda: lists(masked(texts(97)), 300),
            "vector_bool": lambda: vectors_of(pa.array(np.arange(300 * 9) % 3 == 0), 9),
            "vector_int": lambda: masked(vectors_of(masked(words_of(pa.int32(), spread("", 300 * 4))), 4)),
            "decimal": lambda: pa.array([decimal.Decimal(i) for i in range(300)], pa.decimal128(9, 1)),
            "list_decimal": lambda: lists(pa.array([decimal.Decimal(i) for i in range(97)], pa.decimal128(9, 1)), 90),
        }
        for name, make in plain.items():
            yield f"{structure}_{name}", lambda make=make, asked=asked: (make(), asked, True)
    for rank, threshold in (("low", "0.01"), ("high", "0.99")):
        yield (
            f"int32_rle_{rank}",
            lambda threshold=threshold: (
                words_of(pa.int32(), np.arange(ROWS) // 6),
                {"lance-encoding:rle-threshold": threshold},
                False,
            ),
        )
    for divisor in ("1", "100000"):
        yield (
            f"string_divisor_{divisor}",
            lambda divisor=divisor: (few_words(), {"lance-encoding:dict-divisor": divisor}, True),
        )


def runs() -> Iterator[tuple[str, Callable[[], Made]]]:
    """Long columns of runs, shorter and longer than a byte can count, across chunks."""
    n = 6_000
    for name in ("int16", "int32", "int64", "timestamp_us", "timestamp_zone", "duration_ms", "date64", "time32_s"):
        kind, day = NUMBERS[name], 86_400_000 if name == "date64" else 1
        for length in (6, 300, 5000):
            yield (
                f"long_{name}_runs_{length}",
                lambda kind=kind, day=day, length=length: (
                    words_of(kind, np.arange(n) // length % 101 * day),
                    {},
                    False,
                ),
            )
        lengths = rng(name).randint(1, 5, n)
        values = np.repeat(rng(name).randint(0, 2**62, n, dtype=np.int64), lengths)[:n] % MOST.get(name, 2**50)
        values = values % 100 if kind.bit_width < 32 else values // day * day
        yield f"long_{name}_short_runs", lambda kind=kind, values=values: (words_of(kind, values), {}, False)
        yield (
            f"long_{name}_runs_null",
            lambda kind=kind, day=day: (masked(words_of(kind, np.arange(n) // 40 % 101 * day), 200), {}, True),
        )
    for name, kind in FLOATS.items():
        for asked in ({}, {"lance-encoding:bss": "off", "lance-encoding:compression": "zstd"}):
            yield (
                f"long_{name}_runs{'_zstd' if asked else ''}",
                lambda kind=kind, asked=asked: (pa.array((np.arange(n) // 40 % 101 / 4).astype(kind)), asked, False),
            )
    yield "long_bool_runs", lambda: (pa.array(np.arange(n) // 700 % 2 == 0), {}, False)
    yield "long_string_runs", lambda: (pa.array([f"{i // 300}" for i in range(n)]), {}, False)
    yield (
        "long_list_runs",
        lambda: (
            pa.array([[i // 900] * (i // 700 % 3) if i // 350 % 3 else None for i in range(n)], pa.list_(pa.int64())),
            {},
            True,
        ),
    )


def columns() -> dict[str, Callable[[], Made]]:
    """Columns by name."""
    groups = (numbers, floats, strings, decimals, bools, vectors, nested, dictionaries, others, runs)
    return {name: make for group in groups for name, make in group()}


def pages() -> dict[str, Callable[[], Made]]:
    """Columns that take several pages of 8 MB when written, but compress well in an archive."""
    n = 240
    values = pa.array([f"{i}" * 60_000 for i in range(5)])

    def coded(null: bool) -> pa.Array:
        codes = [None if null and i % 11 == 3 else i * i % 5 for i in range(n)]
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), values)

    return {
        "dictionary": lambda: (coded(False), {}, True),
        "dictionary_null": lambda: (coded(True), {}, True),
        "int64": lambda: (words_of(pa.int64(), np.arange(n) // 50), {}, False),
    }
