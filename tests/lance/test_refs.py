"""Tags and branches: made, written to and dropped here and by pylance in turn; races, crashes and lost answers."""

from __future__ import annotations

import json
import multiprocessing
import random
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from boathouse.errors import (
    AlreadyExistsError,
    BoathouseError,
    CommitConflictError,
    InvalidArgumentError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from boathouse.lance.refs.files import check_name
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.features import LiveFiles
from boathouse.table.refs import Ref
from boathouse.testing.faults import Fault, FaultyStorage, Plan

lance = pytest.importorskip("lance")


def rows(start: int, count: int) -> pa.Table:
    numbers = range(start, start + count)
    words = [f"v{i}" if i % 3 else None for i in numbers]
    return pa.table({"a": pa.array(numbers, pa.int64()), "s": pa.array(words, pa.string())})


def content(table: pa.Table) -> dict[int, object]:
    found = dict(zip(table.column("a").to_pylist(), table.column("s").to_pylist(), strict=True))
    assert len(found) == table.num_rows
    return found


def theirs(kit, ref: str):
    """A branch as pylance opens it."""
    found = kit.dataset().checkout_version((ref, None))
    found.validate()
    return found


def document(kit, path: str) -> dict[str, object]:
    return json.loads((kit.root / path).read_text())


# --- tags --------------------------------------------------------------------------------------------


@pytest.mark.spec("L-122")
@pytest.mark.feature("branches and tags", format="lance", engine="either")
def test_a_tag_is_created_replaced_and_dropped(kit, numbers):
    t = kit.create(numbers)
    t.append(numbers)
    done = t.refs.create_tag("v1", 1, message="first", metadata={"by": "us"})
    assert (done.operation, done.version, done.commit, t.version) == ("set-ref", None, "tag v1", 2)
    found = kit.dataset().tags.list()["v1"]
    assert (found["version"], found["branch"]) == (1, None)
    assert found["manifest_size"] == kit.manifests()[-1].stat().st_size
    assert found["created_at"] == found["updated_at"]
    assert found["metadata"]["by"] == "us" and found["metadata"]["__lance_commit_message"] == "first"
    assert kit.dataset(version="v1").count_rows() == kit.open(ref="v1").count() == 10
    t.refs.replace_tag("v1")
    again = kit.dataset().tags.list()["v1"]
    assert (again["version"], again["created_at"]) == (2, found["created_at"])
    assert again["metadata"]["by"] == "us" and again["updated_at"] >= again["created_at"]
    assert not t.refs.replace_tag("v1", 2).versions and kit.dataset().tags.list()["v1"] == again  # as it was
    t.refs.drop_tag("v1")
    assert kit.dataset().tags.list() == {} and list(t.refs) == ["main"]
    assert t.refs.drop_tag("v1", if_exists=True).commit is None
    with pytest.raises(VersionNotFoundError, match="no tag 'v1'"):
        t.refs.drop_tag("v1")


@pytest.mark.spec("L-122")
def test_files_are_as_pylance_writes_them(kit, numbers):
    """The same keys in the same order, and values of the same kinds, but for the metadata."""
    t = kit.create(numbers)
    kit.dataset().tags.create("theirs", 1)
    kit.dataset().create_branch("theirs-too")
    t.refs.create_tag("ours")
    t.refs.create_branch("ours-too")
    for mine, other in (("tags/ours", "tags/theirs"), ("branches/ours-too", "branches/theirs-too")):
        a, b = document(kit, f"_refs/{mine}.json"), document(kit, f"_refs/{other}.json")
        assert [(k, type(v)) for k, v in a.items()] == [(k, type(v)) for k, v in b.items()]
        shown = {
            k: v for k, v in a.items() if k not in ("createdAt", "updatedAt", "createAt", "identifier", "metadata")
        }
        assert shown == {k: b[k] for k in shown}
    ours, pylances = (document(kit, f"_refs/branches/{n}-too.json")["identifier"] for n in ("ours", "theirs"))
    (mine,), (other,) = ours["version_mapping"], pylances["version_mapping"]
    assert mine[0] == other[0] == 1 and len(mine[1]) == len(other[1]) == 32


def test_what_a_tag_says_otherwise_stays(kit, numbers):
    t = kit.create(numbers)
    t.append(numbers)
    t.refs.create_tag("v1", 1)
    path = kit.root / "_refs/tags/v1.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "new": [1]}))
    kit.dataset().tags.replace_metadata("v1", {"k": "v"})
    t.refs.replace_tag("v1", 2)
    assert document(kit, "_refs/tags/v1.json")["metadata"]["k"] == "v"
    kit.dataset().tags.update("v1", 1)
    assert t.refs["v1"] == Ref("v1", "tag", 1) and kit.open(ref="v1").version == 1


NAMES = [
    "", "v1", "releasé", "版本", "a.b-c_d", ".a", "a.", "a..b", "a.lock", "a b", "a/b", "/a", "a/", "a//b", "a/.",
    "./a", "a\\b", "a%2Fb", "main", "a@b", "a\0b", "x" * 80, "a/b.c/d-e", "٣", "a/b.lock", "~",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_are_those_that_pylance_takes(kit, numbers, name):
    kit.pylance(numbers)
    makes = {"tag": lambda: kit.dataset().tags.create(name, 1), "branch": lambda: kit.dataset().create_branch(name)}
    for type, make in makes.items():
        try:
            make()
            taken = True
        except (OSError, ValueError):
            taken = False
        if (type, name) in (
            ("tag", "main"),
            ("branch", "a/."),
            ("branch", "./a"),
        ):  # one is a branch, and two no folder
            taken = False
        if taken:
            check_name(name, type)
            assert kit.open().refs[name].type == type and kit.open(ref=name).count() == 10
            (kit.dataset().tags if type == "tag" else kit.dataset().branches).delete(name)
            make_ours = kit.open().refs.create_tag if type == "tag" else kit.open().refs.create_branch
            make_ours(name)
            if type == "branch" or name.isascii():  # pylance cannot list its own tags of other letters
                assert name in (kit.dataset().tags if type == "tag" else kit.dataset().branches).list()
            assert kit.open(ref=name).count() == 10
            if type == "tag":
                assert kit.dataset(version=name).count_rows() == 10
                kit.open().refs.drop_tag(name)
            else:
                assert theirs(kit, name).count_rows() == 10
        else:
            with pytest.raises(InvalidArgumentError, match="cannot be the name"):
                check_name(name, type)


def test_a_branch_is_not_made_among_the_files_of_another(kit, numbers):
    t = kit.create(numbers)
    for name in ("a/data", "a/_versions", "a/b/tree", "a/_indices/b"):
        with pytest.raises(InvalidArgumentError, match="in the folder"):
            t.refs.create_branch(name)
    t.refs.create_branch("data")
    assert theirs(kit, "data").count_rows() == kit.open(ref="data").count() == 10


# --- branches ----------------------------------------------------------------------------------------


@pytest.mark.spec("L-122", "L-020")
@pytest.mark.feature("branches and tags", format="lance", engine="either")
@pytest.mark.parametrize("name", ["dev", "team/dev-1", "zweig-ä"])
def test_a_branch_is_created_written_and_dropped(kit, numbers, name):
    t = kit.create(numbers)
    t.append(rows(10, 5))
    t.delete("a = 1")
    done = t.refs.create_branch(name, 2, message="try")
    assert (done.version, t.version) == (None, 3)
    branch = kit.open(ref=name)
    assert (branch.version, branch.count()) == (2, 15)
    assert t.refs[name] == Ref(name, "branch", 2, branch=name)
    listed = kit.dataset().branches.list()[name]
    assert (listed["parent_branch"], listed["parent_version"]) == (None, 2)
    manifest = branch._handle.snapshot.manifest
    assert manifest.branch == name and [b.path for b in manifest.base_paths] == [kit.uri]
    assert [
        (f.base_id, b.is_dataset_root) for g, b in zip(manifest.fragments, manifest.base_paths) for f in g.files
    ] == [(0, True)]
    branch.append(rows(20, 2))
    branch.delete("a in (0, 11)")
    expected = {i: v for i, v in content(rows(0, 22)).items() if i not in (0, 11, *range(15, 20))}
    assert content(theirs(kit, name).to_table()) == content(branch.to_arrow()) == expected
    last = branch._handle.snapshot.manifest.fragments
    assert [f.files[0].base_id for f in last] == [0, 0, None]  # new files are the branch's own
    assert [f.deletion_file.base_id if f.deletion_file else "-" for f in last] == [None, None, "-"]
    assert content(t.refresh().to_arrow()) == content(kit.dataset().to_table()) == {
        i: v for i, v in content(rows(0, 15)).items() if i != 1
    }  # fmt: skip
    assert [h.operation for h in branch.history()][:2] == ["delete", "append"]
    assert branch.refs.ancestors() == [4, 3, 2, 1] and t.refs.ancestors() == [3, 2, 1]
    t.refs.drop_branch(name)
    assert kit.dataset().branches.list() == {} and list(t.refs) == ["main"]
    assert not any(f.startswith("tree/") for f in kit.files())
    with pytest.raises(VersionNotFoundError, match="no tag or branch"):
        kit.open(ref=name)
    with pytest.raises((TableNotFoundError, VersionNotFoundError, CommitConflictError)):
        branch.append(numbers)
    kit.dataset().create_branch(name)
    assert kit.open(ref=name).version == 3
    kit.dataset().branches.delete(name)
    t.refs.create_branch(name)
    assert theirs(kit, name).count_rows() == 14
    kit.dataset().branches.delete(name)
    assert list(t.refs) == ["main"]


STEPS = ("append", "delete", "update", "merge", "compact", "tag", "restore", "config")


class Line:
    """The main line or a branch, written by turns: what its rows should be."""

    def __init__(self, kit, ref: str | None, content: dict[int, object]) -> None:
        self.kit, self.ref, self.content = kit, ref, dict(content)

    def ours(self):
        return self.kit.open(ref=self.ref) if self.ref else self.kit.open()

    def pylances(self):
        return theirs(self.kit, self.ref) if self.ref else self.kit.dataset()

    def check(self) -> None:
        assert content(self.ours().to_arrow()) == self.content
        assert content(self.pylances().to_table()) == self.content

    def step(self, step: str, by_us: bool, rng: random.Random) -> None:
        fresh = max(self.content, default=0) + 1
        some = sorted(rng.sample(sorted(self.content), min(3, len(self.content)))) or [-1]
        where = f"a IN ({', '.join(map(str, some))})"
        ours, other = self.ours(), self.pylances()
        if step == "append":
            ours.append(rows(fresh, 4)) if by_us else other.insert(rows(fresh, 4).select(["a", "s"]))
            self.content |= content(rows(fresh, 4))
        elif step == "delete":
            ours.delete(where) if by_us else other.delete(where)
            self.content = {k: v for k, v in self.content.items() if k not in some}
        elif step == "update":
            ours.update({"s": "'up'"}, where=where) if by_us else other.update({"s": "'up'"}, where=where)
            self.content |= {k: "up" for k in some if k in self.content}
        elif step == "merge":
            source = pa.table({"a": pa.array([some[0], fresh], pa.int64()), "s": ["m", "m"]})
            if by_us:
                ours.merge(
                    source, on="target.a = source.a"
                ).when_matched_update_all().when_not_matched_insert_all().execute()
            else:
                other.merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(source)
            self.content |= {some[0]: "m", fresh: "m"}
        elif step == "compact":
            ours.optimize() if by_us else other.optimize.compact_files()
        elif step == "config":
            ours.set_properties({"k": step}) if by_us else other.update_config({"k": step})
        elif step == "restore":
            if by_us:
                ours.restore(ours.version)
            else:
                other.restore()
        elif step == "tag":
            name = f"t{rng.getrandbits(40)}"
            ours.refs.create_tag(name) if by_us else self.kit.dataset().tags.create(name, (self.ref, other.version))
            assert content(self.kit.open(ref=name).to_arrow()) == self.content
            assert content(self.kit.dataset(version=name).to_table()) == self.content


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("version", "stable"), [("2.0", False), ("2.1", True), ("2.2", False), pytest.param("2.2", True, id="2.2 with ids")]
)
@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(i, marks=pytest.mark.slow) for i in range(3, 12))])
def test_branches_by_turns(kit, version, stable, seed):
    """Every operation on the main line, a branch, and a branch of that one, by us and by pylance in random turns."""
    rng = random.Random(f"{seed} {version} {stable}")
    kit.pylance(rows(0, 6), data_storage_version=version, enable_stable_row_ids=stable)
    lines = [Line(kit, None, content(rows(0, 6)))]
    lines[0].step("append", True, rng)
    lines[0].step("delete", seed % 2 == 0, rng)
    for name in ("dev", "dev/inner"):
        parent = lines[-1]
        if (seed + len(lines)) % 2:
            parent.ours().refs.create_branch(name)
        else:
            parent.pylances().create_branch(name)
        lines.append(Line(kit, name, parent.content))
        for step in rng.sample(STEPS, 4):
            for line in lines:
                line.step(step, rng.random() < 0.6, rng)
                line.check()
    for line in lines:
        for step in ("append", "update", "delete", "merge", "compact"):
            line.step(step, True, rng)
            line.check()


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_columns_of_a_branch(kit, version):
    kit.pylance(rows(0, 6), data_storage_version=version)
    kit.open().refs.create_branch("dev")
    branch = kit.open(ref="dev")
    branch.add_column("n", "int")
    branch.append(rows(6, 2).append_column("n", pa.array([1, 2], pa.int32())))
    branch.rename_column("s", "t")
    found = theirs(kit, "dev").to_table()
    assert found.to_pylist() == branch.to_arrow().to_pylist()
    assert found.column_names == ["a", "t", "n"] and found.column("n").to_pylist()[-3:] == [None, 1, 2]
    branch.add_columns({"m": "a * 2"})
    files = [f.base_id for f in branch._handle.snapshot.manifest.fragments[0].files]
    assert files == [0, None]  # beside the file of the main line
    branch.cast_column("m", "string")
    assert theirs(kit, "dev").to_table().to_pylist() == branch.to_arrow().to_pylist()
    assert branch.to_arrow().column("m").to_pylist() == [str(2 * a) for a in range(8)]
    branch.drop_column("m")
    branch.drop_column("t")
    assert theirs(kit, "dev").to_table().to_pylist() == branch.to_arrow().to_pylist()
    assert branch.to_arrow().column_names == ["a", "n"] and kit.read().column_names == ["a", "s"]
    branch.overwrite(pa.table({"a": [7], "n": pa.array([8], pa.int32())}))
    assert theirs(kit, "dev").to_table().to_pylist() == branch.to_arrow().to_pylist() == [{"a": 7, "n": 8}]
    branch.restore(branch.version - 1)
    assert theirs(kit, "dev").to_table().to_pylist() == branch.to_arrow().to_pylist()
    assert branch.count() == 8


