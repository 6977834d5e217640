"""A commit of somebody else, between the planning and the commit of an operation."""

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
