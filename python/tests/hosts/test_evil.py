"""Commands among whose hosts one is in other hands: its row says so in one line, and those of the others are whole.

The hosts are this machine, under three names; what stands for ssh starts their agents (helpers/evil.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import evil
from helpers.schemas import conforms
from helpers.support import by_length

from framegauge.cli import printed

pytestmark = [pytest.mark.agent, pytest.mark.soak(6)]
MEGABYTES = 200
NAMES = ("alpha", "beta", "gamma")
USED = ("hello", "check.facts", "check.routes", "check.serve", "check.run", "check.close")
# Every mode once for a method that both commands use; the others by turns, and all of all in the long form.
CASES = [("check.facts", mode) for mode in evil.MODES] + [
    (method, mode)
    for place, method in enumerate(USED)
    for number, mode in enumerate(evil.MODES)
    if method != "check.facts" and (number % 10 == place or by_length(0, 1))
]
# Answers with words of a list, or of a form, beside free text: with escape codes in all of them they fit no more.
WORDED = ("hello", "check.run")
# Runs a command, and says how much memory it took at most. The kernel's ru_maxrss would begin with that of the process
# that started it: the test's own.
MEASURED = """
import sys
from framegauge.cli.main import main
code = main(sys.argv[1:])
(most,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(int(most) // 1024, file=sys.stderr)
sys.exit(code)
"""
Run = Callable[..., tuple[int, dict[str, Any] | str, str]]


@pytest.fixture(scope="module")
def cache() -> Iterator[Path]:
    """Where the hosts keep the agent; a folder that only root can write to, all the way."""
    with tempfile.TemporaryDirectory(dir="/var/lib" if os.geteuid() == 0 else None) as folder:
        yield Path(folder)


@pytest.fixture
def run(tmp_path: Path, cache: Path) -> Run:
    """Runs a command with a host in other hands: its exit code, document or text, and what it said beside it."""
    evil.stand_in(tmp_path)
    (tmp_path / "hosts.yaml").write_text(json.dumps({"hosts": NAMES}))

    def command(method: str, mode: str, *words: str) -> tuple[int, dict[str, Any] | str, str]:
        environment = os.environ | {
            "PATH": f"{tmp_path}:{os.environ['PATH']}", "EVIL": f"alpha:{method}:{mode}", "XDG_CACHE_HOME": str(cache),
        }  # fmt: skip
        environment.pop("COLUMNS", None)
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, *words], cwd=tmp_path, env=environment, capture_output=True, timeout=100,
            check=False,
        )  # fmt: skip
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in out + err, err
        assert all(each.isprintable() or each == "\n" for each in out + err), out + err
        *said, megabytes = err.splitlines()
        assert int(megabytes) < MEGABYTES
        assert not any(line.startswith("framegauge: forged") for line in [*said, *out.splitlines()])
        return done.returncode, json.loads(out) if "--json" in words else out, "\n".join(said)

    return command


def fits(method: str, mode: str) -> bool:
    """Whether the answer has the shape that is expected."""
    return mode in evil.SHAPELY and not (mode == "escapes" and method in WORDED)


def told(document: dict[str, Any], said: str) -> dict[str, str | None]:
    """The error of each host, which is one line."""
    errors = {host["name"]: host["error"] for host in document["hosts"]}
    assert list(errors) == list(NAMES)
    assert all(error is None or (error.isprintable() and len(error) < 1200) for error in errors.values())
    lines = [line for line in said.splitlines() if "alpha" in line and "copying the agent" not in line]
    assert len(lines) <= 1
    return errors


@pytest.mark.parametrize(("method", "mode"), [case for case in CASES if case[0] in USED[:2]])
def test_hosts(method: str, mode: str, run: Run) -> None:
    code, found, said = run(method, mode, "hosts", "hosts.yaml", "--json")
    assert isinstance(found, dict)
    errors = told(found, said)
    conforms(found, printed.hosts())
    assert errors["beta"] is errors["gamma"] is None
    assert (errors["alpha"] is None) == fits(method, mode), errors
    assert code == (0 if fits(method, mode) else 1)
    assert all(host["facts"]["interfaces"] for host in found["hosts"][1:])


@pytest.mark.parametrize("mode", ["escapes", "types", "error with escapes"])
def test_rows_of_hosts(mode: str, run: Run) -> None:
    _, text, _ = run("check.facts", mode, "hosts", "hosts.yaml")
    assert isinstance(text, str)
    rows = [line.split()[0] for line in text.splitlines()]
    assert rows[0] == "host"
    assert rows.count("beta") == rows.count("gamma") >= 1
    assert set(rows[1:]) == set(NAMES)
    assert mode == "escapes" or rows.count("alpha") == 1


@pytest.mark.parametrize(("method", "mode"), CASES)
def test_check(method: str, mode: str, run: Run) -> None:
    code, found, said = run(method, mode, "check", *NAMES, "-4", "--mtu", "600", "--flows", "1", "--json")
    assert isinstance(found, dict)
    errors = told(found, said)
    assert errors["beta"] is errors["gamma"] is None
    assert code in (0, 1, 2)
    # What the others found of each other holds, and nothing is said of a host that has failed.
    pairs = {(pair["source"], pair["destination"]): pair["verdict"] for pair in found["pairs"]}
    assert pairs["beta", "gamma"] == pairs["gamma", "beta"] == "carries_target"
    if fits(method, mode):
        assert errors["alpha"] is None or method == "check.routes"
    elif method == "check.close":  # all that was asked for is known
        assert code == 0
    else:
        assert errors["alpha"] is not None
        assert code == 2
    assert len(pairs) == 6


STUDY = """\
question: Do jumbo frames help here?
testbed: {kind: ssh, inventory: hosts.yaml}
factors: {mtu: {levels: [1500, 9000], baseline: 1500}}
workloads: [{stream: {duration: 1 s}}]
margins: {goodput: 2 %}
"""


@pytest.mark.parametrize(("method", "mode"), [("hello", "null"), ("check.facts", "error with escapes in one line")])
def test_a_study_names_the_host_and_changes_nothing(method: str, mode: str, run: Run, tmp_path: Path) -> None:
    hosts = [{"name": name, "read_only": True} for name in NAMES]
    (tmp_path / "hosts.yaml").write_text(json.dumps({"hosts": hosts}))
    (tmp_path / "study.yaml").write_text(STUDY)
    code, _, said = run(method, mode, "study", "study.yaml", "--out", "out")
    assert code == 2
    (line,) = [each for each in said.splitlines() if "missing host" in each]
    assert line.startswith("framegauge: missing host alpha (needed for the study): found ")


@pytest.mark.parametrize("mode", ["escapes", "error with escapes in one line", "big line"])
def test_the_text_of_a_check(mode: str, run: Run) -> None:
    _, text, _ = run("check.facts", mode, "check", *NAMES, "-4", "--mtu", "600", "--flows", "1")
    assert isinstance(text, str)
    assert "It took" in text.splitlines()[-1]


@pytest.mark.parametrize(
    ("verb", "method", "mode"),
    [
        ("estimate", "estimate.begin", "types"), ("estimate", "estimate.begin", "ends"),
        ("estimate", "estimate.begin", "escapes"), ("estimate", "estimate.end", "wrong id"),
        ("capture", "capture.about", "null"), ("capture", "capture.about", "ends"),
        ("capture", "capture.begin", "wrong id"), ("capture", "capture.begin", "escapes"),
        ("capture", "capture.begin", "error with bad requirements"), ("estimate", "estimate.begin", "error with escapes"),
        ("capture", "hello", evil.UNREACHABLE), ("estimate", "hello", evil.UNREACHABLE), ("capture", "hello", "types"),
        ("estimate", "hello", "no json"),
    ],
)  # fmt: skip
def test_a_capture_or_an_estimate_goes_on_with_the_others(
    verb: str, method: str, mode: str, run: Run, tmp_path: Path
) -> None:
    out = ["--json"] if verb == "estimate" else ["--out", str(tmp_path / "out")]
    code, found, said = run(method, mode, verb, "--hosts", "hosts.yaml", "--for", "1s", *out)
    assert code in (0, 1), said
    if isinstance(found, dict):
        assert [lost["host"] for lost in found["lost"]] == ([] if mode in evil.SHAPELY else ["alpha"])
        names = {host["host"] for host in found["hosts"]}
    else:
        assert (code == 0) == (mode in evil.SHAPELY)
        names = {path.name.partition(".")[0] for path in (tmp_path / "out").glob("*.pcapng")}
    assert {"beta", "gamma"} <= names


def test_a_host_that_tells_no_address_has_no_path_that_carries_anything(run: Run) -> None:
    code, found, said = run("check.facts", "nothing", "check", *NAMES, "-4", "--mtu", "600", "--flows", "1", "--json")
    assert isinstance(found, dict)
    errors = told(found, said)
    assert errors == {
        "alpha": "alpha: found no IPv4 address, expected one of an interface that is up", "beta": None, "gamma": None,
    }  # fmt: skip
    assert (code, found["verdict"]) == (2, "could_not_tell")
    pairs = {(pair["source"], pair["destination"]): pair["verdict"] for pair in found["pairs"]}
    assert pairs["beta", "gamma"] == "carries_target"
    assert {pairs["alpha", "beta"], pairs["gamma", "alpha"]} == {"unknown"}


@pytest.mark.parametrize(
    ("method", "mode"),
    [
        ("check.facts", "nothing"), ("check.run", "huge"),
        *by_length([], [("hello", "types"), ("check.serve", "nothing")]),
    ],
)  # fmt: skip
def test_a_decision_goes_on_with_the_others_and_claims_nothing_of_all(
    method: str, mode: str, run: Run, tmp_path: Path
) -> None:
    code, _, _ = run(method, mode, "decide", *NAMES, "--for", "1s", "--out", "out")
    assert code == 2
    document = json.loads((tmp_path / "out/check-target.json").read_text())
    pairs = [pair for pair in document["pairs"] if "alpha" not in (pair["source"], pair["destination"])]
    assert {pair["verdict"] for pair in pairs} == {"carries_target"}
    decision = json.loads((tmp_path / "out/decision.json").read_text())
    assert (decision["choice"], decision["paths"]) == ("cannot_tell", "unknown")


WATCH = """\
change: {at: 2026-11-29T08:00:00+00:00, hosts: [alpha, beta]}
control: [gamma]
agents: {inventory: hosts.yaml, folder: samples}
step: 1 s
before: 16 s
after: 16 s
"""


@pytest.mark.parametrize("mode", by_length(["types", "huge"], ["types", "huge", "words", "wrong id"]))
def test_samples_of_the_others_are_whole(mode: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(WATCH)
    code, _, said = run("host.totals", mode, "watch", "w.yaml", "--sample", "--for", "3s")
    assert code == 0, said
    lines = [json.loads(line) for path in (tmp_path / "samples").glob("*.jsonl") for line in path.open()]
    assert {line["host"] for line in lines} == set(NAMES)
    # A busy machine may answer too late; nobody else's answer is at fault.
    assert not any("expected" in line.get("gap", "") for line in lines if line["host"] != "alpha")
    assert mode != "types" or all("expected" in line["gap"] for line in lines if line["host"] == "alpha")
