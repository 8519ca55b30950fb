"""The file of a roll-out is one that `framegauge rollout` takes, for exactly the hosts that were decided about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from decide.test_judge import facts, paths
from helpers.check_lab import Lab
from summary.test_sentence import BETTER, one, summary

from framegauge.decide import judge, question, rollout
from framegauge.decide.steps import Found
from framegauge.files.machines import Machine
from framegauge.rollout import file as rollout_file


def written(names: list[Any], lab: Lab, folder: Path, **more: Any) -> Any:
    words = [each for each in names if isinstance(each, str)]
    machines = [each for each in names if not isinstance(each, str)]
    asked = question.asked(words, machines, False, None, 9000, None)
    read = facts(*[9710] * len(names)) | more
    found = Found(read, None, Lab((2,)).document(), lab.document(), True, None, summary(one(BETTER)), {})
    text = rollout.text(asked, found, judge.conclude(found.paths(9000), found.benefit(9000)))
    if text is None:
        return None
    (folder / "rollout.yaml").write_text(text)
    return rollout_file.load(folder / "rollout.yaml")


def test_all_hosts_from_their_mtu_to_the_target(tmp_path: Path) -> None:
    machines = [Machine(name="b", ssh="b.example", options=["-p", "2222"], ports="40000-40009"), Machine(name="c")]
    found = written(["a%eth0", *machines], Lab((3,)), tmp_path)
    assert [each.name for each in found.machines] == ["a", "b", "c"]
    assert found.machines[1] == machines[0].model_copy(update={"interface": "eth0"})
    assert (found.asked.old_mtu, found.asked.target_mtu, found.asked.scope) == (1500, 9000, "subnets")
    assert set(found.asked.interfaces.values()) == {"eth0"}
    assert found.asked.waves == (("a",), ("b", "c"))


def test_a_subnet_s_hosts_alone(tmp_path: Path) -> None:
    lab = Lab((2, 2))
    lab.fault(lab.some(lambda one, other: "d" in (one, other)), hops=[("", "silent")])
    assert set(paths(lab).subnets) == {"10.1.0.0/24"}
    found = written(["a", "b", "c", "d"], lab, tmp_path)
    assert [each.name for each in found.machines] == ["a", "b"]


def test_none_unless_it_is_to_be_done_and_clear_where(tmp_path: Path) -> None:
    bad = Lab((2,)).fault([("a", "b", 4)], hops=[("", "silent")])
    assert written(["a", "b"], bad, tmp_path) is None
    assert written(["a", "b"], Lab((2,)), tmp_path, present_mtu=9000) is None
    several = facts(9710, 9710)["hosts"]
    several[0]["interfaces"] *= 2
    assert written(["a", "b"], Lab((2,)), tmp_path, hosts=several) is None
