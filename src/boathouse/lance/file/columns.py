"""Columns of files of 2.1 and 2.2: which pages hold the rows, leaf by leaf, assembled to fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Protocol

import numpy as np
import pyarrow as pa

from boathouse.errors import BoathouseError, UnsupportedFeatureError
from boathouse.lance.file import messages as m
from boathouse.lance.file.assemble import assemble, merge
from boathouse.lance.file.container import DESCRIPTIONS, Container, corrupt
from boathouse.lance.file.full_zip import FullZipPage
from boathouse.lance.file.pages import BlobPage, ConstantPage, MiniBlockPage, PageReader, Wanted
from boathouse.lance.file.schema import Node, arrow_type
from boathouse.lance.file.segments import Broken, NotRead

_BROKEN = (Broken, LookupError, ValueError, ArithmeticError, MemoryError, RecursionError, pa.ArrowException)
_ADVICE = "read other columns only, or rewrite the table with version 2.2"


@contextmanager
def naming(uri: str, place: str) -> Iterator[None]:
    """Turns decoder errors into public errors that name the file and the location in it."""
    try:
        yield
    except NotRead as error:
        raise UnsupportedFeatureError(f"{place}: {error}", where=uri, advice=_ADVICE) from error
    except BoathouseError as error:
        if error.where is None:
            raise type(error)(f"{place}: {error.message}", where=uri, advice=error.advice) from error
        raise
    except _BROKEN as error:
        raise corrupt(error, uri, place) from error


def paths(node: Node) -> Iterator[tuple[Node, ...]]:
    """The paths from the node to each of its leaves."""
    if node.is_leaf:
        yield (node,)
        return
    for child in node.children:
        for path in paths(child):
            yield (node, *path)


def split(wanted: Wanted, firsts: Sequence[int], stops: Sequence[int]) -> Iterator[tuple[int, Wanted]]:
    """(page, rows of the page) for rows of the column, with the first row of each page and the one after its last."""
    for i, (first, stop) in enumerate(zip(firsts, stops)):
        if isinstance(wanted, range):
            part: Wanted = range(max(wanted.start, first) - first, min(wanted.stop, stop) - first)
        else:
            a, b = np.searchsorted(wanted, (first, stop))
            part = wanted[a:b] - first
        if len(part):
            yield i, part


@lru_cache(DESCRIPTIONS)
def _layout(encoded: bytes, where: str) -> m.PageLayout:
    return m.PageLayout.decode(encoded, where=where)


class ColumnReader:
    """One column of the file."""

    def __init__(self, container: Container, index: int, path: tuple[Node, ...], rows: int) -> None:
        self._container = container
        self.path = path
        self.place = f"column {index} (`{'.'.join(n.name for n in path)}`)"
        with naming(container.source.uri, self.place):
            metadata = container.column(index)
            self._check_encoding(metadata)
            self._pages = metadata.pages
            self._unit = 1
            for node in path[:-1]:
                if node.logical_type.startswith("fixed_size_list:"):
                    self._unit *= int(node.logical_type.rsplit(":", 1)[1])
            counts = [page.length // self._unit for page in self._pages]
            if self._unit * sum(counts) != sum(page.length for page in self._pages) or sum(counts) != rows:
                raise Broken(f"pages of {sum(counts)} rows in a file of {rows}")
        ends = np.cumsum(np.array(counts, np.int64)).tolist()
        self._firsts = [end - count for end, count in zip(ends, counts)]
        self._stops = ends
        self._readers: dict[int, PageReader] = {}

    def _check_encoding(self, metadata: m.ColumnMetadata) -> None:
        if metadata.encoding is None or metadata.encoding.none is not None:
            return
        held = self._container.encoding(metadata.encoding)
        encoding = m.ColumnEncoding.decode(held.value, where=self._container.source.uri)
        if encoding.zone_index is not None or encoding.blob is not None:
            raise NotRead("a column with zone maps or 2.0 blobs")

    def _reader(self, i: int) -> PageReader:
        if i not in self._readers:
            page = self._pages[i]
            held = self._container.encoding(page.encoding)
            if not held.type_url.endswith("encodings21.PageLayout"):
                raise NotRead(f"a page of {held.type_url}")
            layout = _layout(held.value, self._container.source.uri)
            self._readers[i] = self._open(page, layout)
        return self._readers[i]

    def _open(self, page: m.Page, layout: m.PageLayout) -> PageReader:
        source, kind = self._container.source, arrow_type(self.path[-1])
        if layout.mini_block is not None:
            return MiniBlockPage(source, page, layout.mini_block, kind, self._unit)
        if layout.constant is not None:
            return ConstantPage(source, page, layout.constant, kind, self._unit)
        if layout.full_zip is not None:
            return FullZipPage(source, page, layout.full_zip, kind, self._unit)
        if layout.blob is not None and layout.blob.inner_layout is not None:
            return BlobPage(self._open(page, layout.blob.inner_layout), layout.blob.layers)
        raise NotRead("a page layout other than mini-block, full-zip and constant")

    def read(self, wanted: Wanted) -> list[pa.Array]:
        """The rows, one array per page."""
        out = []
        for i, part in split(wanted, self._firsts, self._stops):
            with naming(self._container.source.uri, f"{self.place}, page {i}"):
                array = assemble(self.path, self._reader(i).read(part))
                if len(array) != len(part):
                    raise Broken(f"{len(array)} rows where {len(part)} are expected")
                out.append(array)
        return out

    @property
    def size(self) -> int:
        """The size of the pages in bytes."""
        return sum(sum(page.buffer_sizes) for page in self._pages)


class FieldReader(Protocol):
    """The reader of fields of one file version."""

    def read(self, node: Node, wanted: Wanted) -> list[pa.Array]: ...
    def size(self, node: Node) -> int: ...


class StructuralReader:
    """Fields of a file of 2.1 or 2.2. `columns` maps leaf fields to their columns."""

    def __init__(self, container: Container, columns: Mapping[int, int], rows: int) -> None:
        self._container, self._columns, self._rows = container, columns, rows
        self._readers: dict[int, ColumnReader] = {}

    def _reader(self, path: tuple[Node, ...]) -> ColumnReader | None:
        index = self._columns.get(path[-1].id)
        if index is None:
            return None
        known = self._readers.get(path[-1].id)
        if known is None or known.path != path:
            known = self._readers[path[-1].id] = ColumnReader(self._container, index, path, self._rows)
        return known

    def read(self, node: Node, wanted: Wanted) -> list[pa.Array]:
        """The rows of a field; null if the file has none of its leaves."""
        found = {}
        leaves = list(paths(node))
        if any(not _is_bare(path) for path in leaves):  # pylance writes no levels for an empty struct inside a struct
            leaves = [path for path in leaves if not _is_bare(path)]
        for path in leaves:
            reader = self._reader(path)
            if reader is not None:
                found[path[-1].id] = reader.read(wanted)
        if not found:
            return [pa.nulls(len(wanted), arrow_type(node))]
        if len(found) == len(list(node.leaves())) == 1 and not any(n.logical_type == "map" for n in leaves[0]):
            return found[leaves[0][-1].id]
        with naming(self._container.source.uri, f"field `{node.name}`"):
            whole = {i: _concat(arrays) for i, arrays in found.items()}
            return [merge(node, whole, len(wanted))] if len(wanted) else []

    def size(self, node: Node) -> int:
        readers = [self._reader(path) for path in paths(node)]
        return sum(reader.size for reader in readers if reader is not None)


def _is_bare(path: tuple[Node, ...]) -> bool:
    """Whether a path ends in a struct without fields, below another field."""
    return len(path) > 1 and path[-1].logical_type == "struct" and not path[-1].children


def _concat(arrays: list[pa.Array]) -> pa.Array:
    if len(arrays) < 2:
        return arrays[0] if arrays else pa.nulls(0)
    if pa.types.is_dictionary(arrays[0].type):
        return pa.chunked_array(arrays).unify_dictionaries().combine_chunks()
    return pa.concat_arrays(arrays)
