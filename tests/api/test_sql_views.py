"""How many views for conditions a session of Connect gets: they stay, as queries refer to them until they run."""

from __future__ import annotations

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.api.sql import tables as sql_tables
from boathouse.api.sql.tables import Tables
from boathouse.api.table import Table
from boathouse.expr.sql_tokens import tokenize


class Frame:
    def __init__(self, made: dict, where) -> None:
        self.made, self.where = made, where

    def createOrReplaceTempView(self, name: str) -> None:
        self.made[name] = self.where


class Session:
    """No Spark: it only keeps views."""


@pytest.fixture
def views(monkeypatch, tmp_path):
    """The conditions of the views that queries get, by their names."""
    uri, made = str(tmp_path / "t"), {}
    bh.write(pa.table({"p": [1, 2], "x": [1.0, 2.0]}), uri)

    class Scan:
        def __init__(self, where):
            self.where = where

        def to_spark(self, spark):
            return Frame(made, self.where)

    monkeypatch.setattr(Table, "scan", lambda self, columns=None, where=None: Scan(where))
    monkeypatch.setattr(Tables, "table", lambda self, name, at=None: bh.open(uri))

    def ask(session: object, *conditions: str) -> dict:
        for where in conditions:
            text = f"SELECT * FROM delta.`{uri}` WHERE {where}"
            Tables(session, text, early=True).with_views(tokenize(text))
        return made

    return ask


def test_a_session_gets_so_many_views_for_conditions(views, monkeypatch):
    monkeypatch.setattr(sql_tables, "MOST_EARLY_VIEWS", 3)
    session = Session()
    assert sorted(views(session, "p = 1", "p = 2 AND x > 1", "p = 1", "p = 3").values()) == ["p = 1", "p = 2", "p = 3"]
    made = views(session, "p = 4", "p = 5", "p = 2", "x > 7")
    assert len(made) == 4 and list(made.values()).count(None) == 1
    assert "p = 6" in views(Session(), "p = 6").values()
