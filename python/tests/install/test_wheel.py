"""The wheel, installed where neither cargo nor a clone is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.installed import STUDY, problems
from helpers.real import because_held_up, judged
from helpers.support import ROOT

from framegauge.cli import main


def run(
    environment: dict[str, str], folder: Path, *words: str, code: int | None = 0
) -> subprocess.CompletedProcess[str]:
    found = subprocess.run(
        ["framegauge", *words], env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert code is None or found.returncode == code, found.stderr
    return found


def test_it_is_tagged_for_the_machine_of_its_agent_and_any_libc(wheel: Path) -> None:
    kind = os.uname().machine
    tags = {f"py3-none-{each}_{kind}" for each in ("manylinux2014", "manylinux_2_17", "musllinux_1_1")}
    with zipfile.ZipFile(wheel) as archive:
        (about,) = [name for name in archive.namelist() if name.endswith(".dist-info/WHEEL")]
        lines = archive.read(about).decode().splitlines()
        assert {line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: ")} == tags
        assert "Root-Is-Purelib: false" in lines
        agent = archive.getinfo("framegauge/agents/bin/framegauge-agent")
        assert agent.external_attr >> 16 & 0o111 == 0o111
        assert archive.read("framegauge/agents/bin/libframegauge_nodelay.so").startswith(b"\x7fELF")
        assert archive.read("framegauge/agents/pipe.schema.json") == (ROOT / "pipe/schema.json").read_bytes()
        watch = {f"framegauge/watch/{name}" for name in ("grafana.json", "alerts.yaml", "watched.schema.json")}
        assert watch <= set(archive.namelist())
        assert not [name for name in archive.namelist() if name.startswith(("tests", "bench"))]


def test_its_own_agent_is_found_first(installed: Path, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "framegauge-agent").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "framegauge-agent").chmod(0o755)
    environment["PATH"] = f"{environment['PATH']}:{tmp_path}"
    first, second = run(environment, tmp_path, "--version").stdout.splitlines()
    assert first.startswith("framegauge ")
    (agent,) = installed.glob("lib/python*/site-packages/framegauge/agents/bin/framegauge-agent")
    assert second == f"framegauge-agent {first.split()[1]} ({agent})"


def test_the_manual_pages_are_where_man_looks(installed: Path) -> None:
    found = {path.name for path in (installed / "share/man/man1").iterdir()}
    assert found == {"framegauge.1", *(f"framegauge-{verb}.1" for verb in main.VERBS)}


def test_every_verb_is_there(environment: dict[str, str], tmp_path: Path) -> None:
    for verb in ("study", "rack", "completion"):
        assert "examples:" in run(environment, tmp_path, verb, "--help").stdout
    assert "complete " in run(environment, tmp_path, "completion", "bash").stdout
    assert "blocks of" in run(environment, tmp_path, "study", "--preset", "demo", "--dry-run").stdout
    assert run(environment, tmp_path, "wire", "--mtu", "9000", "--encap", "vxlan").stdout.startswith("link MTU")


def test_the_documentation_and_the_examples_are_those_of_the_clone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for folder in ("docs", "examples", "published"):
            kept = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*") if path.is_file()}
            names = {name for name in archive.namelist() if name.startswith(f"framegauge/shipped/{folder}/")}
            assert {name.removeprefix("framegauge/shipped/") for name in names} == kept
            for name in names:
                assert archive.read(name) == (ROOT / name.removeprefix("framegauge/shipped/")).read_bytes()


def test_a_source_distribution_has_what_a_wheel_is_made_of() -> None:
    (folders,) = re.findall(r"^FOLDERS = \((.*)\)$", (ROOT / "setup.py").read_text(), re.MULTILINE)
    grafted = re.findall(r"^graft (\w+)$", (ROOT / "MANIFEST.in").read_text(), re.MULTILINE)
    assert grafted == re.findall(r"\w+", folders)


def test_published_figures_are_run_again(environment: dict[str, str], tmp_path: Path) -> None:
    planned = run(environment, tmp_path, "reproduce", "--all", "--testbed", "both", "--dry-run").stdout
    assert all(f"{name}: " in planned for name in ("jumbo-2013", "outcast-2014", "vxlan-2017", "server-2000"))
    said = run(environment, tmp_path, "reproduce", "vxlan-2017-09", "--out", "figures").stdout
    assert "1 figure: 1 agrees" in said


def test_documentation_and_examples_are_shown_and_copied(environment: dict[str, str], tmp_path: Path) -> None:
    (package,) = Path(environment["PATH"].split(":")[0]).parent.glob("lib/python*/site-packages/framegauge")
    listed = json.loads(run(environment, tmp_path, "examples", "--json").stdout)["examples"]
    assert len(listed) == len(list((package / "shipped/examples").rglob("*.yaml")))
    assert "Check the path MTU" in run(environment, tmp_path, "docs", "check").stdout
    run(environment, tmp_path, "docs", "--html", "docs.html")
    assert (tmp_path / "docs.html").read_text().endswith("</html>\n")
    error = run(environment, tmp_path, "study", "examples/pair.yaml", "--dry-run", code=2).stderr
    assert error.endswith("framegauge examples pair --copy .\n")
    run(environment, tmp_path, "examples", "--copy", "examples")
    for name in ("pair", "ssh-rack", "command"):
        assert " runs, about " in run(environment, tmp_path, "study", f"examples/{name}.yaml", "--dry-run").stdout
    answer = run(
        environment, tmp_path, "simulate", "--preset", "simulate-replay", "--seeds", "1", "--out", "out"
    ).stdout
    assert "scope: simulated" in answer


def test_a_program_that_needs_a_loader_is_no_agent_for_a_wheel(tmp_path: Path) -> None:
    words = ["scripts/wheel", os.uname().machine, sys.executable, sys.executable, str(tmp_path)]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode != 0
    assert "which is linked dynamically, expected a static one" in found.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("machine", "line"),
    [
        ("riscv64", "wheel: found ARCH=riscv64, expected x86_64 or aarch64"),
        (
            "aarch64",
            "wheel: found no aarch64-linux-gnu-gcc, expected it in PATH: "
            "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        ),
    ],
)
def test_what_another_machines_wheel_lacks_is_one_line(machine: str, line: str, tmp_path: Path) -> None:
    if machine == os.uname().machine:
        machine, line = "x86_64", line.replace("aarch64", "x86_64").replace("gcc-x86_64", "gcc-x86-64")
        line = line.replace("arm64", "amd64")
    for name in ("dirname", "uname", "tr", "sed"):
        program = next(Path(place, name) for place in ("/usr/bin", "/bin") if Path(place, name).exists())
        (tmp_path / name).symlink_to(program)
    words = ["/bin/sh", "scripts/wheel", machine, "agent", sys.executable]
    found = subprocess.run(
        words, cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (2, f"{line}\n")


@pytest.fixture
def neighbour() -> Iterator[str]:
    """A network namespace on a cable of 9000 bytes."""
    name = f"fg{uuid.uuid4().hex[:8]}"
    commands = [
        f"netns add {name}",
        f"link add {name}a mtu 9000 type veth peer name {name}b mtu 9000 netns {name}",
        f"addr add 10.99.199.1/30 dev {name}a",
        f"-n {name} addr add 10.99.199.2/30 dev {name}b",
        f"link set {name}a up",
        f"-n {name} link set {name}b up",
        f"-n {name} link set lo up",
    ]
    try:
        for command in commands:
            subprocess.run(["ip", *command.split()], check=True)
        yield name
    finally:
        subprocess.run(["ip", "link", "del", f"{name}a"], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", name], check=False)


@pytest.mark.rack
@pytest.mark.needs("ip")
@pytest.mark.usefixtures("root")
def test_it_checks_a_path(environment: dict[str, str], tmp_path: Path, neighbour: str) -> None:
    found = run(environment, tmp_path, "check", f"local%{neighbour}a", f"netns:{neighbour}", "-4", "--json")
    assert {pair["path_mtu_bytes"] for pair in json.loads(found.stdout)["pairs"]} == {9000}


@dataclass(frozen=True)
class Attempt:
    """A study, and why it is none."""

    excluded: Sequence[str]


@pytest.mark.rack
@pytest.mark.usefixtures("root")
def test_it_runs_a_study(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text(STUDY)

    def make() -> list[Attempt]:
        done = run(environment, tmp_path, "study", "short.yaml", "--out", "out", code=None)
        busy = [because_held_up(line) for line in done.stderr.splitlines() if line.startswith("framegauge: too busy: ")]
        return [Attempt(busy or problems(tmp_path / "out"))]

    judged(make, tmp_path / "out", lambda attempts: not attempts[0].excluded)
    assert (tmp_path / "out/report.html").read_text().rstrip().endswith("</html>")