@pytest.mark.spec("L-071")
def test_a_stale_handle_on_a_branch(kit, numbers):
    """Writes that were planned before the other's commit follow it, or are planned again."""
    kit.create(numbers).refs.create_branch("dev")
    stale, ours = theirs(kit, "dev"), kit.open(ref="dev")
    ours.append(rows(10, 2))
    ours.delete("a = 1")
    stale.insert(rows(20, 1))
    stale.delete("a = 2")
    with kit.overtaken_by(lambda: theirs(kit, "dev").delete("a = 3")):
        ours.update({"s": "'u'"}, where="a IN (3, 4)")
    with kit.overtaken_by(lambda: theirs(kit, "dev").insert(rows(30, 1))):
        ours.delete("a = 5")
    expected = content(rows(0, 12)) | content(rows(20, 1)) | content(rows(30, 1)) | {4: "u"}
    expected = {a: s for a, s in expected.items() if a not in (1, 2, 3, 5)}
    assert content(theirs(kit, "dev").to_table()) == content(ours.to_arrow()) == expected
    assert content(kit.read()) == content(numbers)
    assert ours.find_write(ours.history()[0].write_id) == ours.version


def test_a_branch_that_others_need_stays(kit, numbers):
    t = kit.create(numbers)
    t.refs.create_branch("dev")
    dev = kit.open(ref="dev")
    dev.append(rows(10, 1))
    dev.refs.create_branch("dev/inner")
    dev.refs.create_tag("v")
    assert t.refs["v"] == Ref("v", "tag", 2, branch="dev")
    before = kit.files()
    with pytest.raises(InvalidArgumentError, match="the branch 'dev/inner', the tag 'v'"):
        t.refs.drop_branch("dev", dry_run=True)
    with pytest.raises(InvalidArgumentError, match="the branch 'dev/inner', the tag 'v'"):
        t.refs.drop_branch("dev")
    with pytest.raises(OSError, match="can not delete"):
        kit.dataset().branches.delete("dev")
    with pytest.raises(InvalidArgumentError, match="is open at 'dev'"):
        dev.refs.drop_branch("dev")
    assert kit.files() == before
    kit.open(ref="dev/inner").delete("a = 0")
    assert theirs(kit, "dev/inner").count_rows() == 10
    t.refs.drop_tag("v")
    t.refs.drop_branch("dev/inner")
    assert dev.refresh().count() == 11
    t.refs.drop_branch("dev")
    assert list(t.refs) == ["main"] and not any(f.startswith("tree/") for f in kit.files())


