"""Views of REST catalogs. PyIceberg's client lists, loads and drops them; what it lacks is sent through its session, in
the requests of the REST catalog's specification, and what it would leave out of a document is read from the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote

import orjson

from boathouse.bits import system
from boathouse.bits.library import library_version
from boathouse.iceberg.catalogs.view_stores import Json, Parts
from boathouse.iceberg.metadata.view_changes import check_properties, new_schema, new_version
from boathouse.table.view import ViewDefinition

_CONFLICT: Final = 409
_GONE: Final = 404


@dataclass(frozen=True, slots=True)
class RestViews:
    """See `ViewStore`."""

    client: Any

    def names(self, namespace: Parts) -> Sequence[Parts]:
        return [tuple(v) for v in self.client.list_views(namespace)]

    def load(self, parts: Parts) -> tuple[Json, Any]:
        found = self._sent("get", self._of(parts), None, {_GONE: "NoSuchViewError"})
        return found["metadata"], None

    def create(
        self, parts: Parts, definition: ViewDefinition, place: str | None, properties: Mapping[str, str]
    ) -> Json:
        check_properties(properties)
        now = system.current().now_ms()
        body = {
            "name": parts[-1], "schema": new_schema(definition, 0), "properties": dict(properties),
            "view-version": new_version(definition, 1, 0, now, library_version()),
            **({} if place is None else {"location": place}),
        }  # fmt: skip
        errors = {_GONE: "NoSuchNamespaceError", _CONFLICT: "ViewAlreadyExistsError"}
        return self._sent("post", f"{self._space(parts)}/views", body, errors)["metadata"]

    def commit(self, parts: Parts, document: Json, token: Any, updates: Sequence[Json]) -> Json | None:
        named = {"namespace": list(parts[:-1]), "name": parts[-1]}
        required = [{"type": "assert-view-uuid", "uuid": document["view-uuid"]}]
        body = {"identifier": named, "requirements": required, "updates": list(updates)}
        errors = {_GONE: "NoSuchViewError", _CONFLICT: "CommitFailedException"}
        try:
            return self._sent("post", self._of(parts), body, errors)["metadata"]
        except import_module("pyiceberg.exceptions").CommitFailedException:
            return None

    def drop(self, parts: Parts) -> None:
        self._offered()
        self.client.drop_view(parts)

    def rename(self, parts: Parts, to: Parts) -> None:
        source, target = ({"namespace": list(p[:-1]), "name": p[-1]} for p in (parts, to))
        errors = {_GONE: "NoSuchViewError", _CONFLICT: "ViewAlreadyExistsError"}
        self._sent("post", "views/rename", {"source": source, "destination": target}, errors)

    def _space(self, parts: Parts) -> str:
        return f"namespaces/{self.client._encode_namespace_path(parts[:-1])}"

    def _of(self, parts: Parts) -> str:
        return f"{self._space(parts)}/views/{quote(parts[-1], safe='')}"

    def _offered(self) -> None:
        """Raises NotImplementedError where the server says that it has no views."""
        rest = import_module("pyiceberg.catalog.rest")
        self.client._check_endpoint(rest.Capability.V1_LOAD_VIEW)

    def _sent(self, method: str, path: str, body: Json | None, errors: Mapping[int, str]) -> dict[str, Any]:
        """The answer; with a new token if that of the session has expired, as the client does for its own requests."""
        self._offered()
        try:
            return self._answer(method, path, body, errors)
        except _expired():
            self.client._refresh_token()
        return self._answer(method, path, body, errors)

    def _answer(self, method: str, path: str, body: Json | None, errors: Mapping[int, str]) -> dict[str, Any]:
        # The path is complete: braces in names are no places of the client's to fill in.
        url = self.client.url("{path}", path=path)
        response = self.client._session.request(method, url, data=None if body is None else orjson.dumps(body))
        try:
            response.raise_for_status()
        except import_module("requests").HTTPError as error:
            kinds = import_module("pyiceberg.exceptions")
            known = {code: getattr(kinds, name) for code, name in errors.items()}
            import_module("pyiceberg.catalog.rest.response")._handle_non_200_response(error, known)
        found: dict[str, Any] = orjson.loads(response.content) if response.content else {}
        return found


def _expired() -> tuple[type[Exception], ...]:
    kinds = import_module("pyiceberg.exceptions")
    return kinds.AuthorizationExpiredError, kinds.UnauthorizedError
