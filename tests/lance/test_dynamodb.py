"""Manifest stores in DynamoDB: pylance and we commit to the same tables through the same one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

import boathouse as bh
from boathouse.errors import CorruptTableError, InvalidArgumentError, StorageError, UndecidedError, UnsafeStorageError
from boathouse.lance.external.dynamodb import DynamoStore
from boathouse.lance.external.store import Entry
from boathouse.lance.manifests.versions import manifest_name
from boathouse.storage import StorageOptions
from makers.stand_ins import s3_stand_in

from .test_manifest_store import ids, row

lance = pytest.importorskip("lance")


@pytest.fixture(scope="module")
def aws():
    pytest.importorskip("moto.server", reason="the fake S3 server needs moto[server]")
    with s3_stand_in() as server:
        yield server


@dataclass
class Place:
    """A table in a bucket, `key`, and a DynamoDB table."""

    aws: object
    bucket: str
    table: str
    key: str = "dir/t"

    @property
    def uri(self) -> str:
        return f"s3+ddb://{self.bucket}/{self.key.replace(' ', '%20')}?ddbTableName={self.table}"

    @property
    def options(self) -> dict[str, str]:
        return {**self.aws.options, "allow_http": "true", "dynamodb_endpoint": self.aws.endpoint}

    @property
    def store(self) -> DynamoStore:
        return DynamoStore.of(self.table, StorageOptions.of(self.options))

    @property
    def root(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    def open(self, **options):
        return bh.open(self.uri, storage_options=self.options, **options)

    def alone(self):
        return bh.open(self.root, storage_options=self.aws.options)

    def dataset(self):
        return lance.dataset(self.uri, storage_options=self.options)

    def pylance(self, data, **options):
        return lance.write_dataset(data, self.uri, storage_options=self.options, **options)

    def items(self) -> list[dict]:
        found = self.aws.client("dynamodb").scan(TableName=self.table)["Items"]
        return sorted(found, key=lambda i: (i["base_uri"]["S"], int(i["version"]["N"])))

    def unfinish(self, version: int, size: bool = True) -> str:
        """As a writer leaves it that dies before the copy; the key of the staged manifest."""
        s3, key = self.aws.client("s3"), f"{self.key}/_versions/{manifest_name(version, 'V2')}"
        staged = f"{key}-0b4e1b0c-6c53-4f39-9f39-5f0a3b0a8c11"
        s3.copy_object(Bucket=self.bucket, Key=staged, CopySource={"Bucket": self.bucket, "Key": key})
        s3.delete_object(Bucket=self.bucket, Key=key)
        entry = self.store.get(self.root, version)
        changed = replace(entry, uri=f"s3://{self.bucket}/{staged}", size=entry.size if size else None)
        assert self.store.put_if_exists(self.root, changed)
        return staged

    def manifests(self) -> set[str]:
        found = self.aws.client("s3").list_objects_v2(Bucket=self.bucket, Prefix=f"{self.key}/_versions/")
        return {o["Key"].rpartition("/")[2] for o in found["Contents"]}


@pytest.fixture
def place(aws) -> Place:
    return Place(aws, aws.bucket(), aws.commits_table())


@pytest.mark.spec("L-075", "L-080")
@pytest.mark.feature("external manifest store", format="lance")
def test_pylance_and_we_commit_in_turn(place):
    """Both see each other's commits, and write the same items but for their names."""
    place.key = "a b/t"
    bh.write(row(1), place.uri, format="lance", storage_options=place.options)
    place.pylance(row(2), mode="append")
    place.open().update({"a": "a + 10"}, where="a = 2")
    place.dataset().delete("a = 1")
    assert ids(place.open()) == ids(place.alone()) == place.dataset().to_table()["a"].to_pylist() == [12]
    check_items(place, {"a b/t": {1: "boathouse", 2: "lancedb", 3: "boathouse", 4: "lancedb"}})