def test_a_folder_inside_of_a_dropped_branch_stays(kit, numbers):
    """`dev/inner` is not a branch of `dev`, but its folder is in that of `dev`."""
    t = kit.create(numbers)
    t.refs.create_branch("dev")
    t.refs.create_branch("dev/inner")
    kit.open(ref="dev").append(numbers)
    kit.open(ref="dev/inner").append(rows(10, 1))
    referenced = set(kit.open(ref="dev")._handle.snapshot.offers(LiveFiles).uris())
    assert {f"{kit.location.uri}/{f}" for f in kit.files()} == referenced
    t.refs.drop_branch("dev")
    assert theirs(kit, "dev/inner").count_rows() == kit.open(ref="dev/inner").count() == 11
    assert all(f.startswith("tree/dev/inner/") for f in kit.files() if f.startswith("tree/"))


def test_a_tag_may_have_the_name_of_a_branch(kit, numbers):
    """As pylance allows it. The tag is what the name says, and it is read only."""
    kit.pylance(numbers)
    kit.dataset().create_branch("both")
    theirs(kit, "both").insert(numbers)
    kit.dataset().tags.create("both", ("both", 1))
    t = kit.open(ref="both")
    assert (t.version, t.count()) == (1, 10) and t.refresh().version == 1
    with pytest.raises(BoathouseError, match="is a tag"):
        t.append(numbers)


