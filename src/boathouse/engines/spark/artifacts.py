"""Distributes the package to the executors once per session: only the driver needs it installed."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import struct
import tempfile
import zipfile
from functools import cache
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path

from pyspark.sql import SparkSession

from boathouse.engines.spark.session import facts
from boathouse.engines.spark.workers import check_workers

_EPOCH = (1980, 1, 1, 0, 0, 0)


def ship(spark: SparkSession) -> None:
    """Adds the package's sources to the session's Python files; later calls do nothing.

    Raises MissingRequirementError if the workers' Python cannot run them.
    """
    known = facts(spark)
    if not known.shipped:
        check_workers(spark)
        spark.addArtifacts(archive(), pyfile=True)
        known.shipped = True


@cache
def archive() -> str:
    """A zip of the package, created once per process; its name contains a digest, as Spark accepts a name only once.

    Beside the sources it has what Python keeps of them compiled: each new worker imports them in a third of the time.
    """
    root = Path(__file__).parents[2]
    files = sorted(p for p in root.rglob("*.py"))
    files += sorted((root.parent / "pyspark_boathouse").glob("*.py"))
    content = {}
    for file in files:
        name, source = str(file.relative_to(root.parent)), file.read_bytes()
        content[name] = source
        compiled = bytecode(file, source)
        if compiled is not None:
            content[name + "c"] = compiled
    digest = hashlib.sha256(b"".join(n.encode() + b"\0" + data for n, data in content.items())).hexdigest()[:16]
    folder = Path(tempfile.mkdtemp(prefix="boathouse-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / f"boathouse-{digest}.zip"
    # In a zip, a folder without __init__.py is a package only if the zip has an entry for the folder.
    folders = sorted({f"{parent.as_posix()}/" for n in content for parent in Path(n).parents if parent.name})
    with zipfile.ZipFile(path, "w", compresslevel=1) as out:
        for name in folders:
            out.writestr(zipfile.ZipInfo(name, _EPOCH), b"")
        for name, data in content.items():
            out.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return str(path)


def bytecode(file: Path, source: bytes) -> bytes | None:
    """The bytecode of a source in Python's cache, as an unchecked .pyc, as the zip keeps no times; None if it has none.

    A worker with another Python passes over it and compiles the source.
    """
    try:
        cached = Path(cache_from_source(file)).read_bytes()
        stat = file.stat()
    except (OSError, NotImplementedError):
        return None
    by_time = MAGIC_NUMBER + bytes(4) + struct.pack("<II", int(stat.st_mtime) & 0xFFFFFFFF, stat.st_size & 0xFFFFFFFF)
    if cached[:16] != by_time or stat.st_size != len(source):
        return None
    return MAGIC_NUMBER + struct.pack("<I", 1) + source_hash(source) + cached[16:]
