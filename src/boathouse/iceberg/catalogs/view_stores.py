"""What keeps the views of a catalog: an interface that not every catalog has in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from boathouse.table.view import ViewDefinition

Json = Mapping[str, Any]
Parts = tuple[str, ...]


class ViewStore(Protocol):
    """Methods that the catalog lacks raise NotImplementedError, the others what its client raises."""

    def names(self, namespace: Parts) -> Sequence[Parts]:
        """The views of a namespace."""

    def load(self, parts: Parts) -> tuple[Json, Any]:
        """The document of a view, and the token that `commit` follows."""

    def create(
        self, parts: Parts, definition: ViewDefinition, place: str | None, properties: Mapping[str, str]
    ) -> Json:
        """The document of a new view."""

    def commit(self, parts: Parts, document: Json, token: Any, updates: Sequence[Json]) -> Json | None:
        """The document after the updates; None if somebody else changed the view first."""

    def drop(self, parts: Parts) -> None:
        """The view's files stay."""

    def rename(self, parts: Parts, to: Parts) -> None:
        """Its documents stay where they are."""


@dataclass(frozen=True, slots=True)
class ClientViews:
    """Those of a client that at most lists, loads and drops them."""

    client: Any

    def names(self, namespace: Parts) -> Sequence[Parts]:
        return [tuple(v) for v in self.client.list_views(namespace)]

    def load(self, parts: Parts) -> tuple[Json, Any]:
        return orjson.loads(self.client.load_view(parts).metadata.model_dump_json(by_alias=True)), None

    def create(
        self, parts: Parts, definition: ViewDefinition, place: str | None, properties: Mapping[str, str]
    ) -> Json:
        raise NotImplementedError

    def commit(self, parts: Parts, document: Json, token: Any, updates: Sequence[Json]) -> Json | None:
        raise NotImplementedError

    def drop(self, parts: Parts) -> None:
        self.client.drop_view(parts)

    def rename(self, parts: Parts, to: Parts) -> None:
        raise NotImplementedError