REFUSED = {
    "fast_forward": lambda t: t.refs.fast_forward("dev", "main"),
    "rollback": lambda t: t.refs.rollback(1),
    "set_current": lambda t: t.refs.set_current(1),
    "replacing a branch": lambda t: t.refs.create_branch("dev", or_replace=True),
    "replacing a branch ": lambda t: t.refs.replace_branch("dev"),
    "retention of a tag": lambda t: t.refs.create_tag("x", max_ref_age_ms=1),
    "retention of a branch": lambda t: t.refs.create_branch("x", min_snapshots_to_keep=1),
    "retention of a branch or tag": lambda t: t.refs.retain("dev", max_snapshot_age_ms=1),
    "cherry_pick": lambda t: t.refs.cherry_pick(1),
}


@pytest.mark.parametrize("operation", REFUSED)
def test_what_branches_of_lance_are_not(kit, numbers, operation):
    t = kit.create(numbers)
    t.refs.create_branch("dev")
    before = kit.files()
    with pytest.raises(UnsupportedFeatureError, match=f"^{operation.strip()} is not offered for lance tables"):
        REFUSED[operation](t)
    assert kit.files() == before


def test_a_version_that_is_not_retained(kit, numbers):
    t = kit.create(numbers)
    t.append(numbers)
    kit.manifests()[-1].unlink()
    for make in (t.refs.create_tag, t.refs.create_branch):
        with pytest.raises(VersionNotFoundError, match="The retained versions are 2"):
            make("x", 1)
    t.refs.create_branch("dev")
    kit.open(ref="dev").append(numbers)
    with pytest.raises(VersionNotFoundError, match="version 3 does not exist"):
        t.refs.create_tag("x", 3)  # a version of dev only


