"""The memory pool for table data."""

from __future__ import annotations

import os
from functools import cache

import pyarrow as pa

_KEPT_MS = 30_000


@cache
def read_pool() -> pa.MemoryPool:
    """The pool for reading: the default pool if the user chose one, else jemalloc if pyarrow has it.

    Reading takes and frees many large buffers. Arrow's default pool, mimalloc, returns them to the system at once and
    allocates them again, which can cost more than decoding. jemalloc keeps freed memory for a while;
    pa.jemalloc_memory_pool().release_unused() returns it sooner.
    """
    default = pa.default_memory_pool()
    if "ARROW_DEFAULT_MEMORY_POOL" in os.environ or default.backend_name != "mimalloc":
        return default
    try:
        pool = pa.jemalloc_memory_pool()
        pa.allocate_buffer(1 << 16, pool)  # fails if the page size differs from the one that jemalloc was built for
        pa.jemalloc_set_decay_ms(_KEPT_MS)
    except (NotImplementedError, MemoryError, pa.ArrowException):
        return default
    return pool
