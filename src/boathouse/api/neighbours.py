"""What is asked of the nearest neighbours of a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.vector import numpy_type
from boathouse.compute.distances import METRICS, is_vector
from boathouse.errors import InvalidArgumentError
from boathouse.ops.reads.indexed_neighbours import Probes
from boathouse.ops.tasks.nearest import Query
from boathouse.types import Schema


def asked(schema: Schema, column: str, query: Any, k: int, metric: str) -> tuple[str, Query]:
    """The column as the table spells it, and the query. Raises ColumnNotFoundError, InvalidArgumentError."""
    field = schema.field(column)
    type = to_arrow_type(field.type)
    if not is_vector(type):
        raise InvalidArgumentError(
            f"column `{field.name}` of {field.type} has no vectors of floats or integers of 8 bits",
            advice="name a column of a type like vector<float,128>",
        )
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InvalidArgumentError(f"k={k!r} is not a number of rows", advice="pass for example 10")
    if metric not in METRICS:
        raise InvalidArgumentError(f"metric={metric!r} is none of {', '.join(METRICS)}")
    if metric == "hamming" and type.value_type != pa.uint8():
        raise InvalidArgumentError(f"hamming compares bits of uint8, and `{field.name}` is of {field.type}")
    return field.name, Query(_vector(query, type, metric), metric, k)


def probing(nprobes: int | None, refine_factor: int | None) -> Probes | None:
    """How much of an index is looked at; None: every vector is compared. Raises InvalidArgumentError."""
    for name, value in (("nprobes", nprobes), ("refine_factor", refine_factor)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InvalidArgumentError(f"{name}={value!r} is not a number from 1 on", advice="pass for example 10")
    if nprobes is None and refine_factor is not None:
        raise InvalidArgumentError("refine_factor= without nprobes=", advice="pass nprobes=, or compare every vector")
    return None if nprobes is None else Probes(nprobes, refine_factor or 1)


def _vector(query: Any, type: pa.DataType, metric: str) -> npt.NDArray[Any]:
    """Rounded to the elements of the column if they are floats; bits are compared with bytes."""
    try:
        if isinstance(query, pa.Array | pa.ChunkedArray | pa.Scalar):
            query = query.to_pylist() if not isinstance(query, pa.Scalar) else query.as_py()
        given = np.asarray(query)
        if given.dtype.kind not in "iuf" or given.ndim != 1:
            raise TypeError(f"{given.ndim} dimensions of {given.dtype}")
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"the query is no vector of numbers: {error}", advice="pass [0.5, ...]") from error
    if len(given) != type.list_size:
        raise InvalidArgumentError(f"a query of {len(given)} numbers for vectors of {type.list_size}")
    if metric != "hamming" and not pa.types.is_floating(type.value_type):
        return given
    with np.errstate(all="ignore"):
        vector = given.astype(numpy_type(type.value_type))
    if metric == "hamming" and (given != vector).any():
        raise InvalidArgumentError("hamming compares bytes, and the query has other numbers")
    return vector
