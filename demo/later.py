"""A view, and a condition that comes after it: how many files Spark reads for it, by Spark's own metrics."""

from __future__ import annotations

from typing import Any

VIEW = "flights_so_far"
QUERY = f"SELECT count(*) AS flights FROM {VIEW} WHERE month = {{month}}"


def files_read(frame: Any) -> int | None:
    """The files that a query read that has run; None where none of its scans counts them: tasks of boathouse read."""
    stack, found = [frame._jdf.queryExecution().executedPlan()], []
    while stack:
        node = stack.pop()
        if node.nodeName() == "AdaptiveSparkPlan":
            stack.append(node.finalPhysicalPlan())
        elif node.nodeName().endswith("QueryStage"):
            stack.append(node.plan())
        metric = node.metrics().get("numFiles")
        if metric.isDefined():
            found.append(int(metric.get().value()))
        children = node.children()
        stack += [children.apply(i) for i in range(children.size())]
    return sum(found) if found else None
