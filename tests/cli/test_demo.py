"""The demo: its data is fetched and not run, its folder is its own, its proof can fail, others read its tables."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import deltalake
import pytest

import boathouse as bh
from boathouse.cli import local_spark as sparks
from boathouse.errors import AlreadyExistsError, MissingRequirementError
from demo import board, data, folder, releases, streamed

ROOT = Path(__file__).parents[2]
FLIGHTS = """\
year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,dest,\
air_time,distance,hour,minute,time_hour
"""
AIRPORTS = '"icao","iata","name","city","subd","country","elevation","lat","lon","tz","lid"\n'


def flight(month: int, number: int) -> str:
    """A flight of a small airline: every seventh is cancelled, every fifth diverted."""
    at = f"2013,{month},{number % 28 + 1}"
    if number % 7 == 0:
        times = "NA,600,NA,NA,2350,NA"
    elif number % 5 == 0:
        times = f"{600 + number},600,{number},20,2350,NA"
    else:
        times = f"{600 + number},600,{number},2355,2350,5"
    return f"{at},{times},ZZ,{number},NA,JFK,KIEL,100,500,6,0,2013-0{month}-01T11:00:00Z\n"


@pytest.fixture
def cache(tmp_path):
    """A cache that has small data, so that nothing is fetched."""
    made = tmp_path / "cache" / "demo"
    made.mkdir(parents=True)
    rows = "".join(flight(m, n) for m in (1, 2) for n in range(40))
    (made / "flights.csv").write_text(FLIGHTS + rows)
    (made / "airlines.csv").write_text("carrier,name\nZZ,Small Air\n")
    first = '"icao","iata","name","city","subd","country","elevation","lat","lon","tz"\n'
    gone = '"OLD0","","Gone Field","Nowhere","NY","US",1,40.0,-73.0,"America/New_York"\n'
    kennedy = '"JFK0","JFK","Idlewild","New York","NY","US",13,40.6,-73.8,"America/New_York"'
    (made / "airports-20220406.csv").write_text(f"{first}{kennedy}\n{gone}")
    (made / "airports-20240119.csv").write_text(f'{AIRPORTS}{kennedy},"JFK"\n')
    old = AIRPORTS + '"JFK0","JFK","Kennedy","New York","NY","US",13,40.6,-73.8,"America/New_York",""\n'
    (made / "airports-20240806.csv").write_text(old)
    new = old.replace("Kennedy", "John F Kennedy") + '"KIEL","KIEL","Holtenau","Kiel","SH","DE",102,54.4,10.1,"",""\n'
    (made / "airports-20250909.csv").write_text(new)
    return made.parent


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.smoke
def test_the_whole_demo_in_a_process_of_its_own(cache, tmp_path):
    target = tmp_path / "made"
    env = os.environ | {"BOATHOUSE_CACHE": str(cache), "PIP_NO_INDEX": "1"}
    command = [sys.executable, "-m", "demo", "--to", str(target), "--months", "2", "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["proof"]["holds"] is True
    assert (told["source_rows"], told["proof"]["rows"]) == (80, 68)
    assert [row["format"] for row in told["later"]] == [f for f in told["formats"] if f != "lance"]
    assert all(0 < row["files_read"] < row["files_of_the_table"] for row in told["later"])
    assert told["airports_changed"] == {"added": 1, "removed": 0, "changed": 1, "renamed": 1}
    cancelled = told["answers"]["cancelled"]
    assert (cancelled["format"], cancelled["rows"][0]["cancelled"]) == ("lance", 12)
    assert [a["format"] for a in told["answers"].values()] == ["delta", "iceberg", "lance"]
    keyed = told["airports_streamed"]
    both = {"main": {"in process": 2, "on Spark": 2}, "audit": {"in process": 1, "on Spark": 1}}
    assert keyed["holds"] is True and keyed["read"] == both
    kept = told["airports_kept"]
    assert kept["holds"] is True
    counted = [[r[k] for k in ("inserted", "updated", "deleted")] for r in list(kept["releases"].values())[1:]]
    assert counted == [[0, 1, 1], [0, 1, 0], [1, 1, 0]]
    assert kept["releases"]["20240119"]["new_columns"] == "lid"
    assert kept["changes"] == {"update_preimage": 1, "update_postimage": 1, "insert": 1}
    assert kept["maintenance"]["deleted_by_mistake"] == 1 and kept["maintenance"]["vacuumed_files"] > 0
    for name, made in told["formats"].items():
        assert made["steps"]["correct_month"]["corrected"] > 0, name
        assert made["flights"]["versions"] == 4, name
    read_by_others(target)


def read_by_others(target: Path) -> None:
    import deltalake
    import duckdb
    from pyiceberg.table import StaticTable

    import lance

    newest = max((target / "iceberg/flights/metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:-14]))
    tables = {
        "delta": deltalake.DeltaTable(target / "delta/flights").to_pyarrow_table(),
        "iceberg": StaticTable.from_metadata(str(newest)).scan().to_arrow(),
        "lance": lance.dataset(str(target / "lance/flights")).to_table(),
    }
    columns = "count(*), count(dep_time), sum(arr_delay), sum(flight * month), max(epoch_us(time_hour))"
    answers = {}
    for name, table in tables.items():
        duckdb.register("t", table)
        answers[name] = duckdb.sql(f"SELECT {columns} FROM t").fetchall()[0]
    assert answers["delta"][:2] == (68, 68)
    assert answers["delta"] == answers["iceberg"] == answers["lance"]


@pytest.mark.spark
def test_the_fingerprint_knows_rows_and_not_their_order(spark):
    from demo.frames import fingerprint

    def of(rows):
        return fingerprint(spark.createDataFrame(rows, "a int, b int"), ["a", "b"])

    rows = [(1, None), (2, 3), (2, 3)]
    assert of(rows) == of(rows[::-1])
    for other in (
        [(None, 1), (2, 3), (2, 3)],
        [(1, None), (2, 3)],
        [(1, None), (2, 3), (3, 2)],
        [(1, 0), (2, 3), (2, 3)],
    ):
        assert of(other) != of(rows)


@pytest.mark.spark
def test_the_proof_fails_for_a_table_that_differs(spark, cache):
    from demo.board import Board
    from demo.frames import Fingerprint
    from demo.run import Report, _inputs, _prove
    from demo.steps import Place

    inputs = _inputs(spark, data.get(cache), 2)
    report = Report(0.0, {"formats": {"delta": {"steps": {"take_fingerprint": {"rows_without_spark": 68}}}}})
    place = Place("delta", Path("/nowhere"), flights=Fingerprint(68, 1, 2), airports=Fingerprint(2, 1, 2))
    _prove(inputs, [place], Board(), report)
    assert report.document["proof"]["holds"] is False


@pytest.mark.spark
def test_diverted_flights_get_the_delay_of_their_clock_times(spark):
    from demo.frames import corrected

    columns = "arr_time int, sched_arr_time int, arr_delay int"
    rows = [(20, 2350, None), (1410, 1300, None), (None, 900, None), (1410, 1300, 7)]
    found = corrected(spark.createDataFrame(rows, columns)).collect()
    assert [r.arr_delay for r in found] == [30, 70, None, 7]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A source archive in a local index, whose setup.py leaves a trace if it runs."""
    trace = tmp_path / "trace"
    index = tmp_path / "index"
    index.mkdir()
    path = index / "boathouse_test_data-1.0.tar.gz"
    files = {
        "PKG-INFO": "Metadata-Version: 2.1\nName: boathouse-test-data\nVersion: 1.0\n",
        "setup.py": f"open({str(trace)!r}, 'w').close()\nfrom setuptools import setup\nsetup(name='x', version='1')\n",
        "rows.csv": "a\n1\n",
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"boathouse_test_data-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    members = {"rows.csv": "boathouse_test_data-1.0/rows.csv"}
    return data.Archive("boathouse-test-data", "1.0", path.name, digest, "CC0", members), trace


def test_a_source_archive_is_fetched_and_not_run(package, tmp_path):
    archive, trace = package
    assert data._ready(archive, tmp_path) is True
    assert (tmp_path / "rows.csv").read_text() == "a\n1\n"
    assert not trace.exists()
    assert data._ready(archive, tmp_path) is False


def test_an_archive_with_another_digest_is_refused(package, tmp_path):
    archive, _ = package
    with pytest.raises(MissingRequirementError, match=r"boathouse-test-data 1\.0"):
        data._ready(replace(archive, sha256="0" * 64), tmp_path)
    assert not (tmp_path / "rows.csv").exists()


def test_without_a_network_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(MissingRequirementError, match=r"put airportsdata-20220406-py3-none-any\.whl into that folder"):
        data._ready(data.RELEASES[0], tmp_path)


def test_a_list_follows_its_releases(cache, tmp_path, capsys):
    """The second chapter, in this process: what each merge did, what the feed says, and the rows at the end."""
    named = tuple((p.stem.removeprefix("airports-"), p) for p in sorted((cache / "demo").glob("airports-*.csv")))
    uri = str(tmp_path / "kept")
    facts = releases.follow(uri, named, board.Lines())
    assert facts["holds"] is True
    theirs = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(uri)).execute("select icao from t")
    assert len(theirs.read_all()) == bh.open(uri).count() == 2
    assert [v["inserted"] for v in facts["releases"].values()] == [2, 0, 0, 1]
    assert facts["maintenance"]["restored_version"] == 4 - 1
    said = capsys.readouterr().out
    for words in ("John F Kennedy", "update_preimage", "restore", "vacuum"):
        assert words in said
    other = bh.open(uri)
    other.delete("icao = 'KIEL'")
    assert not releases.same_rows(other.to_arrow(), releases.read_release(named[-1][1]))


