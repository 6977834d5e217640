"""Endpoint, region and credentials of S3, resolved from options, environment and the profiles of the AWS tools; used by
the storage and by Arrow's own S3 file system alike.
"""

from __future__ import annotations

import configparser
import os
from dataclasses import dataclass
from pathlib import Path

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.storage.options import StorageOptions

_DELEGATED = ("role_arn", "credential_process", "sso_session", "sso_account_id", "web_identity_token_file")


@dataclass(frozen=True, slots=True, repr=False)
class S3Settings:
    """None where the client finds the value itself (instance roles, web identity)."""

    access_key_id: str | None
    secret_access_key: str | None
    session_token: str | None
    region: str | None
    endpoint: str | None
    allow_http: bool
    virtual_hosted_style: bool
    anonymous: bool

    @classmethod
    def resolve(cls, options: StorageOptions) -> S3Settings:
        """Options first, then a named profile, then the environment, then the default profile.

        InvalidArgumentError for a key without its secret or a profile that does not exist; UnsupportedFeatureError
        for a profile that has no keys of its own.
        """
        anonymous = options.flag("anonymous") or False
        key, secret = options.get("access_key_id"), options.get("secret_access_key")
        if (key is None) != (secret is None):
            raise InvalidArgumentError("access_key_id and secret_access_key must be given together.")
        token = options.get("session_token")
        region = options.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if not anonymous and (key is None or region is None):
            profile = _profile(options.get("profile"))
            if key is None and "aws_access_key_id" in profile:
                key, secret = profile["aws_access_key_id"], profile.get("aws_secret_access_key")
                token = profile.get("aws_session_token")
            if options.get("profile") and not options.get("region"):
                region = profile.get("region") or region
            region = region or profile.get("region")
        endpoint, allow_http = _endpoint(options)
        virtual = options.flag("virtual_hosted_style") or False
        return cls(key, secret, token, region, endpoint, allow_http, virtual, anonymous)

    def __repr__(self) -> str:
        return f"S3Settings(region={self.region!r}, endpoint={self.endpoint!r})"


def _endpoint(options: StorageOptions) -> tuple[str | None, bool]:
    env = os.environ
    found = options.get("endpoint") or env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL")
    allowed = options.flag("allow_http")
    if found is None:
        return None, bool(allowed)
    if "://" not in found:
        found = f"{'http' if allowed else 'https'}://{found}"
    plain = found.lower().startswith("http://")
    if plain and allowed is False:
        raise InvalidArgumentError("The endpoint is plain http, which allow_http=false forbids.")
    return found.rstrip("/"), plain or bool(allowed)


def _profile(asked: str | None) -> dict[str, str]:
    """Values of the named profile, else of AWS_PROFILE or `default`, unless the environment holds keys."""
    env = os.environ
    if asked is None and env.get("AWS_ACCESS_KEY_ID"):
        return {}
    name = asked or env.get("AWS_PROFILE") or "default"
    home = Path.home() / ".aws"
    credentials = _section(Path(env.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials"), name)
    section = name if name == "default" else f"profile {name}"
    found = {**_section(Path(env.get("AWS_CONFIG_FILE") or home / "config"), section), **credentials}
    if asked is not None and not found:
        raise InvalidArgumentError(f"The AWS profile {asked!r} does not exist.")
    if asked is not None and "aws_access_key_id" not in found:
        how = next((name for name in _DELEGATED if name in found), "no keys")
        raise UnsupportedFeatureError(
            f"The AWS profile {asked!r} holds no keys of its own ({how}).",
            advice="give access_key_id, secret_access_key and session_token",
        )
    return found


def _section(path: Path, name: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, configparser.Error, UnicodeDecodeError):
        return {}
    return dict(parser.items(name)) if parser.has_section(name) else {}
