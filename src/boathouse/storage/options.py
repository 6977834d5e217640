"""Credentials and settings of object stores: one vocabulary, and the option names of other libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from urllib.parse import quote

from boathouse.errors import InvalidArgumentError
from boathouse.storage.aliases import NAMES, OPTIONS, SECRETS, translate

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_CREDENTIALS_IN_TEXT = re.compile(
    r"""((?:[?&;\s"']|^)(?:sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|awsaccesskeyid)=)[^&\s"'<]+
      | ((?:bearer|basic|sharedkey|aws4-hmac-sha256)\s+)[^\s"'<].*
      | (://)[^/\s@"']+(?=@)(?!@[^/\s]*\.(?:dfs|blob)\.)""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True, repr=False)
class StorageOptions:
    """Frozen, picklable settings under our own names (see `aliases.OPTIONS`); secrets never show in the repr."""

    items: tuple[tuple[str, str], ...] = field(default=())

    @classmethod
    def of(cls, options: Mapping[str, object] | StorageOptions | None) -> StorageOptions:
        """Options from a mapping under any known name, whatever its case; None values are left out.

        InvalidArgumentError for an unknown name, with the nearest known one, for an invalid value, and for two names of
        one option with different values. No error shows a value.
        """
        if options is None:
            return cls()
        if isinstance(options, StorageOptions):
            return options
        if not isinstance(options, Mapping):
            raise InvalidArgumentError("The storage options are not a dict.", advice="pass a dict of names to values")
        found: dict[str, str] = {}
        given: dict[str, str] = {}
        for name, value in options.items():
            for ours, text in () if value is None else _translated(str(name), value):
                if found.get(ours, text) != text:
                    raise InvalidArgumentError(
                        f"The storage options {given[ours]!r} and {name!r} both set {ours!r}, to different values."
                    )
                found[ours], given[ours] = text, str(name)
        made = cls(tuple(sorted(found.items())))
        made._check()
        return made

    def get(self, name: str) -> str | None:
        for ours, value in self.items:
            if ours == name:
                return value
        return None

    def flag(self, name: str) -> bool | None:
        """A boolean option; None if it was not given. InvalidArgumentError."""
        text = self.get(name)
        if text is None:
            return None
        if text.strip().lower() not in ("true", "false", "1", "0", "yes", "no"):
            raise InvalidArgumentError(f"The storage option {name!r} is neither true nor false.")
        return text.strip().lower() in ("true", "1", "yes")

    def seconds(self, name: str) -> float | None:
        """A duration: a plain number is in seconds, otherwise with the unit ms, s, m or h. InvalidArgumentError."""
        text = self.get(name)
        if text is None:
            return None
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)?\s*", text)
        if found is None:
            raise InvalidArgumentError(f"The storage option {name!r} is not a duration.", advice="write 30s")
        return float(found[1]) * _UNITS[found[2] or "s"]

    def number(self, name: str) -> int | None:
        """A whole number; None if it was not given. InvalidArgumentError."""
        text = self.get(name)
        if text is not None and not text.strip().isdigit():
            raise InvalidArgumentError(f"The storage option {name!r} is not a whole number.")
        return None if text is None else int(text)

    def secrets(self) -> list[str]:
        """The values that must never be shown."""
        return [value for name, value in self.items if name in SECRETS and value]

    def _check(self) -> None:
        for name in ("allow_http", "virtual_hosted_style", "anonymous"):
            self.flag(name)
        for name in ("timeout", "connect_timeout"):
            self.seconds(name)
        self.number("max_retries")
        if self.get("conditional_put") not in (None, "etag", "disabled"):
            raise InvalidArgumentError("The storage option 'conditional_put' is neither 'etag' nor 'disabled'.")

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={'***' if k in SECRETS else repr(v)}" for k, v in self.items)
        return f"StorageOptions({shown})"


def scrub(text: str, secrets: Iterable[str]) -> str:
    """`text` with *** for every secret, plain or percent-encoded, and for anything that looks like a signature or a
    token."""
    spelled = {form for secret in secrets for form in (secret, quote(secret), quote(secret, safe=""))}
    for form in sorted(spelled, key=len, reverse=True):
        if len(form) > 2:
            text = text.replace(form, "***")
    return _CREDENTIALS_IN_TEXT.sub(lambda m: (m[1] or m[2] or m[3]) + "***", text)


def _translated(name: str, value: object) -> Iterable[tuple[str, str]]:
    found = translate(name, str(value).lower() if isinstance(value, bool) else str(value))
    if found is not None:
        return found
    plain = name.lower().removeprefix("spark.hadoop.")
    near = get_close_matches(plain, NAMES, n=1, cutoff=0.6) or get_close_matches(plain, OPTIONS, n=1, cutoff=0.0)
    raise InvalidArgumentError(f"Unknown storage option {name!r}.", advice=f"did you mean {near[0]!r}?")
