"""A commit of somebody else, between the planning and the commit of an operation."""

from dataclasses import replace

import pytest

import boathouse as bh
from boathouse.ops import run as runner


def with_rival(monkeypatch, table, action, rival_action, times=1):
    """Runs `action`, and the rival's between its planning and its commit."""
    inner, left = runner.commit, [times]

    def commit(target, change, fresh=False):
        if left[0]:
            left[0] -= 1
            monkeypatch.setattr(runner, "commit", inner)
            rival_action(bh.open(table.uri))
            monkeypatch.setattr(runner, "commit", commit)
        return inner(target, change, fresh)

    monkeypatch.setattr(runner, "commit", commit)
    try:
        return action(table)
    finally:
        monkeypatch.setattr(runner, "commit", inner)


class Stopped(Exception):
    """Before anything is committed."""


def verdicts(monkeypatch, table, operation, rival):
    """What the commit of the operation finds after the rival's, without a level of its own and under both; None where
    the versions since are gone."""
    inner, found = runner.commit, {}

    def commit(target, change, fresh=False):
        monkeypatch.setattr(runner, "commit", inner)
        rival(bh.open(table.uri))
        head = target.newest()
        winners = head.commits.winners(change.planned)
        for level in (None, "serializable", "snapshot"):
            asked = replace(change, isolation=level)
            found[level] = None if winners is None else head.commits.check(asked, winners)
        raise Stopped

    monkeypatch.setattr(runner, "commit", commit)
    with pytest.raises(Stopped):
        operation(table)
    monkeypatch.setattr(runner, "commit", inner)
    return found
