"""From the question to the page on hosts in this process: what is run, what is reused, and what is left out.

The hosts answer as agents do (helpers/own_hosts.py); the study is run on an invented network.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers import pages
from helpers.own_hosts import Network
from helpers.schemas import conforms

from framegauge.check.plan import Asked, Member
from framegauge.cli import commands
from framegauge.decide import answer, page, trial
from framegauge.decide.answer import Answered
from framegauge.decide.folder import STEPS, Folder
from framegauge.decide.places import Progress, Say, checked, lease_seconds
from framegauge.decide.question import Question
from framegauge.decide.steps import Hands
from framegauge.errors import CorruptResults, FolderInUse, FolderNotEmpty, InputError, TooBusy
from framegauge.study.model import Study
from framegauge.testbeds.base import Host, Json

FAKE = """\
testbed: {kind: fake, fake: {noise: 0.3 %}}
factors: {mtu: {levels: [1500, 9000], baseline: 1500}}
workloads: [{stream: {size: 10 MB}}]
blocks: 4
margins: {goodput: 1 %}
"""


STUDIES: dict[str, Path] = {}


class Hosts:
    """The hosts of a network; `fixed`: why they cannot be raised. What is asked of them is counted."""

    scope = "measured"
    bits_per_second: float | None = None
    built: str | None = "nobody runs these hosts"

    def __init__(self, fixed: str | None = None) -> None:
        self.network = Network(("alpha", "beta"), "", lambda *_: None)
        self.network.begin()
        self.fixed, self.opened = fixed, 0

    def members(self) -> list[Member]:
        return [Member(Host(name, "", self.network.open(name))) for name in self.network.names]

    @contextmanager
    def hosts(self, say: Say) -> Iterator[list[Member]]:
        self.opened += 1
        yield self.members()

    def preflight(self, interfaces: Mapping[str, str], target_mtu: int, say: Say) -> Json:
        raise AssertionError("nobody runs these hosts")

    def unchangeable(self) -> str | None:
        return self.fixed

    def raised(self, present: Json, target_mtu: int, say: Say, progress: Progress) -> Json:
        present_mtu = present["target_mtu"]
        assert self.network.mtu == dict.fromkeys(self.network.names, present_mtu)
        for name in self.network.names:
            self.network.set(name, target_mtu)
        try:
            return checked(self.members(), Asked(target_mtu), progress)
        finally:
            for name in self.network.names:
                self.network.set(name, present_mtu)


class Decision:
    """A question about such hosts, its folder, and the studies that were run."""

    def __init__(self, path: Path, place: Hosts, study: str | None = FAKE) -> None:
        self.place, self.folder, self.ran = place, Folder(path), 0
        self.study = None if study is None else trial.study_file.parse(study, "the study")
        self.said: list[str] = []
        self.seconds = 1.0

    def question(self) -> Question:
        place = self.place

        class Here(Question):
            def place(self, allowed: bool) -> Any:
                return place

        return Here(("alpha", "beta"), (), False, None, 9000, self.study)

    def run(self, study: Callable[[Study], None] | None = None) -> Answered:
        hands = Hands(self.said.append, lambda *_: None, study or self._study, self.seconds)
        with self.folder.held(self.folder.has("asked")):
            self.folder.keep("asked", {**self.question().as_json(), "study": None})
            return answer.answer(self.question(), False, self.folder, hands)

    def _study(self, study: Study) -> None:
        """Runs it, or takes the folder of the same study that another test has run: drawing its page takes most time."""
        self.ran += 1
        text = trial.study_file.dump(study)
        if text not in STUDIES:
            STUDIES[text] = Path(tempfile.mkdtemp(dir=self.folder.path.parent.parent)) / "study"
            commands.run_study(study, STUDIES[text], False, lambda _: None, self.said.append)
        shutil.copytree(STUDIES[text], self.folder.study)


def test_from_nothing_to_the_page(tmp_path: Path) -> None:
    asked = Decision(tmp_path / "out", Hosts())
    found = asked.run()
    assert found.exit_code == 0
    document = found.document
    conforms(document, page.schema())
    assert document == json.loads((tmp_path / "out/decision.json").read_text())
    assert (document["choice"], document["paths"], document["brings"]) == ("do_it", "clear", "helps")
    assert document["text"].startswith("Do it: jumbo frames (MTU 9000) raise the goodput of bulk transfers")
    assert "all 2 pairs carry packets of 9000 bytes" in document["text"]
    assert {each["name"]: each["left_out"] for each in document["steps"]} == dict.fromkeys(STEPS) | {
        "preflight": "nobody runs these hosts",
        "estimate": "nobody runs these hosts",
    }
    assert found.place.read_text().startswith("<!doctype html>")
    assert {each.name for each in (tmp_path / "out").iterdir()} == {
        "asked.json", "facts.json", "check-present.json", "check-raised.json", "study", "study.json", "decision.json",
        "decision.html", "rollout.yaml", ".lock",
    }  # fmt: skip
    assert set(asked.place.network.mtu.values()) == {1500}


def test_what_is_there_is_not_asked_again(tmp_path: Path) -> None:
    asked = Decision(tmp_path, Hosts())
    first = asked.run().document
    requests, opened = asked.place.network.requests, asked.place.opened
    assert asked.run().document == first
    assert (asked.place.network.requests, asked.place.opened, asked.ran) == (requests, opened, 1)


@pytest.mark.parametrize("name", ["asked", "facts", "check-present", "check-raised", "study"])
def test_a_step_that_was_changed_is_no_evidence(tmp_path: Path, name: str) -> None:
    asked = Decision(tmp_path, Hosts())
    asked.run()
    if name == "asked":
        asked.folder.keep(name, {"schema": 1, "hosts": [], "machines": [], "rack": True, "testbed": None, "target_mtu": 9000, "study": None})  # fmt: skip
    path = tmp_path / f"{name}.json"
    found = json.loads(path.read_text())
    path.write_text(json.dumps({**found, "remark": "it was 9001"}))
    with pytest.raises(CorruptResults, match=rf"{name}\.json: seal: found other content, .*--again makes it anew"):
        asked.folder.load(name)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_is_forgotten_is_run_again_with_those_that_rest_on_it(step: str, tmp_path: Path) -> None:
    asked = Decision(tmp_path, Hosts())
    asked.run()
    asked.folder.forget(step)
    kept = {path.name for path in tmp_path.glob("*.json")} - {"asked.json", "decision.json"}
    checks, study = {"check-present.json", "check-raised.json"}, {"study.json"}
    assert (
        kept
        == {
            "facts": set(),
            "check": {"facts.json"},
            "preflight": {"facts.json", *checks, *study},
            "estimate": {"facts.json", *checks, *study},
            "study": {"facts.json", *checks},
        }[step]
    )
    assert asked.folder.study.exists() == (step in ("preflight", "estimate"))
    requests = asked.place.network.requests
    asked.run()
    assert asked.ran == (1 if step in ("preflight", "estimate") else 2)
    assert (asked.place.network.requests > requests) == (step in ("facts", "check"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Json:
    """The document of a decision that nobody interrupted."""
    return Decision(tmp_path_factory.mktemp("whole"), Hosts()).run().document


@pytest.mark.parametrize("after", [1, 3, 6, 9, 12, 16, 20, 24, 100])
def test_interrupted_anywhere_it_goes_on_and_answers_the_same(after: int, whole: Json, tmp_path: Path) -> None:
    """After this many requests to hosts, or, if there are no more, in the study."""
    asked = Decision(tmp_path / "cut", Hosts())
    network, left = asked.place.network, [after]
    take = network.open

    def opened(name: str) -> Any:
        agent = take(name)
        begin = agent.begin

        def counted(*words: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return begin(*words, **more)

        agent.begin = counted  # type: ignore[method-assign]
        return agent

    network.open = opened  # type: ignore[method-assign]

    def study(wanted: Study) -> None:
        if left[0] > 0:
            left[0] = 0
            raise KeyboardInterrupt
        asked._study(wanted)

    with pytest.raises(KeyboardInterrupt):
        asked.run(study)
    assert not (tmp_path / "cut/decision.json").exists()
    network.open = take  # type: ignore[method-assign]
    assert set(network.mtu.values()) == {1500}
    found = asked.run().document
    # The same runs in another order of the clock: what was concluded is the same.
    for key in ("choice", "paths", "brings", "text", "steps"):
        assert found[key] == whole[key], key


def test_hosts_that_may_not_be_changed_are_only_read(tmp_path: Path) -> None:
    asked = Decision(tmp_path, Hosts("changes are not allowed without --allow-changes"))
    found = asked.run()
    conforms(found.document, page.schema())
    assert found.exit_code == 2
    assert found.document["brings"] == "not measured"
    assert asked.ran == 0
    assert asked.folder.has("check-target")
    assert not asked.folder.has("check-raised")
    commands_ = [line["command"] for each in found.document["sections"] for line in each["lines"] if line["command"]]
    assert f"framegauge decide --resume --out {tmp_path.name} --allow-changes" in commands_
    # Once it is allowed, what was read is reused.
    asked.place.fixed = None
    again = asked.run()
    assert again.exit_code == 0
    assert asked.ran == 1


def test_a_machine_too_busy_for_the_study_cannot_tell_and_is_asked_again(tmp_path: Path) -> None:
    def study(_: Study) -> None:
        raise TooBusy("too busy: 1 Gb/s is not carried at the moment (idle CPU)")

    asked = Decision(tmp_path / "out", Hosts())
    found = asked.run(study)
    assert found.exit_code == 2
    assert found.document["choice"] == "cannot_tell"
    left_out = {each["name"]: each["left_out"] for each in found.document["steps"]}
    assert left_out["study"] == "this machine is too busy: 1 Gb/s is not carried at the moment (idle CPU)"
    assert "this machine is too busy: 1 Gb/s is not carried" in pages.as_read(found.place.read_text())
    # The sentence stays short; what to do about it is the next step.
    assert found.document["text"].startswith(
        "Can't tell: what they bring was not measured, because this machine is too busy; "
    )
    [then] = [each for each in found.document["sections"] if each["name"] == "next"]
    assert [line["command"] for line in then["lines"]] == ["framegauge decide --resume --out out"]
    assert not asked.folder.has("study")
    assert asked.run().exit_code == 0


def test_where_nothing_helps_the_answer_is_no(tmp_path: Path) -> None:
    asked = Decision(tmp_path, Hosts(), FAKE.replace("goodput: 1 %", "goodput: 30 %").replace("blocks: 4", "blocks: 8"))
    found = asked.run()
    assert (found.exit_code, found.document["choice"], found.document["brings"]) == (1, "do_not", "nothing")
    assert found.document["text"].startswith("Don't: jumbo frames (MTU 9000) stay within the margin (30 % in goodput)")


def test_a_fault_ends_it_before_the_study(tmp_path: Path) -> None:
    """The path from beta carries 1500 bytes when the hosts are raised, as a port that was forgotten has it."""
    place = Hosts()
    place.network.evil = "beta"
    place.network.spoil = lambda method, _, message: _too_small(message) if method == "check.run" else None
    asked = Decision(tmp_path, place)
    found = asked.run()
    assert found.exit_code == 1
    assert asked.ran == 0
    assert found.document["paths"] == "fault"
    assert "1 of 2 pairs does not carry packets of 9000 bytes" in found.document["text"]
    assert found.document["steps"][-1]["left_out"] == "the paths do not carry the packets"
    assert set(place.network.mtu.values()) == {1500}


def _too_small(message: Json) -> bytes:
    for path in message["result"]["paths"]:
        for flow in path["flows"]:
            if flow["path_mtu_bytes"] > 1500:
                flow |= {"verdict": "black_hole", "path_mtu_bytes": 1500, "delivered_bytes": 1500}
    return json.dumps(message).encode()


def test_a_folder_is_new_or_resumed_and_one_process_s(tmp_path: Path) -> None:
    asked = Decision(tmp_path / "out", Hosts())
    asked.run()
    with pytest.raises(FolderNotEmpty, match="--resume"), asked.folder.held(False):
        pass
    with asked.folder.held(True), pytest.raises(FolderInUse), asked.folder.held(True):
        pass
    with pytest.raises(InputError, match=r"found no asked\.json"), Folder(tmp_path).held(True):
        pass


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("facts", "{", "found no JSON"),
        ("facts", "[]", "found no schema"),
        ("facts", '{"schema": 2}', "found schema 2"),
        ("facts", '{"schema": 1, "hosts": 3, "present_mtu": 1500}', "hosts"),
        ("check-present", '{"schema": 1}', "target_mtu"),
    ],
)
def test_damaged_results_are_one_line(name: str, text: str, said: str, tmp_path: Path) -> None:
    asked = Decision(tmp_path, Hosts())
    asked.run()
    (tmp_path / f"{name}.json").write_text(text)
    with pytest.raises(InputError) as error:
        asked.run()
    assert isinstance(error.value, CorruptResults) or "schema 2" in str(error.value)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("check", "lease"), [(2.0, 60.0), (27.5, 60.0), (40.0, 85.0), (1000.0, 600.0)])
def test_the_lease_of_a_check_lasts_longer_where_the_same_check_took_long(check: float, lease: float) -> None:
    assert lease_seconds(check) == lease
