"""Single values of chunks: the same as of chunks that are decoded whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from boathouse.bits import fastlanes
from boathouse.lance.file import messages as m
from boathouse.lance.file.decode_values import decode_chunks
from boathouse.lance.file.plain import Bits, Fixed, Var, Vectors
from boathouse.lance.file.points import decode_points, offered
from boathouse.lance.file.segments import Broken, Segments

RANDOM = np.random.default_rng(11)


def segments(chunks: list[bytes]) -> Segments:
    """With bytes of nobody between the chunks."""
    data, starts = b"", []
    for chunk in chunks:
        data += b"\xee" * 5
        starts.append(len(data))
        data += chunk
    return Segments(np.frombuffer(data, np.uint8), np.array(starts), np.array([len(c) for c in chunks]))


def flat(bits):
    return m.CompressiveEncoding(flat=m.Flat(bits_per_value=bits))


def plain(values) -> list:
    if isinstance(values, Var):
        ends = values.offsets.tolist()
        return [values.data[a:b].tobytes() for a, b in pairwise(ends)]
    if isinstance(values, Vectors):
        return np.ascontiguousarray(values.items.data).reshape(len(values), -1).tolist()
    assert isinstance(values, Fixed | Bits)
    return values.data.tolist()


def compare(encoding, chunks, counts):
    assert offered(encoding)
    data, counts = segments(chunks), np.array(counts)
    whole = plain(decode_chunks(encoding, [data], counts))
    chunk = np.repeat(np.arange(len(counts)), counts)
    within = np.concatenate([np.arange(n) for n in counts])
    assert plain(decode_points(encoding, data, chunk, within)) == whole
    picked = np.sort(RANDOM.choice(len(chunk), min(7, len(chunk)), replace=False))
    assert plain(decode_points(encoding, data, chunk[picked], within[picked])) == [whole[i] for i in picked]
    assert len(decode_points(encoding, data, chunk[:0], within[:0])) == 0


@pytest.mark.few(2)
@pytest.mark.spec("L-112", "L-081")
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_bit_packed(bits):
    """Every width, several in one page, the last chunk not full."""
    encoding = m.CompressiveEncoding(inline_bitpacking=m.InlineBitpacking(uncompressed_bits_per_value=bits))
    kind = f"<u{bits // 8}"
    for widths in ([w] for w in range(bits + 1)):
        widths = [*widths, bits, 0]
        chunks = []
        for width in widths:
            values = RANDOM.integers(0, 1 << 63, (1, 1024), np.uint64) * np.uint64(2) + np.uint64(1)
            values = values >> np.uint64(64 - width) if width else values * np.uint64(0)
            packed = fastlanes.pack(values.astype(kind), width)
            chunks.append(np.array([width], kind).tobytes() + packed.tobytes())
        compare(encoding, chunks, [1024, 1024, 77])


@pytest.mark.spec("L-112")
@pytest.mark.parametrize("bits", [1, 8, 24, 64, 128])
def test_flat(bits):
    chunks = [RANDOM.bytes(max(bits * 64 // 8, 1)) for _ in range(3)]
    compare(flat(bits), chunks, [64, 64, 13])


@pytest.mark.spec("L-112")
def test_vectors():
    vectors = m.FixedSizeList(items_per_value=3, values=flat(32))
    compare(m.CompressiveEncoding(fixed_size_list=vectors), [RANDOM.bytes(12 * 8) for _ in range(3)], [8, 8, 5])


@pytest.mark.spec("L-112")
@pytest.mark.parametrize("width", [4, 8])
def test_strings(width):
    chunks, counts = [], []
    for count in (16, 16, 5):
        lengths = RANDOM.integers(0, 9, count)
        offsets = width * (count + 1) + np.concatenate(([0], np.cumsum(lengths)))
        chunks.append(offsets.astype(f"<u{width}").tobytes() + RANDOM.bytes(int(lengths.sum())))
        counts.append(count)
    variable = m.Variable(offsets=flat(width * 8))
    compare(m.CompressiveEncoding(variable=variable), chunks, counts)


@pytest.mark.spec("L-112")
def test_values_that_would_be_elsewhere():
    """Damage: nothing beyond the chunk is read, whatever its neighbours hold."""
    places = np.array([0, 1]), np.array([3, 3])
    packing = m.CompressiveEncoding(inline_bitpacking=m.InlineBitpacking(uncompressed_bits_per_value=32))
    strings, long_strings = (m.CompressiveEncoding(variable=m.Variable(offsets=flat(b))) for b in (32, 64))
    for encoding, chunk in (
        (flat(64), bytes(31)),
        (flat(1), b""),
        (packing, np.array([33], "<u4").tobytes() + bytes(4096)),
        (packing, np.array([8], "<u4").tobytes() + bytes(12)),
        (packing, b"\1"),
        (strings, np.array([20, 20, 20, 99, 20], "<u4").tobytes()),
        (strings, np.array([20, 20, 20, 20, 99], "<u4").tobytes()),
        (long_strings, np.array([9, 9, 9, 1 << 63, 9], "<u8").tobytes()),
        (strings, bytes(16)),
    ):
        with pytest.raises(Broken):
            decode_points(encoding, segments([chunk, chunk]), *places)
    with pytest.raises(Broken, match="more than 1,024"):
        decode_points(packing, segments([bytes(8192)]), np.array([0]), np.array([1024]))


def test_what_has_no_places():
    """Values that follow from those before them, or are compressed together."""
    general = m.CompressiveEncoding(general=m.General(compression=m.BufferCompression(scheme=1), values=flat(32)))
    for encoding in (None, general, flat(3), m.CompressiveEncoding(rle=m.Rle()), m.CompressiveEncoding()):
        assert not offered(encoding)
    assert offered(m.CompressiveEncoding(fsst=m.Fsst(values=m.CompressiveEncoding(variable=m.Variable()))))
    assert not offered(m.CompressiveEncoding(fsst=m.Fsst(values=general)))


@pytest.mark.spec("L-112")
@pytest.mark.parametrize("nulls", [False, True])
def test_columns_of_pylance(kit, nulls):
    """A few rows of many: strings by symbol tables, packed and plain numbers, vectors, booleans; nulls or none."""
    n = 30_000
    floats = RANDOM.random(n)
    columns = {
        "packed": pa.array(RANDOM.integers(0, 1000, n)),
        "plain": pa.array(RANDOM.integers(-(1 << 62), 1 << 62, n)),
        "float": pa.array(floats),
        "bool": pa.array(floats < 0.3),
        "text": pa.array([f"the text number {x}" for x in RANDOM.integers(0, 1 << 30, n)]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(RANDOM.random(4 * n, np.float32)), 4),
        "word": pa.array([f"w{x}" for x in RANDOM.integers(0, 90, n)]),
    }
    if nulls:
        some = pa.array(RANDOM.random(n) < 0.7)
        columns = {name: pa.array(v).filter(some).take(_spread(some)) for name, v in columns.items()}
    table = pa.table(columns)
    path, _ = kit.pylance(table)
    picked = np.sort(RANDOM.choice(n, 40, replace=False))
    with kit.open(path) as file:
        assert file.take(picked).to_pylist() == table.take(pa.array(picked)).to_pylist()
        assert file.take(np.array([n - 1])).to_pylist() == table.slice(n - 1).to_pylist()


def _spread(some: pa.Array) -> pa.Array:
    """Where each value is among those that there are; null where there is none."""
    kept = np.asarray(some)
    return pa.array(np.cumsum(kept) - 1, mask=~kept)