# --- several writers ---------------------------------------------------------------------------------


MAKES = {"tag": lambda t, name: t.refs.create_tag(name), "branch": lambda t, name: t.refs.create_branch(name)}


@pytest.mark.parametrize("type", MAKES)
@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("theirs_too", [False, True])
def test_two_that_create_the_same(kit, numbers, type, theirs_too, seen):
    t = kit.create(numbers)
    made = (
        (lambda: kit.dataset().tags.create("x", 1) if type == "tag" else kit.dataset().create_branch("x"))
        if theirs_too
        else (lambda: MAKES[type](kit.open(), "x"))
    )
    with kit.overtaken_by(made, seen), pytest.raises(AlreadyExistsError, match=f"there is a {type} 'x'"):
        MAKES[type](t, "x")
    assert list(t.refs) == ["main", "x"] and kit.open(ref="x").count() == 10
    if type == "branch":
        assert theirs(kit, "x").count_rows() == 10


@pytest.mark.parametrize("type", MAKES)
def test_threads_that_create_the_same(kit, numbers, type):
    kit.create(numbers)

    def make(i: int) -> bool:
        try:
            MAKES[type](kit.open(), "x")
            return True
        except (AlreadyExistsError, CommitConflictError):
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(make, range(16))) == 1
    assert kit.open(ref="x").count() == 10 and list(kit.open().refs) == ["main", "x"]


