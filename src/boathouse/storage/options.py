"""Credentials and settings of object stores: one vocabulary, and the names that users bring from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from boathouse.errors import InvalidArgumentError
from boathouse.storage.aliases import OPTIONS, SECRETS, canonical_name


@dataclass(frozen=True, slots=True, repr=False)
class StorageOptions:
    """Frozen, picklable settings under our own names (see `aliases.OPTIONS`); secrets never show in the repr."""

    items: tuple[tuple[str, str], ...] = field(default=())

    @classmethod
    def of(cls, options: Mapping[str, str] | StorageOptions | None) -> StorageOptions:
        """Options from a mapping under any known name, whatever its case. InvalidArgumentError for an unknown name,
        naming the nearest, and for two names of one option that differ in value."""
        if options is None:
            return cls()
        if isinstance(options, StorageOptions):
            return options
        found: dict[str, str] = {}
        given: dict[str, str] = {}
        for name, value in options.items():
            for ours, text in _translate(str(name), value):
                if found.get(ours, text) != text:
                    raise InvalidArgumentError(
                        f"The storage options {given[ours]!r} and {name!r} both set {ours!r}, to different values."
                    )
                found[ours], given[ours] = text, name
        return cls(tuple(sorted(found.items())))

    def get(self, name: str, default: str | None = None) -> str | None:
        return dict(self.items).get(name, default)

    def flag(self, name: str) -> bool:
        """Whether a yes-or-no option is on; off if it was not given. InvalidArgumentError."""
        text = (self.get(name) or "false").strip().lower()
        if text not in ("true", "false", "1", "0", "yes", "no"):
            raise InvalidArgumentError(f"The storage option {name!r} is neither true nor false.")
        return text in ("true", "1", "yes")

    def secrets(self) -> Iterator[str]:
        """The values that must never be shown, longest first."""
        return iter(sorted({v for k, v in self.items if k in SECRETS and v}, key=len, reverse=True))

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={'***' if k in SECRETS else repr(v)}" for k, v in self.items)
        return f"StorageOptions({shown})"


def _translate(name: str, value: object) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    text = str(value).lower() if isinstance(value, bool) else str(value)
    translated = canonical_name(name)
    if translated is None:
        near = get_close_matches(name.lower().replace(".", "_").replace("-", "_"), OPTIONS, n=1, cutoff=0.0)
        raise InvalidArgumentError(
            f"Unknown storage option {name!r}.", advice=f"did you mean {near[0]!r}?" if near else None
        )
    yield from translated(text)
