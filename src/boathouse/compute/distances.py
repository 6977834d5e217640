"""Distances of vectors to one: as pylance computes them, in 32 bits, or in 64 where the vectors have so many."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.vector import numpy_type

METRICS: Final = ("l2", "cosine", "dot", "hamming")
Distances = npt.NDArray[np.float32]

_ONES: Final = np.array([bin(i).count("1") for i in range(256)], np.uint8)


def is_vector(type: pa.DataType) -> bool:
    """Whether values of the type have distances: floats, or integers of 8 bits, as many in each."""
    return pa.types.is_fixed_size_list(type) and (
        pa.types.is_floating(type.value_type) or type.value_type in (pa.int8(), pa.uint8())
    )


def distances(vectors: pa.FixedSizeListArray, query: npt.NDArray[Any], metric: str) -> Distances:
    """The distance of each vector, NaN for one that is null; elements that are null count as 0.

    `l2` is the square of the Euclidean distance, `cosine` 1 less the cosine of the angle, `dot` 1 less the product,
    `hamming` the number of bits that differ. What is not defined, as the angle to a vector of zeros, is NaN.
    """
    values = _values(vectors)
    with np.errstate(all="ignore"):
        found = _hamming(values, query) if metric == "hamming" else _measured(values, query, metric)
        found = found.astype(np.float32)
    if vectors.null_count:
        found[np.asarray(vectors.is_null())] = np.nan
    return found


def _values(vectors: pa.FixedSizeListArray) -> npt.NDArray[Any]:
    """A row for each vector, whether it is null or not."""
    size = vectors.type.list_size
    flat = vectors.values.slice(vectors.offset * size, len(vectors) * size)
    dtype = numpy_type(flat.type)
    values = np.frombuffer(flat.buffers()[1] or b"", dtype)[flat.offset : flat.offset + len(flat)]
    if flat.null_count:
        values = np.where(np.asarray(flat.is_null()), dtype(0), values)
    return values.reshape(len(vectors), size)


def _measured(values: npt.NDArray[Any], query: npt.NDArray[Any], metric: str) -> npt.NDArray[Any]:
    precision = np.float64 if values.dtype == np.float64 else np.float32
    x: npt.NDArray[np.floating[Any]] = values.astype(precision, copy=False)
    q: npt.NDArray[np.floating[Any]] = query.astype(precision)
    if metric == "l2":
        between = x - q
        return np.einsum("ij,ij->i", between, between)
    product = x @ q
    if metric == "dot":
        return 1 - product
    return 1 - product / (np.sqrt(np.einsum("ij,ij->i", x, x)) * np.sqrt(q @ q))


def _hamming(values: npt.NDArray[Any], query: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return _ONES[values ^ query].sum(axis=1, dtype=np.int64)
