"""A reader that takes Spark's filters; only PySpark 4.1 and later have them."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.datasource import Filter

from pyspark_boathouse.filters import expression
from pyspark_boathouse.reader import TableReader


class FilteringReader(TableReader):
    """Also prunes by Spark's filters. Every filter stays with Spark too, which checks the rows again."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        schema = self.options.open().schema
        self.where = [e for f in filters if (e := expression(f, schema)) is not None]
        yield from filters