def check_items(place, committers: dict[str, dict[int, str]]) -> None:
    """The store's items are these and no others, for manifests that are there."""
    s3, expected = place.aws.client("s3"), []
    for base, versions in committers.items():
        for version, committer in versions.items():
            path = f"{base}/_versions/{manifest_name(version, 'V2')}"
            size = s3.head_object(Bucket=place.bucket, Key=path)["ContentLength"]
            expected.append(
                {
                    "base_uri": {"S": base},
                    "version": {"N": str(version)},
                    "path": {"S": path},
                    "committer": {"S": committer},
                    "size": {"N": str(size)},
                }
            )
    assert place.items() == expected


@pytest.mark.slow
def test_branches_of_both(place):
    place.pylance(row(1))
    place.dataset().create_branch("theirs")
    place.open().refs.create_branch("ours")
    place.open(ref="theirs").append(row(4))
    place.dataset().checkout_version(("ours", None)).insert(row(5), storage_options=place.options)
    for ref, rows in (("theirs", [1, 4]), ("ours", [1, 5])):
        assert ids(place.open(ref=ref)) == rows
        assert sorted(place.dataset().checkout_version((ref, None)).to_table()["a"].to_pylist()) == rows
    ours, theirs = {1: "boathouse", 2: "lancedb"}, {1: "lancedb", 2: "boathouse"}
    check_items(place, {"dir/t": {1: "lancedb"}, "dir/t/tree/ours": ours, "dir/t/tree/theirs": theirs})
    place.open().clone(f"{place.root}-clone")
    clone = f"{place.root}-clone"
    assert lance.dataset(clone, storage_options=place.options).count_rows() == 1
    place.open().refs.drop_branch("ours")
    assert {i["base_uri"]["S"] for i in place.items()} == {"dir/t", "dir/t/tree/theirs"}


@pytest.mark.slow
@pytest.mark.spec("L-076", "L-079")
def test_each_finishes_what_the_other_left(place):
    place.pylance(row(1))
    place.pylance(row(2), mode="append")
    for expected, size in (([1, 2], True), ([1, 2, 3], False)):
        version = len(expected)
        staged = place.unfinish(version, size)
        assert ids(place.alone()) == expected[:-1]
        read = place.open() if size else place.dataset()
        assert ids(read if size else place.open()) == expected and ids(place.alone()) == expected
        assert sorted(place.dataset().to_table()["a"].to_pylist()) == expected
        assert staged.rpartition("/")[2] not in place.manifests()
        item = place.items()[-1]
        assert item["path"]["S"] == f"dir/t/_versions/{manifest_name(version, 'V2')}" and int(item["size"]["N"]) > 0
        place.open().append(row(version + 1))


@pytest.mark.slow
@pytest.mark.spec("L-077")
def test_a_lost_staged_manifest(place):
    """Neither reads another version in its place."""
    place.pylance(row(1))
    place.open().append(row(2))
    staged = place.unfinish(2)
    place.aws.client("s3").delete_object(Bucket=place.bucket, Key=staged)
    with pytest.raises(CorruptTableError, match="neither the staged manifest nor the final one is there"):
        place.open()
    with pytest.raises((OSError, ValueError)):
        place.dataset()


@pytest.mark.slow
def test_a_bucket_without_conditional_puts(place):
    """`conditional_put=disabled` says so: through the store it is written, and not without it."""
    options = {**place.options, "conditional_put": "disabled"}
    bh.write(row(1), place.uri, format="lance", storage_options=options)
    bh.open(place.uri, storage_options=options).delete("a = 1")
    bh.open(place.uri, storage_options=options).append(row(2))
    assert ids(place.open()) == place.dataset().to_table()["a"].to_pylist() == [2]
    with pytest.raises(UnsafeStorageError, match="manifest_store"):
        bh.write(
            row(3), place.root, mode="append", storage_options={**place.aws.options, "conditional_put": "disabled"}
        )


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 8])
def test_writers_of_both_at_once(place, count):
    place.pylance(row(-1))

    def append(i):
        if i % 2:
            place.open().append(row(i))
        else:
            place.pylance(row(i), mode="append")

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(append, range(2 * count)))
    expected = list(range(-1, 2 * count))
    assert ids(place.open()) == sorted(place.dataset().to_table()["a"].to_pylist()) == ids(place.alone()) == expected
    assert [int(i["version"]["N"]) for i in place.items()] == list(range(1, 2 * count + 2))


