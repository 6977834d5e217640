"""Names of storage options: ours, and those of deltalake, lance and object_store, pyiceberg and Iceberg, Spark and
Hadoop. Matched ignoring case; a prefix `spark.hadoop.` is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError

OPTIONS: dict[str, str] = {
    "access_key_id": "S3 access key",
    "secret_access_key": "S3 secret key",
    "session_token": "S3 session token",
    "region": "S3 region",
    "endpoint": "URL of the service: compatible stores, private links, emulators",
    "allow_http": "true: the endpoint may be plain http (implied by an endpoint that begins with http://)",
    "virtual_hosted_style": "true: the bucket is part of the host name; false: of the path",
    "profile": "profile of ~/.aws/credentials and ~/.aws/config",
    "conditional_put": "S3: `etag` if the store is known to honour If-None-Match, `disabled` if not; else it is probed",
    "service_account_key": "GCS service account key, as JSON text",
    "service_account_path": "GCS service account key, as a file",
    "bearer_token": "OAuth2 access token, for GCS and Azure",
    "account_name": "Azure storage account",
    "account_key": "Azure account key",
    "sas_token": "Azure shared access signature",
    "client_id": "Azure service principal",
    "client_secret": "secret of the Azure service principal",
    "tenant_id": "tenant of the Azure service principal",
    "anonymous": "true: requests are not signed",
    "timeout": "of a whole request: seconds, or text such as 30s",
    "connect_timeout": "of connecting: seconds, or text such as 5s",
    "max_retries": "how often a request that may be retried is retried",
    "proxy_url": "http proxy",
    "manifest_store": "Lance: where writers agree on versions, `sqlite:///PATH` or `dynamodb://TABLE`",
    "dynamodb_endpoint": "URL of DynamoDB, for a manifest store: private links, emulators",
}

SECRETS = frozenset(
    {"access_key_id", "secret_access_key", "session_token", "service_account_key", "bearer_token", "account_key",
     "sas_token", "client_secret", "proxy_url"}
)  # fmt: skip

_OBJECT_STORE = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "aws_token": "session_token",
    "aws_region": "region",
    "aws_default_region": "region",
    "default_region": "region",
    "aws_endpoint": "endpoint",
    "aws_endpoint_url": "endpoint",
    "aws_endpoint_url_s3": "endpoint",
    "endpoint_url": "endpoint",
    "aws_allow_http": "allow_http",
    "aws_virtual_hosted_style_request": "virtual_hosted_style",
    "virtual_hosted_style_request": "virtual_hosted_style",
    "aws_profile": "profile",
    "aws_skip_signature": "anonymous",
    "skip_signature": "anonymous",
    "aws_conditional_put": "conditional_put",
    "google_service_account": "service_account_path",
    "google_service_account_path": "service_account_path",
    "service_account": "service_account_path",
    "google_application_credentials": "service_account_path",
    "application_credentials": "service_account_path",
    "google_service_account_key": "service_account_key",
    "google_bearer_token": "bearer_token",
    "google_skip_signature": "anonymous",
    "google_base_url": "endpoint",
    "google_endpoint": "endpoint",
    "azure_account_name": "account_name",
    "azure_storage_account_name": "account_name",
    "azure_account_key": "account_key",
    "azure_storage_account_key": "account_key",
    "azure_storage_access_key": "account_key",
    "azure_storage_master_key": "account_key",
    "access_key": "account_key",
    "master_key": "account_key",
    "azure_sas_token": "sas_token",
    "azure_storage_sas_token": "sas_token",
    "azure_storage_sas_key": "sas_token",
    "azure_sas_key": "sas_token",
    "sas_key": "sas_token",
    "azure_client_id": "client_id",
    "azure_storage_client_id": "client_id",
    "azure_client_secret": "client_secret",
    "azure_storage_client_secret": "client_secret",
    "azure_tenant_id": "tenant_id",
    "azure_storage_tenant_id": "tenant_id",
    "azure_authority_id": "tenant_id",
    "azure_storage_authority_id": "tenant_id",
    "authority_id": "tenant_id",
    "azure_storage_token": "bearer_token",
    "azure_token": "bearer_token",
    "azure_endpoint": "endpoint",
    "azure_storage_endpoint": "endpoint",
    "azure_skip_signature": "anonymous",
}

_ICEBERG = {
    "s3.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "s3.session-token": "session_token",
    "s3.region": "region",
    "s3.endpoint": "endpoint",
    "s3.anonymous": "anonymous",
    "s3.profile-name": "profile",
    "s3.proxy-uri": "proxy_url",
    "s3.connect-timeout": "connect_timeout",
    "s3.request-timeout": "timeout",
    "s3.force-virtual-addressing": "virtual_hosted_style",
    "client.access-key-id": "access_key_id",
    "client.secret-access-key": "secret_access_key",
    "client.session-token": "session_token",
    "client.region": "region",
    "client.profile-name": "profile",
    "gcs.oauth2.token": "bearer_token",
    "gcs.service.host": "endpoint",
    "gcs.endpoint": "endpoint",
    "adls.account-name": "account_name",
    "adls.account-key": "account_key",
    "adls.sas-token": "sas_token",
    "adls.tenant-id": "tenant_id",
    "adls.client-id": "client_id",
    "adls.client-secret": "client_secret",
    "adls.token": "bearer_token",
    "adls.auth.shared-key.account.name": "account_name",
    "adls.auth.shared-key.account.key": "account_key",
}

_HADOOP = {
    "fs.s3a.access.key": "access_key_id",
    "fs.s3a.secret.key": "secret_access_key",
    "fs.s3a.session.token": "session_token",
    "fs.s3a.endpoint": "endpoint",
    "fs.s3a.endpoint.region": "region",
    "fs.s3a.attempts.maximum": "max_retries",
    "fs.gs.auth.service.account.json.keyfile": "service_account_path",
    "google.cloud.auth.service.account.json.keyfile": "service_account_path",
    "fs.azure.account.key": "account_key",
    "fs.azure.sas.fixed.token": "sas_token",
    "fs.azure.account.oauth2.client.id": "client_id",
    "fs.azure.account.oauth2.client.secret": "client_secret",
}

_FSSPEC = {
    "key": "access_key_id",
    "secret": "secret_access_key",
    "token": "session_token",
    "anon": "anonymous",
}

ALIASES: dict[str, str] = {**_OBJECT_STORE, **_ICEBERG, **_HADOOP, **_FSSPEC}

# Known, but without effect here: boathouse never renames, and chooses the signing method from the given credentials.
IGNORED = frozenset(
    {"aws_s3_allow_unsafe_rename", "allow_unsafe_rename", "fs.s3a.impl", "fs.gs.impl", "fs.abfs.impl", "fs.abfss.impl",
     "fs.azure.account.auth.type", "fs.azure.account.oauth.provider.type", "fs.gs.auth.type", "gcs.project-id",
     "google.cloud.auth.service.account.enable", "fs.gs.project.id", "py-io-impl", "io-impl"}
)  # fmt: skip

_REFUSED = {
    "aws_s3_locking_provider": "a lock in DynamoDB beside the table",
    "delta_dynamo_table_name": "a lock in DynamoDB beside the table",
    "s3.role-arn": "assuming a role",
    "client.role-arn": "assuming a role",
    "aws_role_arn": "assuming a role",
}

Pairs = Iterable[tuple[str, str]]
_ACCOUNT = r"\.(?P<account>[^.]+)\.(?:dfs|blob)\.[a-z.]+"


def translate(name: str, value: str) -> Pairs | None:
    """The settings, under our names, of an option given as `name`; None if the name is unknown.

    UnsupportedFeatureError for an option that is known but not offered, InvalidArgumentError for an invalid value.
    """
    lowered = name.lower().removeprefix("spark.hadoop.")
    if lowered in OPTIONS:
        return [(lowered, value)]
    if lowered in ALIASES:
        return [(ALIASES[lowered], value)]
    if lowered in _COMPUTED:
        return _COMPUTED[lowered](value)
    if lowered in IGNORED:
        return []
    if lowered in _REFUSED:
        raise UnsupportedFeatureError(
            f"The storage option {name!r} asks for {_REFUSED[lowered]}, which is not offered."
        )
    return _of_account(lowered, value)


def _of_account(name: str, value: str) -> Pairs | None:
    """Options that name an Azure account, or an account and a container, in their key."""
    for pattern, option in _PER_ACCOUNT:
        found = pattern.fullmatch(name)
        if found is not None:
            return [("account_name", found["account"]), *([(option, value)] if option in OPTIONS else [])]
    found = _TOKEN_URL.fullmatch(name)
    if found is not None:
        account = [("account_name", found["account"])] if found["account"] else []
        return [*account, ("tenant_id", _tenant(value))]
    return None


_PER_ACCOUNT = [
    (re.compile(r"fs\.azure\.account\.key" + _ACCOUNT), "account_key"),
    (re.compile(r"fs\.azure\.sas\.fixed\.token" + _ACCOUNT), "sas_token"),
    (re.compile(r"fs\.azure\.sas\.[^.]+" + _ACCOUNT), "sas_token"),
    (re.compile(r"fs\.azure\.account\.oauth2\.client\.id" + _ACCOUNT), "client_id"),
    (re.compile(r"fs\.azure\.account\.oauth2\.client\.secret" + _ACCOUNT), "client_secret"),
    (re.compile(r"fs\.azure\.account\.(?:auth\.type|oauth\.provider\.type)" + _ACCOUNT), ""),
    (re.compile(r"adls\.sas-token" + _ACCOUNT), "sas_token"),
    (re.compile(r"adls\.sas-token\.(?P<account>[^.]+)"), "sas_token"),
]
_TOKEN_URL = re.compile(r"fs\.azure\.account\.oauth2\.client\.endpoint(?:" + _ACCOUNT + ")?")


def _tenant(url: str) -> str:
    found = re.search(r"//[^/]+/([^/]+)/oauth2", url)
    if found is None:
        raise InvalidArgumentError("The OAuth2 client endpoint is not https://login.../<tenant>/oauth2/token.")
    return found[1]


def _not(option: str) -> Callable[[str], Pairs]:
    return lambda value: [(option, "false" if value.strip().lower() == "true" else "true")]


def _milliseconds(option: str) -> Callable[[str], Pairs]:
    return lambda value: [(option, f"{value}ms" if value.strip().isdigit() else value)]


def _credentials_provider(value: str) -> Pairs:
    return [("anonymous", "true")] if "anonymous" in value.lower() else []


def _connection_string(value: str) -> Pairs:
    names = {
        "accountname": "account_name",
        "accountkey": "account_key",
        "sharedaccesssignature": "sas_token",
        "blobendpoint": "endpoint",
    }
    for part in value.split(";"):
        name, _, text = part.partition("=")
        if name.strip().lower() in names:
            yield names[name.strip().lower()], text


_COMPUTED: dict[str, Callable[[str], Pairs]] = {
    "fs.s3a.path.style.access": _not("virtual_hosted_style"),
    "s3.path-style-access": _not("virtual_hosted_style"),
    "fs.s3a.connection.ssl.enabled": _not("allow_http"),
    "fs.s3a.connection.timeout": _milliseconds("timeout"),
    "fs.s3a.connection.establish.timeout": _milliseconds("connect_timeout"),
    "fs.s3a.aws.credentials.provider": _credentials_provider,
    "anon": lambda value: [("anonymous", value)],
    "adls.connection-string": _connection_string,
    "azure_storage_connection_string": _connection_string,
}

NAMES: frozenset[str] = frozenset({*OPTIONS, *ALIASES, *_COMPUTED})
