"""URIs: one canonical spelling of every location, and operations on it.

Canonical URIs are raw: nothing in them is percent-encoded and nothing is decoded. `file:///tmp/a b#c%20d` names
the file `/tmp/a b#c%20d`, and `s3://bucket/x%20y` the key `x%20y`; a user's `file:/a%20b` is taken literally too. A
format whose metadata holds encoded paths (Delta) decodes them once, before it calls this module.

    local disk    file:///absolute/path        from paths, file:/x, file:///x, file://localhost/x
    S3            s3://bucket/key              from s3a, s3n
    GCS           gs://bucket/key              from gcs
    Azure         abfss://container@account.dfs.core.windows.net/key    from abfs, wasb(s), az with an account
                  az://container/key           where the account comes from the options
    memory        memory://name/key            one store per name and process
"""

from __future__ import annotations

import os
import posixpath
import re

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):/")
_ALIASES = {
    "s3": "s3", "s3a": "s3", "s3n": "s3",
    "gs": "gs", "gcs": "gs",
    "az": "az", "azure": "az", "abfs": "az", "abfss": "az", "adl": "az", "wasb": "az", "wasbs": "az",
    "memory": "memory",
}  # fmt: skip
_AZURE_HOST = re.compile(r"(?P<account>[^./@]+)\.(?:dfs|blob)\.(?P<domain>core\.[a-z.]+|fabric\.microsoft\.com)")


def absolute(place: str | os.PathLike[str]) -> str:
    """The canonical URI of a path (relative to the working directory) or of a URI in any spelling.

    A `/` at the end is dropped. On the local disk `.`, `..` and doubled slashes are resolved lexically, links are not
    followed. InvalidArgumentError for a string that does not name a location, UnsupportedFeatureError for an unknown
    scheme.
    """
    text = os.fspath(place)
    if not text or "\0" in text:
        raise InvalidArgumentError("An empty path does not name a location.", where=text or None)
    if text.startswith("file:///"):  # the most frequent case
        return _local(text[7:])
    found = None if text[0] == "/" else _SCHEME.match(text)
    if found is None:
        return _local(os.path.abspath(text))
    scheme = found[1].lower()
    rest = text[len(scheme) + 1 :]
    if scheme == "file":
        return _file(rest, text)
    if scheme not in _ALIASES:
        raise UnsupportedFeatureError(
            f"Storage of scheme {scheme!r} is not offered.",
            where=text,
            advice="use a local path, or a URI of file, s3, gs, az, abfss or memory",
        )
    authority, _, key = rest[2:].partition("/")
    if not rest.startswith("//") or not authority:
        raise InvalidArgumentError(
            "The URI does not name a bucket.", where=text, advice=f"write {scheme}://bucket/path"
        )
    if _ALIASES[scheme] == "az":
        root = _azure_root(authority, text)
    else:
        root = f"{_ALIASES[scheme]}://{authority}"
    key = key.rstrip("/")
    return f"{root}/{key}" if key else root


def _local(path: str) -> str:
    return "file:///" + posixpath.normpath(path).lstrip("/")


def _file(rest: str, text: str) -> str:
    if rest.startswith("///") or not rest.startswith("//"):
        return _local(rest)
    host, _, path = rest[2:].partition("/")
    if host.lower() != "localhost":
        raise InvalidArgumentError(
            f"The file URI names the host {host!r}.", where=text, advice="write file:///absolute/path"
        )
    return _local("/" + path)


def _azure_root(authority: str, text: str) -> str:
    container, at, host = authority.partition("@")
    if not at:
        return f"az://{container}"
    found = _AZURE_HOST.fullmatch(host.lower())
    if not container or found is None:
        raise InvalidArgumentError(
            f"{authority!r} is not an Azure container and account.",
            where=text,
            advice="write abfss://container@account.dfs.core.windows.net/path, or az://container/path",
        )
    return f"abfss://{container}@{found['account']}.dfs.{found['domain']}"


def split(uri: str) -> tuple[str, str, str]:
    """(scheme, authority, key) of a canonical URI; the authority of the local disk is empty."""
    scheme, _, rest = uri.partition("://")
    authority, _, key = rest.partition("/")
    return scheme, authority, key


def join(uri: str, *relative: str) -> str:
    """`uri` with raw relative paths below it; empty parts are dropped. InvalidArgumentError for an absolute part."""
    for part in relative:
        if part.startswith("/"):
            raise InvalidArgumentError(f"{part!r} is not a relative path.", where=uri)
        if part:
            uri = f"{uri}{part}" if uri.endswith("/") else f"{uri}/{part}"
    return uri


def relative(uri: str, base: str) -> str | None:
    """The raw path of `uri` relative to the folder `base`: "" for `base` itself, None if `uri` is outside."""
    scheme, authority, key = split(absolute(uri))
    base_scheme, base_authority, base_key = split(absolute(base))
    if not _same_root((scheme, authority), (base_scheme, base_authority)):
        return None
    if key == base_key:
        return ""
    if not base_key:
        return key
    return key[len(base_key) + 1 :] if key.startswith(base_key + "/") else None


def same(a: str, b: str) -> bool:
    """Whether two URIs name the same location, however scheme and authority are spelled.

    Azure without an account equals Azure with one if container and key do.
    """
    return a == b or relative(a, b) == ""


def _same_root(a: tuple[str, str], b: tuple[str, str]) -> bool:
    azure = ("az", "abfss")
    if a == b:
        return True
    if a[0] not in azure or b[0] not in azure:
        return False
    (container, _, host), (other_container, _, other_host) = a[1].partition("@"), b[1].partition("@")
    return container == other_container and (not host or not other_host or host == other_host)


def foreign(uri: str, home: str) -> bool:
    """Whether a canonical URI names a store of another kind than `home` does, such as a local file for a table in a
    bucket.

    Another bucket of the same kind is not foreign: tables may have files there.
    """
    kinds = [{"abfss": "az"}.get(scheme, scheme) for scheme in (split(uri)[0], split(home)[0])]
    return kinds[0] != kinds[1]


def basename(uri: str) -> str:
    """The last segment of the key, "" for a root."""
    return split(uri.rstrip("/") if not uri.endswith("://") else uri)[2].rpartition("/")[2]


def parent(uri: str) -> str:
    """The folder that holds `uri`; a root is its own parent. Canonical."""
    scheme, authority, key = split(absolute(uri))
    folder = key.rpartition("/")[0]
    if scheme == "file":
        return "file:///" + folder
    root = f"{scheme}://{authority}"
    return f"{root}/{folder}" if folder else root
