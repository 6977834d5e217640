"""Local fakes of object stores, for tests."""

from __future__ import annotations

import base64
import hashlib
import hmac
import importlib
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

from boathouse.bits import system
from boathouse.errors import UnsupportedFeatureError


@dataclass(frozen=True, slots=True)
class S3StandIn:
    """A server with S3's protocol, including conditional puts."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """The storage options for it."""
        return {
            "access_key_id": "AKIATESTKEY",
            "secret_access_key": "testsecret",
            "region": "us-east-1",
            "endpoint": self.endpoint,
        }

    def bucket(self) -> str:
        """Creates a bucket with a new name, and returns the name."""
        name = f"b{system.current().uuid4().hex}"
        with urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")):
            return name

    def client(self, service: str) -> Any:
        """boto3's client of one of the server's services: it has DynamoDB too."""
        return importlib.import_module("boto3").client(
            service,
            endpoint_url=self.endpoint,
            region_name=self.options["region"],
            aws_access_key_id=self.options["access_key_id"],
            aws_secret_access_key=self.options["secret_access_key"],
        )

    def commits_table(self, keys: Mapping[str, str] = {"base_uri": "S", "version": "N"}) -> str:
        """Creates a DynamoDB table with a new name, and returns the name: that of a manifest store of Lance, unless the
        keys (hash and range, with their types) are others."""
        name = f"t{system.current().uuid4().hex}"
        kinds = zip(keys, ("HASH", "RANGE"), strict=False)
        self.client("dynamodb").create_table(
            TableName=name,
            KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in kinds],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": type} for key, type in keys.items()],
            BillingMode="PAY_PER_REQUEST",
        )
        return name


@contextmanager
def s3_stand_in() -> Iterator[S3StandIn]:
    """An empty S3 at 127.0.0.1 while the block runs. UnsupportedFeatureError without moto (`pip install moto[server]`).

    A seeded system draws the same bucket names again: call `bucket` outside its block.
    """
    try:
        moto = importlib.import_module("moto.server")
    except ImportError as error:
        raise UnsupportedFeatureError("The fake S3 server needs moto.", advice="pip install 'moto[server]'") from error
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3StandIn(f"http://{host}:{port}")
    finally:
        server.stop()


_AZURITE = "azurite-blob"
_ACCOUNT = "devstoreaccount1"
# The key that Microsoft publishes for its emulator.
_ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_VERSION = "2021-12-02"


@dataclass(frozen=True, slots=True)
class AzureStandIn:
    """A server with Azure's blob protocol."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """The storage options for it."""
        return {"account_name": _ACCOUNT, "account_key": _ACCOUNT_KEY, "endpoint": self.endpoint}

    def container(self) -> str:
        """Creates a container with a new name, and returns the name."""
        name = f"c{system.current().uuid4().hex}"
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
        named = "\n".join(f"{key}:{value}" for key, value in headers.items())
        # The account occurs twice in a resource of the emulator: as the account, and in the path.
        signed = f"PUT{chr(10) * 12}{named}\n/{_ACCOUNT}/{_ACCOUNT}/{name}\nrestype:container"
        digest = hmac.new(base64.b64decode(_ACCOUNT_KEY), signed.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}"
        url = f"{self.endpoint}/{name}?restype=container"
        with urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers)):
            return name


@contextmanager
def azure_stand_in(program: str | None = None) -> Iterator[AzureStandIn]:
    """An empty Azure at 127.0.0.1 while the block runs, by `program` (default: Azurite on the PATH).

    UnsupportedFeatureError without it (`npm install azurite`), or where it does not start.
    """
    found = program or shutil.which(_AZURITE)
    if found is None:
        raise UnsupportedFeatureError("The Azure emulator needs Azurite.", advice="npm install azurite")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    where = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    how = ["--silent", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
    server = subprocess.Popen([found, *where, *how], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, server)
        yield AzureStandIn(f"http://127.0.0.1:{port}/{_ACCOUNT}")
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes], seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and server.poll() is None:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise UnsupportedFeatureError("The Azure emulator did not start.", advice="run azurite-blob by hand to see why")