@pytest.mark.parametrize("seen", [True, False])
def test_changes_meanwhile(kit, numbers, seen):
    t = kit.create(numbers)
    for _ in range(2):
        t.append(numbers)
    t.refs.create_tag("v", 1)
    with kit.overtaken_by(lambda: kit.dataset().tags.update("v", 2), seen):
        assert t.refs.replace_tag("v", 2).commit is None  # planned again, and it is there already
    with kit.overtaken_by(lambda: kit.dataset().tags.update("v", 3), seen):
        assert t.refs.replace_tag("v", 1).retries == 1
    assert t.refs["v"].version == 1
    with kit.overtaken_by(lambda: kit.dataset().tags.delete("v"), seen), pytest.raises(VersionNotFoundError):
        t.refs.drop_tag("v")
    with kit.overtaken_by(lambda: kit.pylance(numbers, mode="append"), seen):
        t.refs.create_tag("w")
    assert t.refs["w"].version == 3, "the version that it was planned on"
    t.refs.create_branch("dev")
    with kit.overtaken_by(lambda: kit.open(ref="dev").append(numbers), seen):
        t.refs.drop_branch("dev")
    assert list(t.refs) == ["main", "w"]


@pytest.mark.spec("L-073")
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_crash_while_a_branch_is_created(kit, numbers, at):
    """Written are the transaction file, the branch's file and its first version: before the last one, it is listed and
    can be dropped."""
    kit.create(numbers)
    stores = Stores(wrap=lambda inner: FaultyStorage(inner, Plan.script(Fault.CRASH, at=at)))
    process = multiprocessing.get_context("fork").Process(target=create, args=(kit, stores))
    process.start()
    process.join(60)
    assert process.exitcode == 137
    t = kit.open()
    assert list(t.refs) == (["main", "dev"] if at == 3 else ["main"])
    if at == 3:
        with pytest.raises(TableNotFoundError):
            kit.open(ref="dev")
        with pytest.raises(AlreadyExistsError):
            t.refs.create_branch("dev")
        t.refs.drop_branch("dev")
    t.refs.create_branch("dev")
    assert theirs(kit, "dev").count_rows() == kit.open(ref="dev").count() == 10


def create(kit, stores, name="dev", type="branch"):
    from boathouse.engines.local import LocalEngine
    from boathouse.lance.adapter import FORMAT
    from boathouse.ops.handle import Handle
    from boathouse.ops.run import run
    from boathouse.ops.table.refs import RefSet
    from boathouse.table.refs import Retention

    handle = Handle(FORMAT.open(TableContext(kit.location, stores)))
    return run(handle, LocalEngine(), RefSet(name, type, None, Retention()))


