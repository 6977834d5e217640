"""What clients of catalogs raise, as errors of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from boathouse.errors import (
    AlreadyExistsError,
    BoathouseError,
    InvalidArgumentError,
    MissingRequirementError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from boathouse.storage.options import scrub

GONE: Final = (
    "NoSuchTableError", "NoSuchIcebergTableError", "NoSuchNamespaceError", "NoSuchIdentifierError", "NoSuchViewError",
    "NoSuchPropertyException",
)  # fmt: skip
_OPTIONS: Final = (
    "NoSuchPropertyException", "NoSuchModuleError", "ArgumentError", "MissingSchema", "InvalidSchema", "InvalidURL",
)  # fmt: skip
"""Errors of a catalog's options."""
_NOT_ICEBERG: Final = ("NoSuchIcebergTableError", "NoSuchPropertyException")
_THERE: Final = (
    "TableAlreadyExistsError",
    "NamespaceAlreadyExistsError",
    "ViewAlreadyExistsError",
    "AlreadyExistsError",
)
_NOT_EMPTY: Final = ("NamespaceNotEmptyError",)


@contextmanager
def wrong_options(name: str, secrets: Sequence[str]) -> Iterator[None]:
    """What a client says of options that describe no catalog, as InvalidArgumentError. Errors of requests are values
    too, and of the network."""
    try:
        yield
    except Exception as error:
        kind = type(error).__name__
        if not isinstance(error, ValueError | TypeError | KeyError) and kind not in _OPTIONS:
            raise
        if isinstance(error, OSError) and kind not in _OPTIONS:
            raise
        raise InvalidArgumentError(
            f"these options do not describe a catalog ({scrub(f'{kind}: {error}', secrets)})",
            where=name,
            advice="pass type= (rest, sql, hive, glue) and what it needs, such as uri=, as PyIceberg names them",
        ) from None


@contextmanager
def catalog_errors(where: str, secrets: Sequence[str]) -> Iterator[None]:
    """A client's errors as ours, without the values of secrets."""
    try:
        yield
    except BoathouseError:
        raise
    except Exception as error:
        kind = type(error).__name__
        text = scrub(f"{kind}: {error}", secrets)
        if kind == "NotInstalledError":
            raise MissingRequirementError(
                f"PyIceberg's client of this catalog needs more than is installed: {scrub(str(error), secrets)}",
                where=where,
                advice='pip install PyIceberg with the extra of your catalog, such as "pyiceberg[hive,glue]"',
            ) from None
        if isinstance(error, NotImplementedError):
            raise UnsupportedFeatureError(
                f"PyIceberg's client of this catalog does not offer this ({text})", where=where
            ) from None
        if kind in _NOT_ICEBERG:
            raise TableNotFoundError(
                f"the catalog does not have it as an Iceberg table ({text})",
                where=where,
                advice="open a table of another format by its path",
            ) from None
        if kind in _THERE:
            raise AlreadyExistsError(
                f"the catalog has it already ({text})", where=where, advice="choose another name, or drop what is there"
            ) from None
        if kind in _NOT_EMPTY:
            raise InvalidArgumentError(
                f"the namespace is not empty ({text})", where=where, advice="drop what is in it first"
            ) from None
        if kind in GONE:
            raise TableNotFoundError(
                f"the catalog does not have it ({text})", where=where, advice="list the tables of the catalog"
            ) from None
        raise StorageError(f"the catalog failed: {text}", where=where) from None
