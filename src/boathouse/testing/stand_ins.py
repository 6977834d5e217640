"""Object stores that run on this machine, for tests."""

from __future__ import annotations

import importlib
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from boathouse.bits import entropy
from boathouse.errors import UnsupportedFeatureError


@dataclass(frozen=True, slots=True)
class S3StandIn:
    """A server that speaks S3's protocol, conditional puts included."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """Storage options that reach it."""
        return {
            "access_key_id": "AKIATESTKEY",
            "secret_access_key": "testsecret",
            "region": "us-east-1",
            "endpoint": self.endpoint,
        }

    def bucket(self) -> str:
        """Makes a bucket of a new name, and gives the name."""
        name = f"b{entropy.current().uuid4().hex}"
        with urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")):
            return name


@contextmanager
def s3_stand_in() -> Iterator[S3StandIn]:
    """An empty S3 at 127.0.0.1 while the block runs. UnsupportedFeatureError without moto (`pip install moto[server]`).

    Seeded entropy draws the same bucket names again: call `bucket` outside of it.
    """
    try:
        moto = importlib.import_module("moto.server")
    except ImportError as error:
        raise UnsupportedFeatureError("The S3 stand-in needs moto.", advice="pip install 'moto[server]'") from error
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3StandIn(f"http://{host}:{port}")
    finally:
        server.stop()
