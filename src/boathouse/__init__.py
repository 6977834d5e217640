"""Delta, Iceberg and Lance tables from PySpark and Python. No JARs.

import boathouse as bh
t = bh.open("/data/flights")
t.scan(columns=["carrier"], where="month = 6").to_arrow()

Public are the names exported here and by `boathouse.variant`, `boathouse.errors`, `boathouse.types` and
`boathouse.compat.delta_tables`, and the methods of what they return. All other modules are internal: they change
without notice. `help(bh.Table.merge)` says what a method does, what it raises, and shows an example: in all of them `t`
is a table of three cities with the columns `id`, `city` and `price`, and `pa` is pyarrow.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boathouse import errors, variant
    from boathouse.api.catalog import Catalog, catalog
    from boathouse.api.convert import convert
    from boathouse.api.create import create
    from boathouse.api.open import detect, open
    from boathouse.api.sql.statements import sql
    from boathouse.api.table import Table
    from boathouse.api.write import write
    from boathouse.errors import BoathouseError
    from boathouse.expr.tree import Expr, col, lit
    from boathouse.ops.result import VacuumResult as VacuumResult
    from boathouse.ops.result import WriteResult
    from boathouse.parquet_files.read import read_parquet
    from boathouse.parquet_files.write import write_parquet
    from boathouse.types import Field, Schema

__version__ = "0.1.0"
_LOADED_BY = os.getpid()
"""A process that is forked later shares its parent's connections, which are not its own."""

_HOMES = {
    "open": "boathouse.api.open",
    "detect": "boathouse.api.open",
    "create": "boathouse.api.create",
    "convert": "boathouse.api.convert",
    "catalog": "boathouse.api.catalog",
    "Catalog": "boathouse.api.catalog",
    "sql": "boathouse.api.sql.statements",
    "write": "boathouse.api.write",
    "read_parquet": "boathouse.parquet_files.read",
    "write_parquet": "boathouse.parquet_files.write",
    "Table": "boathouse.api.table",
    "BoathouseError": "boathouse.errors",
    "Expr": "boathouse.expr.tree",
    "col": "boathouse.expr.tree",
    "lit": "boathouse.expr.tree",
    "Field": "boathouse.types",
    "Schema": "boathouse.types",
    "VacuumResult": "boathouse.ops.result",
    "WriteResult": "boathouse.ops.result",
}

_MODULES = ("errors", "variant")

__all__ = [
    "BoathouseError", "Catalog", "Expr", "Field", "Schema", "Table", "WriteResult", "catalog", "col",
    "convert", "create", "detect", "errors", "lit", "open", "read_parquet", "sql", "variant", "write", "write_parquet",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Loads public names when first used, so that `import boathouse` stays cheap."""
    home = _HOMES.get(name)
    if name in _MODULES:
        value: Any = import_module(f"boathouse.{name}")
    elif home is not None:
        value = getattr(import_module(home), name)
    else:
        raise AttributeError(f"module 'boathouse' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
