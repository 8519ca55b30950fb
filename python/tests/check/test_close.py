"""A host that has failed takes no part in a check any more: the next one asks it anew, and hears why it fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framegauge.check import run as check
from framegauge.check.addresses import Ends
from framegauge.check.judgement import planner
from framegauge.check.plan import Asked, Member, Path, Prepared
from framegauge.errors import AgentFailure


class Host:
    """Answers as an agent does that cannot search."""

    def __init__(self, name: str) -> None:
        self.name, self.serving, self.agent = name, False, self

    def begin(self, method: str, params: Mapping[str, Any] | None = None, _progress: object = None) -> Host:
        self.method, self.params = method, params or {}
        return self

    def result(self, _seconds: float | None = None) -> Any:
        if self.method == "check.run":
            raise AgentFailure(f"{self.name}: check.run: no memory")
        if self.method == "check.serve" and self.serving:
            raise AgentFailure(f"{self.name}: this host takes part in a check already")
        self.serving = self.method == "check.serve"
        endpoint = {"address": f"10.0.0.{self.name}", "ports": [9], "tcp_port": 8}
        return {"endpoints": [endpoint]} if self.serving else {}


def test_each_check_tells_the_true_reason() -> None:
    members = [Member(Host(name)) for name in "12"]  # type: ignore[arg-type]
    facts: Any = {name: {"interfaces": []} for name in "12"}
    paths = [
        Path(one, other, 4, Ends(f"10.0.0.{one}", f"10.0.0.{other}", "eth0"))
        for one, other in ("12", "21")
    ]  # fmt: skip
    for _ in range(2):
        plan, cost = (
            planner.Plan("full_mesh", (("1", "2"), ("2", "1")), 2, {"1": "", "2": ""}),
            planner.Cost(0, 0, None),
        )
        prepared = Prepared(members, facts, {}, plan, paths, {"1": None, "2": None}, cost)
        document = check.run(prepared, Asked()).document
        assert [host["error"] for host in document["hosts"]] == [f"{name}: check.run: no memory" for name in "12"]
        assert not any(member.host.agent.serving for member in members)  # type: ignore[attr-defined]
