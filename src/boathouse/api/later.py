"""Methods of a table that are not offered yet: calling one raises an error with its name."""

from __future__ import annotations

from typing import Any, NoReturn

from boathouse.api.arguments import located
from boathouse.errors import UnsupportedFeatureError


class Later:
    """The methods that the README lists as not offered yet. A method that is implemented is removed from this class."""

    @property
    def uri(self) -> str:
        raise NotImplementedError

    @located
    def rename_column(self, *args: Any, **options: Any) -> NoReturn:
        """Not offered yet: raises UnsupportedFeatureError."""
        raise _not_yet("rename_column", "overwrite(rows, overwrite_schema=True) rewrites the table with other columns")

    @located
    def drop_column(self, *args: Any, **options: Any) -> NoReturn:
        """Not offered yet: raises UnsupportedFeatureError."""
        raise _not_yet("drop_column", "overwrite(rows, overwrite_schema=True) rewrites the table with other columns")


def _not_yet(name: str, advice: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"{name} is not offered yet", advice=advice)
