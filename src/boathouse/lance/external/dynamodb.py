"""A manifest store in a DynamoDB table, with the items that pylance reads and writes: `base_uri` (S, hash key) and
`version` (N, range key), `path` (S), `committer` (S), `size` (N).

`base_uri` and `path` are keys in the bucket, which they do not name: each bucket needs a table of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from boathouse.bits.library import LIBRARY
from boathouse.errors import (
    CorruptTableError,
    InvalidArgumentError,
    MissingRequirementError,
    StorageError,
    UndecidedError,
)
from boathouse.lance.external.store import Entry
from boathouse.storage import StorageOptions, split
from boathouse.storage.aws import S3Settings
from boathouse.storage.external import DYNAMODB
from boathouse.storage.options import scrub

Item = Mapping[str, Mapping[str, str]]
_KEYS: Final = {("HASH", "base_uri", "S"), ("RANGE", "version", "N")}
_THROTTLED: Final = ("ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded")


@dataclass(frozen=True, slots=True)
class DynamoStore:
    """boto3 has its own retries, so a refused put may be the second try of one that took effect."""

    table: str
    client: Any = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, table: str, options: StorageOptions) -> DynamoStore:
        """Raises MissingRequirementError, InvalidArgumentError if there is no such table or its keys are others,
        StorageError."""
        store = cls(table, _client(options, S3Settings.resolve(options), table), tuple(options.secrets()))
        with store._errors():
            found = store.client.describe_table(TableName=table)["Table"]
        types = {a["AttributeName"]: a["AttributeType"] for a in found["AttributeDefinitions"]}
        keys = {(k["KeyType"], k["AttributeName"], types.get(k["AttributeName"])) for k in found["KeySchema"]}
        if keys != _KEYS:
            raise InvalidArgumentError(
                f"the table has the keys {', '.join(sorted(str(k[1]) for k in keys))}",
                where=store.name,
                advice="make one with the hash key base_uri (string) and the range key version (number)",
            )
        return store

    @property
    def name(self) -> str:
        return DYNAMODB + self.table

    def latest(self, base: str) -> Entry | None:
        items = next(self._query(base, ScanIndexForward=False, Limit=1), [])
        return self._entry(base, items[0]) if items else None

    def get(self, base: str, version: int) -> Entry | None:
        key = _key(base, version)
        with self._errors():
            item = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True).get("Item")
        return None if item is None else self._entry(base, item)

    def put_if_absent(self, base: str, entry: Entry) -> bool:
        return self._put(base, entry, "attribute_not_exists(base_uri) AND attribute_not_exists(version)")

    def put_if_exists(self, base: str, entry: Entry) -> bool:
        return self._put(base, entry, "attribute_exists(base_uri) AND attribute_exists(version)")

    def forget(self, base: str) -> None:
        for items in self._query(base):
            for item in items:
                with self._errors():
                    self.client.delete_item(TableName=self.table, Key={k: item[k] for k in ("base_uri", "version")})

    def _put(self, base: str, entry: Entry, condition: str) -> bool:
        item = {**_key(base, entry.version), "path": {"S": split(entry.uri)[2]}, "committer": {"S": LIBRARY}}
        if entry.size is not None:
            item["size"] = {"N": str(entry.size)}
        try:
            with self._errors():
                self.client.put_item(TableName=self.table, Item=item, ConditionExpression=condition)
        except _ConditionFailed:
            return False
        return True

    def _query(self, base: str, **how: Any) -> Iterator[list[Item]]:
        """Items of the table, page by page."""
        after: dict[str, Any] = {}
        while True:
            with self._errors():
                page = self.client.query(
                    TableName=self.table,
                    KeyConditionExpression="base_uri = :base",
                    ExpressionAttributeValues={":base": {"S": split(base)[2]}},
                    ConsistentRead=True,
                    **how,
                    **after,
                )
            yield page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            after = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _entry(self, base: str, item: Item) -> Entry:
        scheme, authority, _ = split(base)
        try:
            size = int(item["size"]["N"]) if "size" in item else None
            return Entry(int(item["version"]["N"]), f"{scheme}://{authority}/{item['path']['S']}", size)
        except (KeyError, ValueError) as error:
            raise CorruptTableError(
                f"an item of {base} without a version, a path or a size of the right type: {error!r}",
                where=self.name,
                advice="correct the item, or remove it if its version is in the folder of the table",
            ) from error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        exceptions = import_module("botocore.exceptions")
        try:
            yield
        except exceptions.ClientError as error:
            raise self._refused(error.response, str(error)) from error
        except (exceptions.NoCredentialsError, exceptions.ParamValidationError) as error:
            raise StorageError(f"the manifest store was not asked: {error}", where=self.name) from error
        except (exceptions.BotoCoreError, exceptions.HTTPClientError) as error:
            text = scrub(str(error), self.secrets)
            raise UndecidedError(f"the outcome of the request is unknown: {text}", where=self.name) from error

    def _refused(self, response: Mapping[str, Any], text: str) -> Exception:
        code = response.get("Error", {}).get("Code", "")
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        text = scrub(text, self.secrets)
        if code == "ConditionalCheckFailedException":
            return _ConditionFailed(text)
        if code == "ResourceNotFoundException":
            return InvalidArgumentError(
                "there is no such DynamoDB table",
                where=self.name,
                advice="check the name and the region; make it with the hash key base_uri (string) and the range key "
                "version (number)",
            )
        if status >= 500 or code in _THROTTLED:
            return UndecidedError(f"the outcome of the request is unknown: {text}", where=self.name)
        return StorageError(f"the manifest store refused the request: {text}", where=self.name)


class _ConditionFailed(Exception):
    """The condition of a put does not hold."""


def _key(base: str, version: int) -> dict[str, dict[str, str]]:
    return {"base_uri": {"S": split(base)[2]}, "version": {"N": str(version)}}


def _client(options: StorageOptions, settings: S3Settings, table: str) -> Any:
    """A client of DynamoDB with what is known of S3; its endpoint is another one."""
    try:
        boto3, config = import_module("boto3"), import_module("botocore.config")
    except ImportError as error:
        raise MissingRequirementError(
            "manifest stores in DynamoDB need boto3", where=DYNAMODB + table, advice='pip install "boathouse[dynamodb]"'
        ) from error
    given: dict[str, Any] = {
        "connect_timeout": options.seconds("connect_timeout"),
        "read_timeout": options.seconds("timeout"),
    }
    retries = options.number("max_retries")
    if retries is not None:
        given["retries"] = {"max_attempts": retries}
    try:
        return boto3.session.Session(
            aws_access_key_id=settings.access_key_id,
            aws_secret_access_key=settings.secret_access_key,
            aws_session_token=settings.session_token,
            region_name=settings.region,
        ).client(
            "dynamodb",
            endpoint_url=options.get("dynamodb_endpoint") or os.environ.get("DYNAMODB_ENDPOINT"),
            config=config.Config(**{k: v for k, v in given.items() if v is not None}),
        )
    except (import_module("botocore.exceptions").BotoCoreError, ValueError) as error:
        raise InvalidArgumentError(
            f"no client of DynamoDB: {error}",
            where=DYNAMODB + table,
            advice="check the storage options region and dynamodb_endpoint",
        ) from error
