"""Which tables a manifest store is for."""

from __future__ import annotations

from boathouse import registry
from boathouse.errors import InvalidArgumentError
from boathouse.storage import Stores
from boathouse.table.location import Location


def check_manifest_store(format: str, location: Location, stores: Stores) -> None:
    """Raises InvalidArgumentError for a table of another format than Lance, whose writers would not ask the store."""
    named = location.manifests or stores.options.get("manifest_store")
    if named is not None and format != "lance":
        raise InvalidArgumentError(
            f"the manifest store {named} is for Lance tables, and this is {registry.signs(format).title}",
            where=str(location),
            advice="leave it out" if location.manifests is None else f"write {location.uri}",
        )