def of_cache(cache):
    folder = cache / "demo"
    named = tuple((p.stem.removeprefix("airports-"), p) for p in sorted(folder.glob("airports-*.csv")))
    return data.Data(folder / "flights.csv", folder / "airlines.csv", named)


def test_a_table_that_a_stream_keeps(cache, tmp_path, capsys):
    """The chapter about Iceberg, in this process: an upsert by equality deletes, vectors of version 3, a branch; and
    what PyIceberg reads of it."""
    from pyiceberg.table import StaticTable

    uri = str(tmp_path / "a b" / "streamed")
    facts = streamed.keep(uri, of_cache(cache), board.Lines())
    assert facts["holds"] is True and facts["read"] == {"main": {"in process": 2}, "audit": {"in process": 1}}
    assert facts["rows"] == {"written": 1, "upserted": 2, "deleted": 2, "rewritten": 2, "audit": 2}
    assert facts["delete_files"] == {"written": 0, "upserted": 1, "deleted": 1, "rewritten": 0, "audit": 0}
    assert [(f["content"], f["file_format"], f["record_count"]) for f in facts["vectors"]] == [(1, "PUFFIN", 1)]
    head = max(Path(uri, "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:-14]))
    assert json.loads(head.read_bytes())["format-version"] == 3
    theirs = StaticTable.from_metadata(str(head))
    branch = theirs.scan(snapshot_id=theirs.snapshot_by_name("audit").snapshot_id)
    names = ["John F Kennedy", "Holtenau"]
    assert sorted(theirs.scan().to_arrow()["name"].to_pylist()) == sorted(names)
    assert (
        branch.to_arrow()["name"].to_pylist() == names[:1] == bh.open(uri, ref="audit").to_arrow()["name"].to_pylist()
    )
    said = capsys.readouterr().out
    for words in ("upsert of 2 rows", "delete_files()", "PUFFIN", "on the branch audit", "audit: 1 rows"):
        assert words in said


def test_the_chapter_fails_where_a_delete_does_nothing(cache, tmp_path, monkeypatch):
    class Forgetful(bh.Table):
        def upsert(self, rows, **options):
            return bh.Table.append(self, rows)

    opened = bh.open
    monkeypatch.setattr(bh, "open", lambda *a, **k: Forgetful(opened(*a, **k)._handle))
    facts = streamed.keep(str(tmp_path / "streamed"), of_cache(cache), board.Board())
    assert facts["holds"] is False and facts["rows"]["upserted"] == 3


def test_a_folder_of_others_is_left_alone(tmp_path):
    (tmp_path / "delta").mkdir()
    for act in (folder.prepare, folder.clean):
        with pytest.raises(AlreadyExistsError, match="not created by the demo"):
            act(tmp_path)
    assert (tmp_path / "delta").is_dir()


def test_a_demo_replaces_and_removes_its_own_only(tmp_path):
    made = tmp_path / "made"
    folder.prepare(made)
    (made / "delta" / "flights").mkdir(parents=True)
    (made / "mine.txt").write_text("")
    folder.prepare(made)
    assert not (made / "delta").exists()
    assert folder.clean(made) is True
    assert [p.name for p in made.iterdir()] == ["mine.txt"]
    assert folder.clean(tmp_path / "nowhere") is False


def java(home: Path, version: str) -> None:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    (home / "bin" / "java").chmod(0o755)


def test_java_is_looked_for_before_anything_is_started(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    with pytest.raises(MissingRequirementError, match="none was found"):
        sparks.check()
    for name, version in (("old", "1.8.0_392"), ("eleven", "11.0.2")):
        java(tmp_path / name, version)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / name))
        with pytest.raises(MissingRequirementError, match=r"this one is (8|11)"):
            sparks.check()
    java(tmp_path / "new", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    sparks.check()


def test_options_that_cannot_be(tmp_path):
    from typer.testing import CliRunner

    from boathouse.errors import InvalidArgumentError
    from demo.__main__ import app

    def run(*arguments):
        result = CliRunner().invoke(app, [str(a) for a in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout

    with pytest.raises(InvalidArgumentError, match="hudi"):
        run("--formats", "delta,hudi")
    assert run("--months", "13")[0] == 2
    assert run("--clean", "--to", tmp_path / "none", "--json") == (
        0, json.dumps({"folder": str(tmp_path / "none"), "removed": False}) + "\n",
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["Lines", "Terminal"])
def test_boards_show_every_step(kind, capsys):
    from demo import board

    shown = getattr(board, kind)()
    shown.open(["append", "delete"], ["delta", "lance"])
    shown.working("append", "delta", "month 1")
    shown.done("append", "delta", 1.25, "7 rows")
    shown.close()
    shown.table("Who?", ["name", "minutes_late"], [("a", 1000), ("b", None)])
    shown.say("[not markup]")
    out = capsys.readouterr().out
    for words in ("7 rows", "delta", "Who?", "minutes late", "1,000", "[not markup]"):
        assert words in out
