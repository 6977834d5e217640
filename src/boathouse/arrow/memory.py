"""The memory that table data are read into."""

from __future__ import annotations

import os
from functools import cache

import pyarrow as pa

_KEPT_MS = 30_000


@cache
def read_pool() -> pa.MemoryPool:
    """The pool for data read: Arrow's own choice if the user made one, else jemalloc where pyarrow has it.

    Reading takes and frees many large buffers. Arrow's default pool, mimalloc, gives them back to the system at once
    and takes them anew, which can cost more than decoding does. jemalloc keeps what was freed for a while;
    pa.jemalloc_memory_pool().release_unused() gives it back sooner.
    """
    default = pa.default_memory_pool()
    if "ARROW_DEFAULT_MEMORY_POOL" in os.environ or default.backend_name != "mimalloc":
        return default
    try:
        pool = pa.jemalloc_memory_pool()
        pa.allocate_buffer(1 << 16, pool)  # where pages are of another size than jemalloc was built for, this fails
        pa.jemalloc_set_decay_ms(_KEPT_MS)
    except (NotImplementedError, MemoryError, pa.ArrowException):
        return default
    return pool
