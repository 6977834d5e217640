"""A reader that accepts Spark's filters; needs PySpark 4.1 or later."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.datasource import Filter

from pyspark_boathouse.filters import expression
from pyspark_boathouse.reader import TableReader
from pyspark_boathouse.told_errors import told_plainly


@told_plainly
class FilteringReader(TableReader):
    """Also prunes by Spark's filters. Spark keeps every filter too, and checks the rows again."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        schema = self.options.open().schema
        self.where = [e for f in filters if (e := expression(f, schema)) is not None]
        yield from filters
