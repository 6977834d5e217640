"""Write, audit, publish on Spark: what a session says of where its writes go, as iceberg-spark reads it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from boathouse import registry
from boathouse.api.engines import described
from boathouse.api.session_settings import user_metadata
from boathouse.errors import InvalidArgumentError
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.run import newest, run
from boathouse.ops.table.refs import RefSet
from boathouse.ops.write import Done, Write
from boathouse.table.engine import Engine
from boathouse.table.features import Refs, Staging
from boathouse.table.location import At
from boathouse.table.refs import MAIN, Retention
from boathouse.table.snapshot import Snapshot

ID: Final = "spark.wap.id"
BRANCH: Final = "spark.wap.branch"
_ROWS: Final = frozenset({"append", "overwrite", "delete", "update", "merge"})
"""Operations that change rows; maintenance and metadata are not audited."""


def run_audited(
    handle: Handle, engine: Engine, write: Write, options: WriteOptions, written: Done | None = None
) -> tuple[Snapshot, WriteResult]:
    """`ops.run.run`, where the session and the table say so staged under `spark.wap.id`, or on `spark.wap.branch`.

    Raises what `run` raises, and InvalidArgumentError for a session that says both, or another branch than the call.
    """
    options = _with_message(handle, engine, options)
    with described(engine, write.operation, str(handle.location)):
        return _run(handle, engine, write, options, written)


def _run(
    handle: Handle, engine: Engine, write: Write, options: WriteOptions, written: Done | None
) -> tuple[Snapshot, WriteResult]:
    refs = handle.snapshot.offers(Refs) if write.operation in _ROWS else None
    asked = refs is not None and refs.shared  # elsewhere nothing is staged
    id, branch = _said(engine) if asked else (None, None)
    if id is None and branch is None:
        return run(handle, engine, write, options, written)
    handle = newest(handle)
    staging = handle.snapshot.offers(Staging)
    if staging is None:
        return run(handle, engine, write, options, written)
    where = str(handle.location)
    if id is not None and branch is not None:
        raise InvalidArgumentError(
            f"{ID} is {id!r} and {BRANCH} is {branch!r}",
            where=where,
            advice="unset one of them: they exclude each other",
        )
    if branch is None:
        named = replace(options, metadata={staging.key: str(id), **options.metadata})
        return run(handle, engine, write, named, written)
    if handle.snapshot.ref not in (None, branch):
        raise InvalidArgumentError(
            f"the write is to the branch {handle.snapshot.ref!r}, and {BRANCH} is {branch!r}",
            where=where,
            advice=f"unset {BRANCH}, or leave the branch out",
        )
    _, result = run(_on_branch(handle, engine, branch, options.dry_run), engine, write, options, written)
    return handle.snapshot.newest(), result


def _with_message(handle: Handle, engine: Engine, options: WriteOptions) -> WriteOptions:
    """The options with the session's message for the history of Delta tables, where the call has none."""
    spark = getattr(engine, "spark", None)
    if spark is None or options.message is not None or handle.snapshot.format != "delta":
        return options
    return replace(options, message=user_metadata(spark))


def _said(engine: Engine) -> tuple[str | None, str | None]:
    """The id and the branch of the engine's session."""
    conf = getattr(getattr(engine, "spark", None), "conf", None)
    return (None, None) if conf is None else (_setting(conf, ID), _setting(conf, BRANCH))


def _setting(conf: Any, name: str) -> str | None:
    found = conf.get(name, None)
    return None if found is None or not str(found).strip() else str(found)


def _on_branch(handle: Handle, engine: Engine, branch: str, dry_run: bool) -> Handle:
    """The newest version of the branch, which is made of the head if it is not there. Raises InvalidArgumentError for
    a table without rows, which has no version that could be named."""
    snapshot = handle.snapshot
    refs = snapshot.offers(Refs)
    if snapshot.ref == branch or refs is None or branch == MAIN:
        return handle
    if branch not in refs.named():
        if dry_run:
            return handle
        if MAIN not in refs.named():
            raise InvalidArgumentError(
                f"{BRANCH} is {branch!r}, and the table has no version that the branch could begin with",
                where=str(handle.location),
                advice="write the first rows without it",
            )
        run(handle, engine, RefSet(branch, "branch", None, Retention(), "absent-or-kept"), WriteOptions())
    found = registry.load(snapshot.format).open(handle.context, At(ref=branch))
    return replace(handle, snapshot=found, loaded=None)
