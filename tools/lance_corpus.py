"""Creates tests/conformance/lance_releases.tar.xz: small tables written by older releases of pylance, and their rows.

    python tools/lance_corpus.py [--cache .cache/lance_corpus] [--releases 0.36.0 13.0.0] [--pack-only]

Each release gets its own environment below the cache and writes every column of `lance_corpus_columns` that it
can, in every version of data files that it knows (`lance_corpus_write`). What the rows are to be is what went in, or
where the installed pylance reads something else (versions that lose nulls), what that reads.

The archive contains expected/{table}.arrow, the written values; {release}/{version}/{table}, the tables; beside a table
{table}.differs.arrow, the columns that are read differently, and {table}.refused.json, those that pylance refuses.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

RELEASES = {
    "0.8.21": "pyarrow==15.0.2",
    "0.12.3": "pyarrow==14.0.2",
    "0.16.1": "pyarrow==15.0.2",
    "0.20.0": "pyarrow==15.0.2",
    "0.27.2": "pyarrow==18.1.0",
    "0.30.0": "pyarrow==18.1.0",
    "0.36.0": "pyarrow==18.1.0",
    "0.39.0": "pyarrow==18.1.0",
    "1.0.4": "pyarrow==21.0.0",
    "2.0.1": "pyarrow==21.0.0",
    "4.0.2": "pyarrow==21.0.0",
    "6.1.0": "pyarrow==21.0.0",
    "8.0.1": "pyarrow==21.0.0",
    "10.0.0": "pyarrow==21.0.0",
    "13.0.0": "pyarrow==21.0.0",
}
HERE = Path(__file__).parent
ARCHIVE = HERE.parent / "tests" / "conformance" / "lance_releases.tar.xz"


def environment(cache: Path, release: str) -> Path:
    """The Python of a release."""
    python = cache / "env" / release / "bin" / "python"
    ready = python.parents[1] / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(python.parents[1])], check=True)
        numpy = "numpy<2" if release.startswith(("0.8", "0.1", "0.20")) else "numpy<3"
        install = [str(python), "-m", "pip", "install", "-q", f"pylance=={release}", RELEASES[release], numpy]
        subprocess.run(install, check=True)
        ready.touch()
    return python


def write(cache: Path, release: str) -> None:
    out = cache / "out" / release
    if (out / "report.json").exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    python = environment(cache, release)
    with open(cache / "out" / f"{release}.log", "w") as log:
        script = HERE / "lance_corpus_write.py"
        subprocess.run([str(python), str(script), str(out)], check=True, stdout=log, stderr=log)


def read(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def save(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def judge(place: Path) -> Iterator[tuple[str, pa.ChunkedArray | str]]:
    """(column, what the installed pylance reads, or why it fails)."""
    import lance

    for name in read(place.with_suffix(".arrow")).column_names:
        try:
            column = lance.dataset(str(place)).to_table([name]).column(0)
        except BaseException as error:  # a panic in pylance is not an Exception
            yield name, str(error)[:200]
            continue
        if isinstance(column.type, pa.BaseExtensionType):
            column = pa.chunked_array([c.storage for c in column.chunks], column.type.storage_type)
        yield name, column


def same(a: pa.ChunkedArray, b: pa.ChunkedArray) -> bool:
    if a.type == b.type and a.combine_chunks().equals(b.combine_chunks()):
        return True
    if pa.types.is_temporal(a.type):  # outside the range of Python's dates
        whole = [pa.int64() if c.type.bit_width == 64 else pa.int32() for c in (a, b)]
        return a.type == b.type and a.cast(whole[0]).equals(b.cast(whole[1]))
    return repr(a.to_pylist()) == repr(b.to_pylist())


def differing(place: Path, expected: pa.Table | None) -> None:
    """Writes the columns that are read differently from what was written, and those that are refused."""
    differs, refused = {}, {}
    given, again = read(place.with_suffix(".arrow")), place.with_suffix(".read.arrow")
    read_back = read(again) if again.exists() else given.select([])
    for name, found in judge(place):
        if isinstance(found, str):
            refused[name] = found
            own = read_back if name in read_back.column_names else given
            if own is read_back or expected is None:
                differs[name] = own.column(name).combine_chunks()
        elif expected is None or name not in expected.column_names or not same(found, given.column(name)):
            differs[name] = found.combine_chunks()
    for path in (place.with_suffix(".differs.arrow"), place.with_suffix(".refused.json")):
        path.unlink(missing_ok=True)
    if differs:
        save(place.with_suffix(".differs.arrow"), pa.table(differs))
    if refused:
        place.with_suffix(".refused.json").write_text(json.dumps(refused, indent=1))


def expected_of(cache: Path, releases: list[str]) -> dict[str, pa.Table]:
    """The written values, by table: the columns of all releases."""
    found: dict[str, pa.Table] = {}
    for release in releases:
        for path in sorted((cache / "out" / release).glob("*/*.arrow")):
            if path.name.count(".") > 1 or path.stem == "changed":
                continue
            table = read(path)
            known = found.setdefault(path.stem, table)
            for f, column in zip(table.schema, table.columns):
                if f.name not in known.column_names:
                    found[path.stem] = found[path.stem].append_column(f, column)
    return found


def pack(cache: Path, releases: list[str]) -> None:
    """One archive, with the same table of all releases adjacent, so that they compress well."""
    out = cache / "out"
    expected = expected_of(cache, releases)
    (out / "expected").mkdir(exist_ok=True)
    for name, table in expected.items():
        save(out / "expected" / f"{name}.arrow", table)
    tables = []
    for release in releases:
        report = json.loads((out / release / "report.json").read_text())
        tables += [out / release / name for name in report["tables"]]
    for place in tables:
        differing(place, expected.get(place.name))
    kept: list[Path] = sorted((out / "expected").glob("*.arrow"))
    for place in sorted(tables, key=lambda p: (p.name, p.parent.name, p.parent.parent.name)):
        kept += sorted(p for p in place.rglob("*") if p.is_file())
        kept += [p for p in (place.with_suffix(".differs.arrow"), place.with_suffix(".refused.json")) if p.exists()]
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for path in kept:
            entry = archive.gettarinfo(str(path), arcname=os.path.relpath(path, out))
            entry.mtime = entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            with open(path, "rb") as file:
                archive.addfile(entry, file)
    print(f"{ARCHIVE}: {ARCHIVE.stat().st_size:,} bytes, {len(tables)} tables")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path(".cache/lance_corpus"))
    parser.add_argument("--releases", nargs="*", default=list(RELEASES))
    parser.add_argument("--pack-only", action="store_true")
    asked = parser.parse_args()
    for release in () if asked.pack_only else asked.releases:
        print(release, flush=True)
        write(asked.cache, release)
    pack(asked.cache, asked.releases)


if __name__ == "__main__":
    main()