@pytest.mark.slow
def test_many_entries_of_a_table_are_forgotten(place):
    store = place.store
    for version in (3, 1, 20, 100):
        assert store.put_if_absent(place.root, Entry(version, f"{place.root}/_versions/{version}.manifest", version))
        assert not store.put_if_absent(place.root, Entry(version, "s3://b/other", 1))
    assert store.put_if_absent(f"{place.root}2", Entry(1000, "s3://b/x"))
    assert store.latest(place.root) == Entry(100, f"{place.root}/_versions/100.manifest", 100)
    assert store.get(place.root, 2) is None and not store.put_if_exists(place.root, Entry(2, "s3://b/x"))
    assert store.put_if_exists(place.root, Entry(3, f"{place.root}/x", None))
    assert store.get(place.root, 3) == Entry(3, f"{place.root}/x", None)
    store.forget(place.root)
    assert store.latest(place.root) is None and store.latest(f"{place.root}2").version == 1000


@pytest.mark.slow
def test_tables_that_are_no_stores(place, aws):
    bh.write(row(1), place.root, format="lance", storage_options=aws.options)
    for table, message in (
        (f"{place.table}-not", "there is no such DynamoDB table"),
        (aws.commits_table({"base_uri": "S"}), "the table has the keys base_uri"),
        (aws.commits_table({"base_uri": "S", "version": "S"}), "the table has the keys base_uri, version"),
        (aws.commits_table({"id": "S", "version": "N"}), "the table has the keys id, version"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            replace(place, table=table).open()
    for field, value in (("path", {"N": "1"}), ("size", {"S": "x"}), ("size", {"N": "1.5"})):
        item = {"base_uri": {"S": "dir/t"}, "version": {"N": "1"}, "path": {"S": "x"}, field: value}
        aws.client("dynamodb").put_item(TableName=place.table, Item=item)
        with pytest.raises(CorruptTableError, match=r"an item of s3://.* without a version, a path or a size"):
            place.open()


@pytest.mark.slow
def test_errors_of_the_service(place, aws, unused_port):
    bh.write(row(1), place.root, format="lance", storage_options=aws.options)
    silent = {**place.options, "dynamodb_endpoint": f"http://127.0.0.1:{unused_port}", "max_retries": "0"}
    with pytest.raises(UndecidedError, match="the outcome of the request is unknown") as caught:
        bh.open(place.uri, storage_options=silent)
    assert "testsecret" not in str(caught.value) + repr(place.store)
    with pytest.raises(InvalidArgumentError, match="no client of DynamoDB"):
        bh.open(place.uri, storage_options={**place.options, "dynamodb_endpoint": "not a url"})


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("AccessDeniedException", 400, StorageError),
        ("ThrottlingException", 400, UndecidedError),
        ("InternalServerError", 500, UndecidedError),
        ("ResourceNotFoundException", 400, InvalidArgumentError),
    ],
)
def test_what_the_service_refuses(code, status, kind):
    exceptions = pytest.importorskip("botocore.exceptions")

    class Client:
        def put_item(self, **asked):
            answer = {"Error": {"Code": code, "Message": "key s3cret"}, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise exceptions.ClientError(answer, "PutItem")

    with pytest.raises(kind) as caught:
        DynamoStore("commits", Client(), ("s3cret",)).put_if_absent("s3://b/t", Entry(1, "s3://b/t/x"))
    assert type(caught.value) is kind and "s3cret" not in str(caught.value)
    assert caught.value.where == "dynamodb://commits"
