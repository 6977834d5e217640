"""`boathouse info` on a small table: the whole process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from harness import DATA, alternate, fresh, record

import boathouse as bh


def main() -> None:
    script = str(Path(sys.executable).parent / "boathouse")
    runners = {}
    for format in ("delta", "iceberg", "lance"):
        uri = fresh(DATA / f"small-{format}")
        for i in range(5):
            bh.write(pa.table({"id": [i], "name": ["x"]}), uri, format=format, mode="append")
        command = [script, "info", uri]
        runners[format] = lambda command=command: subprocess.run(command, check=True, capture_output=True)
    runners["python -c pass"] = lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)
    case = alternate("boathouse info", runners, "delta", rounds=9, target="at most 0.5 s")
    record("Command line: `boathouse info` on a small table, whole process", [case])


if __name__ == "__main__":
    main()