@pytest.mark.spec("L-074")
@pytest.mark.parametrize(("type", "at"), [("tag", 1), ("branch", 1), ("branch", 2), ("branch", 3)])
@pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNSENT, Fault.REFUSED])
def test_answers_that_are_lost_or_refusals(kit, numbers, type, at, fault):
    """It is there, whole, or an error was raised and nothing is, but perhaps a transaction file that nobody names."""
    kit.create(numbers)
    before = kit.files()
    stores = Stores(wrap=lambda inner: FaultyStorage(inner, Plan.script(fault, at=at, of="put")))
    try:
        create(kit, stores, "x", type)
    except BoathouseError:
        assert all("_transactions" in f for f in kit.files() - before)
        create(kit, Stores(), "x", type)
    assert list(kit.open().refs) == ["main", "x"] and kit.open(ref="x").count() == 10


def test_what_is_left_of_a_branch(kit, numbers):
    """Versions in a folder that no file names are not taken for the new branch's."""
    t = kit.create(numbers)
    t.refs.create_branch("dev")
    (kit.root / "_refs/branches/dev.json").unlink()
    before = kit.files()
    with pytest.raises(AlreadyExistsError, match="not listed, as after an interrupted"):
        t.refs.create_branch("dev")
    assert kit.files() == before


@pytest.mark.parametrize("text", ["{", "[]", '{"parentVersion": "x"}', '{"parentVersion": 1, "identifier": [3]}', "{}"])
def test_damaged_files_of_branches(kit, numbers, text):
    t = kit.create(numbers)
    t.refs.create_branch("dev")
    (kit.root / "_refs/branches/dev.json").write_text(text)
    with pytest.raises(BoathouseError, match=r"(the|a) branch"):
        len(t.refs)


# --- beside everything else --------------------------------------------------------------------------


@pytest.mark.spec("L-125")
@pytest.mark.parametrize("by_us", [True, False])
def test_an_index_on_a_branch(kit, by_us):
    """Its files stay in the main line's folder, which the branch names by a base path."""
    kit.pylance(rows(0, 200))
    kit.dataset().create_scalar_index("a", "BTREE")
    if by_us:
        kit.open().refs.create_branch("dev")
    else:
        kit.dataset().create_branch("dev")
    branch = kit.open(ref="dev")
    branch.append(rows(200, 50))
    branch.delete("a = 17")
    branch.update({"s": "'x'"}, where="a = 18")
    found = theirs(kit, "dev")
    assert [i.name for i in found.describe_indices()] == ["a_idx"]
    for a in (3, 17, 18, 199, 200, 249):
        expected = [] if a == 17 else [{"a": a, "s": "x" if a == 18 else rows(a, 1).column("s")[0].as_py()}]
        assert found.to_table(filter=f"a = {a}").to_pylist() == expected
        assert branch.scan(where=f"a = {a}").to_arrow().to_pylist() == expected
    assert "ScalarIndexQuery" in found.scanner(filter="a = 3").explain_plan()
    found.optimize.optimize_indices()
    branch.refresh()
    assert branch.scan(where="a = 200").count() == 1


def test_pylance_cleans_up_beside_our_refs(kit, numbers):
    t = kit.create(numbers)
    t.refs.create_tag("v1")
    t.delete("a = 3")
    t.refs.create_branch("dev")
    branch = kit.open(ref="dev")
    t.overwrite(rows(100, 1))
    t.optimize()
    kit.dataset().cleanup_old_versions(retain_versions=1, delete_unverified=True, error_if_tagged_old_versions=False)
    assert content(branch.refresh().to_arrow()) == {i: v for i, v in content(numbers).items() if i != 3}
    assert theirs(kit, "dev").count_rows() == 9
    assert kit.open(ref="v1").count() == 10 and kit.read().num_rows == 1


def test_a_table_of_version_0_1_has_branches(kit):
    """Its dictionaries are in the manifest: those of the branch have them too. Rows are deleted."""
    data = pa.table({"a": pa.array(range(6), pa.int64()), "s": pa.array(["x", "y"] * 3).dictionary_encode()})
    kit.pylance(data, data_storage_version="legacy")
    kit.open().refs.create_branch("dev")
    branch = kit.open(ref="dev")
    branch.delete("a = 1")
    expected = [r for r in data.to_pylist() if r["a"] != 1]
    assert branch.to_arrow().to_pylist() == theirs(kit, "dev").to_table().to_pylist() == expected
