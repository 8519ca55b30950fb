"""What would fail at a study's first run is refused before: by the plan, by --dry-run and by the study itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.support import ROOT

from framegauge.cli import main as cli
from framegauge.errors import StudyError
from framegauge.experiment import refusals
from framegauge.experiment.refusals import Kernel
from framegauge.study import file as study_file
from framegauge.study.model import Study

KERNEL = Kernel(frozenset({"reno", "cubic"}), frozenset({"dctcp"}))
FILE = """\
testbed: {testbed}
factors: {{mtu: {mtu}, congestion_control: {control}}}
workloads: [{{stream: {{duration: 10 s}}}}]
margins: {{goodput: 1 %}}
"""


def text(testbed: str = "{kind: rack}", mtu: str = "[1500, 9000]", control: str = "cubic", more: str = "") -> str:
    return FILE.format(testbed=testbed, mtu=mtu, control=control) + more


def study(**given: str) -> Study:
    return study_file.parse(text(**given), "study.yaml")


REFUSED = {
    "factors.congestion_control.levels.1: found \"cubicc\", expected one that this kernel has: cubic, dctcp, reno": {
        "control": "[reno, cubicc]"
    },
    "sysctls.net.ipv4.tcp_congestion_control: found \"vegas\", expected one that this kernel has: cubic, dctcp, reno": {
        "more": "sysctls: {net.ipv4.tcp_congestion_control: vegas}\n"
    },
    "budget: found 1 s, expected 62.1 s or more, about what 2 blocks take: fewer compare nothing": {"more": "budget: 1 s\n"},
    "factors.mtu: found one level, 9000, expected two or more for the treatment; or control: true": {"mtu": "9000"},
}  # fmt: skip


@pytest.mark.parametrize("problem", REFUSED)
def test_what_would_fail_is_one_line(problem: str) -> None:
    with pytest.raises(StudyError) as caught:
        refusals.check(study(**REFUSED[problem]), KERNEL)
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith(problem)


def test_all_problems_come_at_once() -> None:
    with pytest.raises(StudyError) as caught:
        refusals.check(study(mtu="9000", control="[a, b]", more="budget: 1 s\n"), KERNEL)
    assert [line.partition(":")[0] for line in caught.value.problems] == [
        "factors.mtu", "factors.congestion_control.levels.0", "factors.congestion_control.levels.1", "budget",
    ]  # fmt: skip


ALLOWED = (
    {"mtu": "9000", "more": "control: true\n"},
    {"control": "dctcp"},
    {"more": "budget: 63 s\n"},
    {"testbed": "{kind: simulator}", "control": "bbr", "more": "budget: 1 s\n"},  # virtual time costs no budget
    {"testbed": "{kind: ssh, machines: [a, b]}", "control": "vegas"},  # their kernels are not this one
)


@pytest.mark.parametrize("given", ALLOWED)
def test_what_can_run_is_not_refused(given: dict[str, str]) -> None:
    refusals.check(study(**given), KERNEL)


def test_a_kernel_that_does_not_tell_is_no_reason() -> None:
    refusals.check(study(control="vegas"), Kernel(frozenset()))


def test_a_module_that_is_not_loaded_is_missing_and_its_remedy_is_a_command() -> None:
    needed = refusals.missing(study(control="[cubic, dctcp]"), KERNEL)
    assert needed == [
        {
            "name": "congestion control dctcp", "needed_for": "factors.congestion_control.levels.1",
            "found": "a module that is not loaded", "remedy": "sudo modprobe tcp_dctcp",
        }
    ]  # fmt: skip
    assert refusals.missing(study(control="[cubic, reno]"), KERNEL) == []
    assert refusals.missing(study(testbed="{kind: fake}", control="dctcp"), KERNEL) == []


def test_the_kernel_is_read_with_its_modules(tmp_path: Path) -> None:
    available = tmp_path / "available"
    available.write_text("reno cubic\n")
    (tmp_path / "modules.dep").write_text(
        "kernel/net/ipv4/tcp_dctcp.ko.zst:\nkernel/net/ipv4/tcp_cubic.ko: kernel/net/ipv4/tcp_diag.ko.xz\n"
    )
    assert Kernel.here(available, tmp_path) == Kernel(frozenset({"reno", "cubic"}), frozenset({"dctcp", "diag"}))
    assert Kernel.here(tmp_path / "none", tmp_path / "none") == Kernel(frozenset())


def test_what_only_the_hosts_know_is_said_and_not_refused() -> None:
    [line] = refusals.unknown(study(testbed="{kind: ssh, machines: [a, b]}", control="[cubic, vegas]"))
    assert line.startswith("known only once the hosts are asked: whether they have cubic and vegas, which programs")
    assert refusals.unknown(study()) == []


WORDS = (["plan", "FILE"], ["study", "FILE", "--dry-run"], ["study", "FILE", "--out", "out"])


@pytest.mark.parametrize("words", WORDS, ids=("plan", "dry run", "study"))
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"control": "nosuch"},
            'factors.congestion_control.levels.0: found "nosuch", expected one that this kernel has',
        ),
        ({"more": 'sysctls: {net.ipv4.tcp_rmem: "4096 8"}\n'}, 'found "4096 8", expected three whole numbers'),
        ({"more": 'sysctls: {net.ipv4.tcp_sack: "1 1"}\n'}, 'found "1 1", expected one whole number'),
        ({"testbed": "{kind: rack, link: {rate: 900 Gb/s}}"}, 'rate: found "900 Gb/s", expected at most 400 Gb/s'),
        ({"more": "budget: 1 s\n"}, "budget: found 1 s"),
        ({"mtu": "9000"}, "factors.mtu: found one level"),
    ],
)
def test_plan_dry_run_and_study_refuse_the_same(
    words: list[str],
    given: dict[str, str],
    problem: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(text(**given))
    assert cli.main([word.replace("FILE", "study.yaml") for word in words]) == 2
    said = capsys.readouterr()
    assert problem in said.err
    assert said.err.startswith("framegauge: study.yaml:")
    assert said.out == ""
    assert not Path("out").exists()


def test_a_plan_lists_what_is_missing_and_what_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(ROOT / "examples" / "ssh-pair.yaml")
    assert cli.main(["plan", path, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["missing"], len(plan["unknown"])) == ([], 1)
    for words in (["plan", path], ["study", path, "--dry-run"]):
        assert cli.main(words) == 0
        assert plan["unknown"][0] in capsys.readouterr().out
