"""Distributes the package to the executors once per session: only the driver needs it installed."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
import zipfile
from functools import cache
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
    """A zip of the package's sources, created once per process; its name contains a digest, as Spark accepts a name
    only once."""
    root = Path(__file__).parents[2]
    files = sorted(p for p in root.rglob("*.py"))
    files += sorted((root.parent / "pyspark_boathouse").glob("*.py"))
    content = {str(p.relative_to(root.parent)): p.read_bytes() for p in files}
    digest = hashlib.sha256(b"".join(n.encode() + b"\0" + data for n, data in content.items())).hexdigest()[:16]
    folder = Path(tempfile.mkdtemp(prefix="boathouse-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / f"boathouse-{digest}.zip"
    # In a zip, a folder without __init__.py is a package only if the zip has an entry for the folder.
    folders = sorted({f"{parent.as_posix()}/" for n in content for parent in Path(n).parents if parent.name})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name in folders:
            out.writestr(zipfile.ZipInfo(name, _EPOCH), b"")
        for name, data in content.items():
            out.writestr(zipfile.ZipInfo(name, _EPOCH), data)
    return str(path)
