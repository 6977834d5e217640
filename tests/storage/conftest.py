"""A stand-in for S3 on this machine."""

import os
import socket
import urllib.request
import uuid

import pytest


@pytest.fixture(scope="session")
def s3_server():
    moto = pytest.importorskip("moto.server", reason="the S3 stand-in needs moto[server]")
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3_options(s3_server: str) -> dict[str, str]:
    return {
        "access_key_id": "AKIATESTKEY",
        "secret_access_key": "testsecret",
        "region": "us-east-1",
        "endpoint": s3_server,
    }


@pytest.fixture
def s3_bucket(s3_server: str) -> str:
    name = f"b{uuid.uuid4().hex}"
    with urllib.request.urlopen(urllib.request.Request(f"{s3_server}/{name}", method="PUT")):
        return name


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
