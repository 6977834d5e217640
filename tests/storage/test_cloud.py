"""Object stores: conformance on S3's own protocol, spoken by a stand-in on this machine; errors and their secrets."""

import http.server
import logging
import pickle
import subprocess
import sys
import threading
import traceback
import urllib.request

import pytest

from boathouse.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    StorageError,
    UndecidedError,
    UnsafeStorageError,
)
from boathouse.storage import PutMode, Stores
from boathouse.testing.storage import StorageConformance

KEY, SECRET = "AKIATHEACCESSKEY", "theSecret/Key+with=signs"


class TestS3(StorageConformance):
    keeps_empty_segments = False

    @pytest.fixture
    def storage(self, s3_options, s3_bucket):
        return Stores(s3_options).resolve(f"s3://{s3_bucket}/")[0]


def test_folder_markers_are_no_files(s3, s3_options, s3_bucket) -> None:
    """Hadoop's S3 client keeps empty objects whose keys end in a slash; the store's client drops the slash."""
    for key in ("t/", "t/p=1/", "t/p=1/f", "t/p=1-", "t/empty/", "t/z", "u/"):
        request = urllib.request.Request(f"{s3.endpoint}/{s3_bucket}/{key}", method="PUT", data=b"")
        urllib.request.urlopen(request).close()
    storage, _ = Stores(s3_options).resolve(f"s3://{s3_bucket}/")
    files = ["t/p=1-", "t/p=1/f", "t/z"]
    assert [info.key for info in storage.list("t")] == files
    assert [info.key for info in storage.list("")] == files
    assert [info.key for info in storage.list("", start_after="t/p=1-")] == files[1:]
    assert storage.list_dir("t")[0] == ["t/empty", "t/p=1"]
    assert [info.key for info in storage.list_dir("t")[1]] == ["t/p=1-", "t/z"]


def test_missing_bucket(s3_options) -> None:
    storage, key = Stores(s3_options).resolve("s3a://no-such-bucket/k")
    with pytest.raises(NotFoundError, match="bucket does not exist"):
        storage.get(key)
    with pytest.raises(NotFoundError, match="bucket does not exist"):
        list(storage.list(""))


@pytest.fixture
def answering():
    """A server on this machine that gives one status (or none: it hangs up) and an XML body that tells secrets."""
    servers = []

    def start(status: int | None, seen: list[str] | None = None) -> dict[str, str]:
        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self) -> None:
                if seen is not None:
                    seen.append(f"{self.command} {self.headers.get('If-None-Match')}")
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if status is None:
                    self.connection.close()
                    return
                body = (
                    f"<Error><Code>Told</Code><Message>key {KEY} sig={SECRET}</Message>"
                    f"<StringToSign>{SECRET}</StringToSign></Error>"
                ).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("ETag", '"1"')
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

            def log_message(self, *_args: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return {
            "s3.endpoint": f"http://127.0.0.1:{server.server_port}",
            "AWS_ACCESS_KEY_ID": KEY,
            "fs.s3a.secret.key": SECRET,
            "region": "us-east-1",
            "max_retries": "0",
            "timeout": "5s",
            "conditional_put": "etag",
        }

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (500, UndecidedError, "500"),
        (503, UndecidedError, "503"),
        (429, UndecidedError, "429"),
        (None, UndecidedError, "outcome of the request is unknown"),
        (403, StorageError, "Permission denied"),
        (401, StorageError, "Permission denied"),
        (400, StorageError, "refused"),
        (412, AlreadyExistsError, "already exists"),
        (409, AlreadyExistsError, "already exists"),
    ],
)
def test_failures_are_typed_and_tell_no_secret(answering, caplog, status, kind, text) -> None:
    caplog.set_level(logging.DEBUG)
    storage, key = Stores(answering(status)).resolve("s3://bucket/a/k")
    with pytest.raises(kind, match=text) as caught:
        storage.put(key, b"1", PutMode.CREATE)
    assert type(caught.value) is kind and caught.value.where == "s3://bucket/a/k"
    error = caught.value
    told = "".join([*traceback.format_exception(error), repr(error), str(error), repr(storage), caplog.text])
    assert error.__context__ is None and error.__cause__ is None
    for secret in (KEY, SECRET, "theSecret"):
        assert secret not in told


@pytest.mark.parametrize("status", [500, None])
@pytest.mark.parametrize("operation", ["get", "head", "list", "list_dir", "put", "open_write", "delete", "get_ranges"])
def test_every_operation_says_when_it_does_not_know(answering, operation, status) -> None:
    storage, key = Stores(answering(status)).resolve("s3://bucket/a/k")

    def write() -> None:
        with storage.open_write(key) as writer:
            writer.write(b"1")

    run = {
        "get": lambda: storage.get(key),
        "head": lambda: storage.head(key),
        "list": lambda: list(storage.list("a")),
        "list_dir": lambda: storage.list_dir("a"),
        "put": lambda: storage.put(key, b"1"),
        "open_write": write,
        "delete": lambda: storage.delete([key]),
        "get_ranges": lambda: storage.get_ranges(key, [(0, 1), (9_000_000, 1)]),
    }
    with pytest.raises(UndecidedError):
        run[operation]()


