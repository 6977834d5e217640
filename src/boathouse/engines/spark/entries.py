"""An entry of Spark's metastore for files becomes one for a table of this library at the same place."""

from __future__ import annotations

from typing import Any

from boathouse.engines.spark.names import PROVIDER, Named, forget, register
from boathouse.errors import UnsupportedFeatureError
from boathouse.types import Schema


def check_changeable(spark: Any, name: str, found: Named) -> None:
    """Raises UnsupportedFeatureError for a managed entry on Connect, where it could only be dropped, with its files."""
    if found.managed and _catalog(spark) is None:
        raise UnsupportedFeatureError(
            f"the entry of {name}, which manages its files, cannot be changed on Spark Connect",
            where=found.location,
            advice="convert it on a classic session, or its folder: CONVERT TO DELTA parquet.`/folder`",
        )


def change_provider(spark: Any, name: str, found: Named, schema: Schema) -> None:
    """Makes the entry one of this library's: its columns stay as they are, and it is not partitioned in the metastore.

    On a classic session Spark's own catalog does it in one step. On Connect an external entry is dropped and made again
    with the columns of `schema`. Raises Spark's errors.
    """
    catalog = _catalog(spark)
    if catalog is None:
        forget(spark, name)
        register(spark, name, found.location, schema.fields, None)
        return
    jvm = spark._jvm
    asked = spark._jsparkSession.sessionState().sqlParser().parseTableIdentifier(name)
    entry = catalog.getTableMetadata(asked)
    # The arguments of a case class differ between versions of Spark: those that do not change are the entry's own.
    values = {(key := entry.productElementName(i)): getattr(entry, key)() for i in range(entry.productArity())}
    values |= {
        "provider": jvm.scala.Option.apply(PROVIDER),
        "partitionColumnNames": jvm.PythonUtils.toSeq([]),
        "bucketSpec": jvm.scala.Option.empty(),
        "tracksPartitionsInCatalog": False,
    }
    catalog.alterTable(entry.copy(*values.values()))
    catalog.refreshTable(asked)


def _catalog(spark: Any) -> Any:
    """The session's catalog in the JVM; None on Connect."""
    session = getattr(spark, "_jsparkSession", None)
    return None if session is None else session.sessionState().catalog()
