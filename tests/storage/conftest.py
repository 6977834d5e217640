"""A stand-in for S3 on this machine."""

import socket

import pytest

from makers.stand_ins import s3_stand_in


@pytest.fixture(scope="session")
def s3():
    pytest.importorskip("moto.server", reason="the fake S3 server needs moto[server]")
    with s3_stand_in() as server:
        yield server


@pytest.fixture
def s3_options(s3) -> dict[str, str]:
    return s3.options


@pytest.fixture
def s3_bucket(s3) -> str:
    return s3.bucket()


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
