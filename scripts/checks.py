"""Runs the checks of `make lint`, `make quick`, `make test` or `make soak`, and ends with one line that sums them up.

    scripts/checks.py lint|quick|test|soak

Standard library only. Every check is a command that people could type; a check that fails does not keep the others
from running. Checks of one lane run one after another, lanes run side by side, and emulated racks that measure run at
the end, one after another, beside racks that prove:

    rust     agent ── rustfmt                              ┌── clippy ── cargo build ──┐
                │                                          │                           │
    python   ruff ── mypy ── contracts ── pytest ──────────┤                           ├── cargo test ┬─ pytest, racks
                │                                          │                           │             │
    agents      ├── pytest, agent ── programs ── storage ──┤                           │             └─ pytest, networks
                │                                          │                           │
    hosts       ├── pytest, hosts ── pytest, captures ─────┤                           │
                │                                          │                           │
    proofs      └── pytest, proofs ────────────────────────┴── pytest, traces ─────────┘

Tests that look for what is left on this machine bear no agents beside them. They wait more than they work, so the
compiler, which leaves nothing, works beside them. Without racks nothing waits for that: `make quick` has clippy and
`cargo test` in the lane of Rust.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
CPUS = len(os.sched_getaffinity(0))
MEMORY, MEMORY_BYTES = Path("/dev/shm"), 4_000_000_000
RACK = "python/tests/rack"
# They look at the whole machine for what is left, and measure nothing that work beside them changes.
TRACES = [
    f"{RACK}/hand",
    f"{RACK}/check",
    *(
        f"{RACK}/study/test_{each}.py"
        for each in (
            "leaves_nothing", "hadoop_killed", "ceph_killed", "iscsi_killed", "nfs_killed", "mapreduce", "speed", "web",
        )
    ),
]  # fmt: skip
# They wait more than they work, and none looks at the whole machine for what another has left. A file's tests share
# its hosts.
HOSTS = [f"{RACK}/hosts", "python/tests/browser", "python/tests/install"]
# They ask for proofs, which runs that are not faithful have as well. One rack after another in each list; all but the
# first come after other tests, so that all lanes end at about the same time.
PROOFS = [f"{RACK}/study/test_{each}.py" for each in ("hadoop", "examples", "ceph")]
CAPTURES = [f"{RACK}/capture", f"{RACK}/study/test_diagnosed.py"]
STORAGE = [f"{RACK}/study/test_{each}.py" for each in ("iscsi", "live_switch", "nfs", "storage_mixed")]
PROGRAMS = [
    f"{RACK}/study/test_{each}.py"
    for each in (
        "command", "command_lives", "big_tcp", "missing", "mptcp", "processes", "refused_calls", "routers", "senders",
        "sockets", "tunings",
    )
]  # fmt: skip
# They ask for known answers at rates that leave the machine time for another rack beside them.
NETWORKS = [
    f"{RACK}/diagnose",
    *(f"{RACK}/study/test_{each}.py" for each in ("exchanges", "incast", "networks", "nic", "pacing")),
]
SLOWEST = 40
MOST_UNJUDGED = 0.02  # of the tests on racks: more is a fault of ours, or no machine to test on
UNJUDGED = "not judged: "  # so begins what helpers/unjudged.py writes into pytest's report
WAITING_SECONDS = 30.0  # between two lines that tell what is still running


@dataclass(frozen=True)
class Check:
    """A command. `after`: checks of other lanes that must have ended; `report`: pytest writes its times; `is_small`:
    the files of its tests may be kept in memory."""

    name: str
    command: Sequence[str]
    lane: str
    after: Sequence[str] = ()
    report: bool = False
    is_small: bool = False
    environment: tuple[tuple[str, str], ...] = ()


def pytest(
    name: str, lane: str, *words: str, after: Sequence[str] = (), soak: bool = False, gives_way: bool = False
) -> Check:
    """A run of pytest whose slowest tests are listed at the end. `gives_way` to those that other checks wait for."""
    command = [*(["nice", "-n", "3"] if gives_way else []), f"{BIN}/python", "-m", "pytest", *words]
    environment = (("FRAMEGAUGE_SOAK", "1"),) if soak else ()
    return Check(name, command, lane, after, report=True, is_small=gives_way, environment=environment)


def place() -> str | None:
    """The folder for temporary files: in memory, where saving results safely takes no time, if they fit there."""
    return str(MEMORY) if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES else None


AGENT = Check("agent", ["make", "--no-print-directory", "agent"], "rust")
CLIPPY = Check(
    "clippy", ["cargo", "clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], "rust"
)
CARGO_TEST = Check("cargo test", ["cargo", "test", "--workspace", "--locked", "--no-fail-fast"], "rust")
LINT = [
    Check("rustfmt", ["cargo", "fmt", "--check"], "rust"),
    CLIPPY,
    Check("ruff", [f"{BIN}/ruff", "check", "python", "bench", "scripts", "setup.py"], "python"),
    Check("ruff format", [f"{BIN}/ruff", "format", "--check", "python", "bench", "scripts", "setup.py"], "python"),
    Check("mypy", [f"{BIN}/mypy"], "python"),
    Check("import-linter", [f"{BIN}/lint-imports", "--no-logo"], "python"),
]
PURE = ["python/tests", *(f"--ignore={each}" for each in (RACK, *HOSTS))]
BESIDE = [*HOSTS, *PROOFS, *CAPTURES, *STORAGE, *PROGRAMS, *TRACES, *NETWORKS]
RACKS = [RACK, *(f"--ignore={each}" for each in BESIDE if each.startswith(RACK))]
# Collecting all tests takes longer than these.
AGENTS = [
    str(path.relative_to(ROOT))
    for path in sorted((ROOT / "python/tests").rglob("test_*.py"))
    if "pytest.mark.agent" in path.read_text()
]


def without_racks(chosen: str, agents: Sequence[str]) -> list[Check]:
    """All checks without a rack: Rust, the `chosen` Python tests, and those of files `agents` that need an agent."""
    return [
        AGENT,
        *LINT,
        CARGO_TEST,
        pytest("pytest", "python", *PURE, "-m", chosen, "-n", str(CPUS), gives_way=True),
        pytest("pytest, agent", "agents", *agents, "-m", "agent", after=["agent"]),
    ]


def with_racks() -> list[Check]:
    """All checks: what compiles runs beside the tests that look for what is left, and racks that measure at the end."""
    agents = [each for each in AGENTS if not each.startswith(tuple(HOSTS))]
    first = [each for each in without_racks("not agent", agents) if each not in (CLIPPY, CARGO_TEST)]
    first.append(pytest("pytest, hosts", "hosts", *HOSTS, "-n", str(CPUS), "--dist", "loadfile", after=["agent"]))
    first.append(pytest("pytest, captures", "hosts", *CAPTURES))
    first.append(pytest("pytest, programs", "agents", *PROGRAMS))
    first.append(pytest("pytest, storage", "agents", *STORAGE))
    first.append(pytest("pytest, proofs", "proofs", *PROOFS, after=["agent"]))
    ended = [each.name for each in first if each.report]
    built = Check("cargo build", [*CARGO_TEST.command, "--no-run"], "compiler")
    return [
        *first,
        *(replace(each, command=["nice", *each.command], lane="compiler", after=ended) for each in (CLIPPY, built)),
        pytest("pytest, traces", "traces", *TRACES, after=ended),
        replace(CARGO_TEST, lane="racks", after=["pytest, traces", CLIPPY.name, built.name]),
        pytest("pytest, racks", "racks", *RACKS),
        pytest("pytest, networks", "networks", *NETWORKS, after=[CARGO_TEST.name]),
    ]


GROUPS = {
    "lint": LINT,
    "quick": without_racks("not agent and not thorough", AGENTS),
    "test": with_racks(),
    "soak": [
        AGENT,
        Check("fuzz", [f"{BIN}/python", "scripts/fuzz.py"], "soak"),
        pytest("pytest, long forms", "soak", "python/tests", "-m", "soak", "-v", soak=True),
    ],
}

# "test result: ok. 12 passed; 0 failed; 1 ignored; …" and "3 failed, 210 passed, 4 skipped in 12.3s"
RUST_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
PYTHON_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")
PYTHON_RESULT = re.compile(r"\b\d+ (?:passed|failed|errors?|skipped)\b.* in [\d.]+s")


@dataclass
class Tally:
    """Tests counted from what the test programs print."""

    passed: int = 0
    failed: int = 0
    not_run: int = 0

    def read(self, line: str) -> None:
        """Add what a line of output states."""
        if rust := RUST_RESULT.match(line):
            passed, failed, ignored = map(int, rust.groups())
            self.passed, self.failed, self.not_run = self.passed + passed, self.failed + failed, self.not_run + ignored
        elif PYTHON_RESULT.search(line):
            for count, kind in PYTHON_COUNT.findall(line):
                name = {"passed": "passed", "skipped": "not_run"}.get(kind, "failed")
                setattr(self, name, getattr(self, name) + int(count))

    def text(self) -> str:
        """Such as `210 tests passed, 4 not run here (listed above)`; empty if none was run."""
        parts = [f"{self.passed} tests passed"] if self.passed or self.failed or self.not_run else []
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{self.not_run} not run here (listed above)"] if self.not_run else []
        return ", ".join(parts)


@dataclass
class Results:
    """What has ended so far, and what is running."""

    folder: Path
    seconds: dict[str, float] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    running: dict[str, float] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    ended: threading.Condition = field(default_factory=threading.Condition)

    def report_of(self, check: Check) -> Path:
        """Where pytest writes how long each test took."""
        return self.folder / f"{check.name.replace(' ', '-').replace(',', '')}.xml"

    def cases(self) -> Iterator[ElementTree.Element]:
        """All tests of pytest that have ended."""
        for path in self.folder.glob("*.xml"):
            yield from ElementTree.parse(path).iter("testcase")

    def slowest(self) -> list[tuple[float, str]]:
        """All tests whose times are known, the slowest first."""
        return sorted(((float(case.get("time", 0)), name_of(case)) for case in self.cases()), reverse=True)

    def failures(self) -> list[str]:
        """The tests of pytest that did not pass."""
        return [name_of(case) for case in self.cases() if {"failure", "error"} & {each.tag for each in case}]

    def unjudged(self) -> list[tuple[str, str]]:
        """The tests that are not judged, with their reasons."""
        reasons = ((name_of(case), reason_of(case)) for case in self.cases())
        return [(name, reason) for name, reason in reasons if reason is not None]

    def judgeable(self) -> int:
        """How many tests on racks were run, judged or not."""
        cases = (case for case in self.cases() if str(case.get("classname")).startswith(RACK.replace("/", ".")))
        return sum(case.find("skipped") is None or reason_of(case) is not None for case in cases)


def reason_of(case: ElementTree.Element) -> str | None:
    """Why a test is not judged; None if it is, or was not run."""
    words = "" if (skipped := case.find("skipped")) is None else skipped.get("message", "")
    return words.removeprefix(UNJUDGED) if words.startswith(UNJUDGED) else None


def name_of(case: ElementTree.Element) -> str:
    """Module and function."""
    return f"{case.get('classname')}::{case.get('name')}"


def run(check: Check, results: Results, live: bool) -> None:
    """Run one check. Its output is passed on line by line if `live`, else whole when it has ended."""
    began = time.monotonic()
    words = [*check.command, f"--junitxml={results.report_of(check)}"] if check.report else list(check.command)
    title = f"\n== {check.name}: {shlex.join(check.command).replace(f'{BIN}/', '')}"
    lines: list[str] = []
    environment = {**os.environ, **dict(check.environment)}
    if check.is_small:
        environment["PYTEST_DEBUG_TEMPROOT"] = str(results.folder)
    if live:
        print(title, flush=True)
    try:
        with subprocess.Popen(
            words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", env=environment,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if live:
                    print(line, end="", flush=True)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        passed, cpu = process.returncode == 0, usage.ru_utime + usage.ru_stime
    except OSError as error:
        lines, passed, cpu = [f"{check.command[0]}: {error.strerror}\n"], False, 0.0
    with results.ended:
        took = results.seconds[check.name] = time.monotonic() - began
        results.cpu_seconds[check.name] = cpu
        results.running.pop(check.name, None)
        results.failed += [] if passed else [check.name]
        for line in lines:
            results.tally.read(line)
        print("" if live else f"{title}\n{''.join(lines)}", end="")
        print(f"-- {check.name}: {'passed' if passed else 'FAILED'}, {took:.0f} s", flush=True)
        results.ended.notify_all()


def run_lane(checks: Sequence[Check], results: Results, live: bool) -> None:
    """One check after another."""
    for check in checks:
        with results.ended:
            results.ended.wait_for(lambda after=check.after: all(each in results.seconds for each in after))
            results.running[check.name] = time.monotonic()
        run(check, results, live)


def run_all(checks: Sequence[Check], results: Results) -> None:
    """Lanes side by side."""
    lanes: dict[str, list[Check]] = {}
    for check in checks:
        lanes.setdefault(check.lane, []).append(check)
    threads = [
        threading.Thread(target=run_lane, args=(lane, results, len(lanes) == 1), daemon=True)
        for lane in lanes.values()
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(WAITING_SECONDS)
            with results.ended:
                running = [f"{name} ({time.monotonic() - began:.0f} s)" for name, began in results.running.items()]
            if thread.is_alive() and running:
                print(f"   running: {', '.join(running)}", flush=True)


def main(groups: list[str]) -> int:
    """Run a group; 0 if every check passed."""
    if len(groups) != 1 or groups[0] not in GROUPS:
        print(f"usage: scripts/checks.py {'|'.join(GROUPS)}", file=sys.stderr)
        return 2
    checks = GROUPS[groups[0]]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="checks-", dir=place()) as folder:
        results = Results(Path(folder))
        try:
            run_all(checks, results)
        except KeyboardInterrupt:
            print("\ninterrupted")
            return 130
        return summed_up(len(checks), results, time.monotonic() - began)


def summed_up(count: int, results: Results, seconds: float) -> int:
    """Print what is known of all `count` checks; 0 if they passed, and enough tests were judged."""
    slowest = [f"{took:6.1f} s  {name}" for took, name in results.slowest()[:SLOWEST] if took >= 0.5]
    listed("the slowest tests", slowest)
    parts = [f"{took:6.0f} s {results.cpu_seconds[name]:6.0f} s  {name}" for name, took in results.seconds.items()]
    listed("by part, and the CPU time of its processes", parts)
    listed("failed tests", results.failures())
    unjudged, most = results.unjudged(), MOST_UNJUDGED * results.judgeable()
    listed("not judged, because the machine was busy", [f"{name}: {reason}" for name, reason in unjudged])
    failed = list(results.failed)
    if len(unjudged) > most:
        failed.append(f"{len(unjudged)} tests not judged, expected at most {most:.1f} ({MOST_UNJUDGED:.0%} of racks')")
    verdict = f"FAILED: {', '.join(failed)}" if failed else "passed"
    said = [f"{count - len(results.failed)} of {count} checks", results.tally.text()]
    said += [f"{len(unjudged)} not judged: the machine was busy (listed above)"] if unjudged else []
    print(f"\n{verdict} ({'; '.join(part for part in [*said, f'{seconds:.0f} s'] if part)})", flush=True)
    return 1 if failed else 0


def listed(title: str, lines: Sequence[str]) -> None:
    """Print a list under its title, if there is anything in it."""
    if lines:
        print(f"\n{title}:")
        print("".join(f"  {each}\n" for each in lines), end="")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