def test_nobody_there(unused_port: int) -> None:
    options = {"endpoint": f"http://127.0.0.1:{unused_port}", "anonymous": "true", "max_retries": "0", "region": "r"}
    with pytest.raises(UndecidedError):
        Stores(options).resolve("s3://bucket/k")[0].get("k")


def test_a_store_that_ignores_conditions_is_not_written(answering) -> None:
    seen: list[str] = []
    options = answering(200, seen)
    del options["conditional_put"]
    storage, key = Stores(options).resolve("s3://bucket/a/k")
    with pytest.raises(UnsafeStorageError, match="If-None-Match"):
        storage.put(key, b"1", PutMode.CREATE)
    assert not storage.atomic_create
    assert seen.count("PUT *") == 2  # both of them the probe's
    with pytest.raises(UnsafeStorageError):
        storage.open_write(key, PutMode.CREATE)
    assert seen.count("PUT *") == 2
    storage.put(key, b"1")


def test_conditional_put_may_be_switched_off(s3_options, s3_bucket) -> None:
    storage, _ = Stores({**s3_options, "aws_conditional_put": "disabled"}).resolve(f"s3://{s3_bucket}/")
    assert not storage.atomic_create
    with pytest.raises(UnsafeStorageError):
        storage.put("k", b"", PutMode.CREATE)


def test_the_probe_leaves_nothing_and_runs_once(s3_options, s3_bucket) -> None:
    storage, _ = Stores(s3_options).resolve(f"s3://{s3_bucket}/")
    storage.put("p/1", b"", PutMode.CREATE)
    storage.put("p/2", b"", PutMode.CREATE)
    assert [info.key for info in storage.list("")] == ["p/1", "p/2"]


@pytest.mark.parametrize(
    "uri", ["gs://bucket/k", "az://container/k", "abfss://container@account.dfs.core.windows.net/k"]
)
def test_other_stores_open_without_a_request(uri: str) -> None:
    options = {"account_name": "account", "account_key": "c2VjcmV0", "bearer_token": "token", "anonymous": "false"}
    storage, key = Stores(options).resolve(uri)
    assert key == "k" and storage.uri(key) == uri and storage.atomic_create
    assert "secret" not in repr(storage) and "token" not in repr(storage)


def test_gcs_creates_by_condition(answering) -> None:
    seen: list[str] = []
    endpoint = answering(412, seen)["s3.endpoint"]
    storage, key = Stores({"google_base_url": endpoint, "gcs.oauth2.token": "t", "max_retries": "0"}).resolve(
        "gs://b/k"
    )
    with pytest.raises(AlreadyExistsError):
        storage.put(key, b"1", PutMode.CREATE)
    assert [method.split()[0] for method in seen] == ["PUT"]


def test_azure_creates_by_condition(answering) -> None:
    seen: list[str] = []
    endpoint = answering(409, seen)["s3.endpoint"]
    options = {"azure_endpoint": endpoint, "account_name": "acc", "account_key": "c2VjcmV0", "max_retries": "0"}
    storage, key = Stores(options).resolve("az://c/k")
    with pytest.raises(AlreadyExistsError):
        storage.put(key, b"1", PutMode.CREATE)
    assert seen == ["PUT *"]


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("s3://b/k", {"access_key_id": KEY}),
        ("az://c/k", {"account_name": "acc", "account_key": "noBase64!" + SECRET}),
        ("az://c/k", {"account_key": SECRET}),
        ("abfss://c@one.dfs.core.windows.net/k", {"account_name": "two", "account_key": SECRET}),
        ("gs://b/k", {"service_account_key": '{"private_key": "' + SECRET}),
        (
            "s3://b/k",
            {"endpoint": "http://h", "allow_http": "false", "secret_access_key": SECRET, "access_key_id": KEY},
        ),
    ],
)
def test_options_that_do_not_fit(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Stores(options).resolve(uri)
    told = "".join(traceback.format_exception(caught.value))
    assert KEY not in told and SECRET not in told


def test_obstore_is_loaded_for_object_stores_only(tmp_path) -> None:
    script = (
        "import sys; from boathouse.storage import Stores; s = Stores({'region': 'x'})\n"
        "for uri in (sys.argv[1], 'memory://m/k'):\n"
        "    st, k = s.resolve(uri); st.put(k + '/f', b'1'); list(st.list(k))\n"
        "assert not {'obstore', 'pyarrow', 'numpy'} & set(sys.modules), 'too much'\n"
        "s.resolve('s3://b/k'); assert 'obstore' in sys.modules and 'pyarrow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


def test_stores_keep_one_storage_a_bucket_and_pickle_their_options() -> None:
    wrapped = []
    stores = Stores({"region": "x"}, wrap=lambda inner: wrapped.append(inner) or inner)
    assert stores.resolve("s3://a/x")[0] is stores.resolve("s3n://a/y")[0]
    assert stores.resolve("s3://b/x")[0] is not stores.resolve("s3://a/x")[0]
    assert stores.resolve("/tmp/x")[0] is stores.resolve("file:/other")[0]
    assert len(wrapped) == 3
    assert pickle.loads(pickle.dumps(stores.options)) == stores.options
