"""Names of storage options: ours, and those of deltalake, lance and object_store, pyiceberg, Spark and Hadoop."""

from __future__ import annotations

from collections.abc import Callable, Iterable

OPTIONS: dict[str, str] = {
    "access_key_id": "S3 access key",
    "secret_access_key": "S3 secret key",
    "session_token": "S3 session token",
    "region": "S3 region",
    "endpoint": "URL of the service, for S3, GCS or Azure stand-ins and compatible stores",
    "allow_http": "true: the endpoint may be plain http",
    "virtual_hosted_style": "true: the bucket is part of the host name; false: of the path",
    "profile": "profile of ~/.aws/credentials and ~/.aws/config",
    "conditional_put": "etag: the S3 store is known to honour If-None-Match; disabled: it does not",
    "service_account_key": "GCS service account key, as JSON text",
    "service_account_path": "GCS service account key, as a file",
    "bearer_token": "OAuth2 token, for GCS and Azure",
    "account_name": "Azure storage account",
    "account_key": "Azure account key",
    "sas_token": "Azure shared access signature",
    "client_id": "Azure service principal",
    "client_secret": "Azure service principal's secret",
    "tenant_id": "Azure tenant of the service principal",
    "anonymous": "true: requests are not signed",
    "timeout": "of a whole request: seconds, or text such as 30s",
    "connect_timeout": "of connecting: seconds, or text such as 5s",
    "max_retries": "of a request that may be repeated",
    "proxy_url": "http proxy",
}

SECRETS = frozenset(
    {"access_key_id", "secret_access_key", "session_token", "service_account_key", "bearer_token", "account_key",
     "sas_token", "client_secret", "proxy_url"}
)  # fmt: skip

Translation = Callable[[str], Iterable[tuple[str, str]]]


def _plain(ours: str) -> Translation:
    return lambda text: [(ours, text)]


def canonical_name(name: str) -> Translation | None:
    """How the value given under `name` becomes options of ours; None for an unknown name."""
    lowered = name.lower()
    return _plain(lowered) if lowered in OPTIONS else None
