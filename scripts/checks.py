"""Runs the checks of `make lint`, `make quick`, `make test` or `make soak`, and ends with one line that sums them up.

    scripts/checks.py lint|quick|test|soak

Standard library only. Every check is a command that people could type; a check that fails does not keep the others
from running. Checks begin in the order of their list as soon as there is room for them (jobs.py): no more are busy at
a time than there are CPUs. What compiles comes first, with those tests of Rust that only compute, then the others,
then Python's without a rack, then those on racks. A rack goes before all other programs, but not before another rack:
so one at a time, and beside it one whose racks let all others go first. To begin them earlier, beside those without a
rack, was tried twice: it takes longer, also if only the list that waits most begins then, and tests with an agent read
what racks do meanwhile. So was a second one that lets others go first: users of a site then do too little, and
datagrams are lost in sockets. The examples bear each other.
Tests that look for what is left on this machine have no other tests beside them; they wait more than they work, so
they are run while all is compiled.

A test on racks that fails beside other checks is run once more when they have ended, alone. What fails again is red,
what passes is listed, and more than a few are red at once.

Ctrl-C, and SIGINT or SIGTERM to this process alone, end all that it has started; the second one at once.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from jobs import Ended, Job, Jobs, noted

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
CPUS = len(os.sched_getaffinity(0))
MEMORY, MEMORY_BYTES = Path("/dev/shm"), 4_000_000_000
RACK = "python/tests/rack"
# They look at the whole machine for what is left, and measure nothing that work beside them changes; or they hold a CPU
# ahead of every rack.
TRACES = [
    f"{RACK}/hand",
    f"{RACK}/check",
    f"{RACK}/hosts/test_held_up.py",
    f"{RACK}/hosts/test_chaos_ends.py",
    *(
        f"{RACK}/study/test_{each}.py"
        for each in (
            "leaves_nothing", "hadoop_killed", "ceph_killed", "iscsi_killed", "nfs_killed", "web_killed", "mapreduce",
            "speed",
        )
    ),
]  # fmt: skip
# They wait more than they work, and none looks at the whole machine for what another has left. A file's tests share
# its hosts.
HOSTS = [f"{RACK}/hosts", "python/tests/browser"]
NOT_HOSTS = [f"--ignore={each}" for each in TRACES if each.startswith(f"{RACK}/hosts/")]
INSTALL = ["python/tests/install"]
# They ask for proofs, which runs that are not faithful have as well.
PROOFS = [f"{RACK}/study/test_{each}.py" for each in ("hadoop", "ceph", "datagrams", "link_loss", "quic", "unanswered")]
# The longest of those lists; two at a time passed beside a load of 25.
EXAMPLES = [f"{RACK}/study/test_examples.py"]
# But for one, whose programs have to log in again in time while the links of their hosts change.
LIVE = f"{EXAMPLES[0]}::test_an_example_runs_and_proves_its_treatment[live-switch]"
CAPTURES = [f"{RACK}/capture", f"{RACK}/study/test_diagnosed.py"]
STORAGE = [f"{RACK}/study/test_{each}.py" for each in ("iscsi", "nfs", "storage_mixed")]
PROGRAMS = [
    f"{RACK}/study/test_{each}.py"
    for each in (
        "command", "command_lives", "big_tcp", "missing", "processes", "refused_calls", "routers", "senders", "sockets",
        "tunings", "web",
    )
]  # fmt: skip
# They ask for known answers at low rates.
NETWORKS = [
    f"{RACK}/diagnose",
    *(f"{RACK}/study/test_{each}.py" for each in ("exchanges", "incast", "networks", "nic", "pacing")),
]
SLOWEST = 40
MOST_CHARACTERS = 300  # of why a test failed, in the list at the end
MOST_UNJUDGED = 0.02  # of the tests on racks: more is a fault of ours, or no machine to test on
AGAIN, MOST_AGAIN = "pytest, again", 5  # tests on racks that are run once more, alone
# numpy's and scipy's: a thread for each CPU that spins, which is half of what it takes to import them, in each of
# thousands of programs.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# A change is judged by the same inputs each time, as Python's property tests have them; `make soak` looks for new ones.
SEEDED, SEARCHING = {"PROPTEST_RNG_SEED": "1"}, {"PROPTEST_CASES": "20000"}
UNPASSED = {"failure", "error", "skipped"}  # words of pytest's reports
UNJUDGED = "not judged: "  # so begins what helpers/unjudged.py writes into pytest's report
# What a check may take: several times what it takes on a busy machine. A test has a limit of its own.
COMPILE_SECONDS, PYTHON_SECONDS, RACKS_SECONDS, SOAK_SECONDS = 1800.0, 1800.0, 3600.0, 86400.0


@dataclass(frozen=True, eq=False)
class Check(Job):
    """`report`: pytest writes its times; `is_small`: the files of its tests may be kept in memory."""

    report: bool = False
    is_small: bool = False


def compiling(name: str, *words: str, environment: Mapping[str, str] | None = None) -> Check:
    """It keeps all CPUs busy, and gives way to tests that wait. What a later build could reuse is not written in CI,
    which has none, and where that took a quarter of the time."""
    once = {"CARGO_INCREMENTAL": "0"} if os.environ.get("CI") else {}
    return Check(
        name, ["nice", *words], CPUS, limit_seconds=COMPILE_SECONDS, environment={**once, **(environment or {})}
    )


def pytest(name: str, *words: str, cpus: int = 1, seconds: float = PYTHON_SECONDS, apart: bool = False) -> Check:
    """A run of pytest whose slowest tests are listed at the end."""
    command = [f"{BIN}/python", "-m", "pytest", *words]
    return Check(name, command, cpus, kind="tests", apart=apart, limit_seconds=seconds, report=True)


def racks(name: str, *words: str, one_of: str = "racks", after: Sequence[str] = (), **rest: bool | int) -> Check:
    """One on real hosts. Racks go before all other programs, but not before each other: one at a time."""
    check = pytest(name, *words, seconds=RACKS_SECONDS, **rest)
    return replace(check, after=[AGENT.name, *after], one_of=one_of)


def proofs(name: str, *words: str) -> Check:
    """One on real hosts whose runs need not be faithful. Its racks let others go first, and one of these runs beside
    one of those; they wait more than they work."""
    check = racks(name, *words, one_of="proofs", cpus=0, after=["pytest"])
    return replace(check, environment={"FRAMEGAUGE_PRECEDENCE": "ordinary"})


def place() -> str | None:
    """The folder for temporary files: in memory, where saving results safely takes no time, if they fit there."""
    return str(MEMORY) if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES else None


AGENT = compiling("agent", "make", "--no-print-directory", "agent")
CLIPPY = compiling("clippy", "cargo", "clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings")
TESTS = ["cargo", "test", "--locked", "--workspace"]
# Tests of these crates build racks as well, whose groups of processes are there for a moment; the others only compute.
KERNEL = [f"framegauge-{name}" for name in ("agent", "drivers", "linux")]
ON_KERNEL = [*TESTS[:3], *(f"--package={name}" for name in KERNEL), "--no-fail-fast"]
CARGO = [
    compiling("cargo build", *TESTS, "--no-run"),
    compiling(
        "cargo test, pure", *TESTS, "--no-fail-fast", *(f"--exclude={name}" for name in KERNEL), environment=SEEDED
    ),
    replace(compiling("cargo test", *ON_KERNEL, environment=SEEDED), kind="tests"),
]
LINT = [
    Check("rustfmt", ["cargo", "fmt", "--check"]),
    Check("ruff", [f"{BIN}/ruff", "check", "python", "bench", "scripts", "setup.py"]),
    Check("ruff format", [f"{BIN}/ruff", "format", "--check", "python", "bench", "scripts", "setup.py"]),
    Check("house rules", [f"{BIN}/python", "scripts/house.py"]),
    Check("import-linter", [f"{BIN}/lint-imports", "--no-logo"]),
    Check("mypy", [f"{BIN}/mypy"]),
    CLIPPY,
]
PURE = ["python/tests", *(f"--ignore={path}" for path in (RACK, *HOSTS, *INSTALL))]
BESIDE = [*HOSTS, *PROOFS, *EXAMPLES, *CAPTURES, *STORAGE, *PROGRAMS, *TRACES, *NETWORKS]
RACKS = [RACK, *(f"--ignore={each}" for each in BESIDE if each.startswith(RACK))]
# Collecting all tests takes longer than these.
AGENTS = [
    str(path.relative_to(ROOT))
    for path in sorted((ROOT / "python/tests").rglob("test_*.py"))
    if "pytest.mark.agent" in path.read_text()
]


def workers(count: int) -> list[str]:
    """The words for so many, each with whole files."""
    return ["-n", str(count), "--dist", "loadfile"]


def python(chosen: str, agents: Sequence[str]) -> list[Check]:
    """The `chosen` Python tests without a rack, and those of files `agents` that need an agent."""
    pure = pytest("pytest", *PURE, "-m", chosen, "-n", str(CPUS), cpus=CPUS)
    # Half of their time they wait for an agent.
    some = pytest("pytest, agent", *agents, "-m", "agent", *workers(CPUS + 1), cpus=CPUS)
    return [replace(pure, is_small=True), replace(some, after=[AGENT.name])]


def with_racks() -> list[Check]:
    """All checks."""
    agents = [path for path in AGENTS if not path.startswith((*HOSTS, *INSTALL))]
    return [
        AGENT,
        racks("pytest, traces", *TRACES, apart=True, cpus=0),
        *LINT,
        *CARGO,
        *python("not agent", agents),
        racks("pytest, racks", *RACKS),
        racks(
            "pytest, hosts", *HOSTS, *NOT_HOSTS, "-n", str(CPUS + 1), "--dist", "loadfile", one_of="", after=["pytest"]
        ),
        racks("pytest, networks", *NETWORKS),
        racks("pytest, captures", *CAPTURES),
        racks("pytest, install", *INSTALL),
        proofs("pytest, examples", *EXAMPLES, f"--deselect={LIVE}", "-n", "2"),
        proofs("pytest, proofs", *PROOFS, LIVE),
        proofs("pytest, programs", *PROGRAMS),
        proofs("pytest, storage", *STORAGE),
    ]


FUZZ = Check("fuzz", [f"{BIN}/python", "scripts/fuzz.py"], CPUS, limit_seconds=SOAK_SECONDS)
PROPERTIES = Check("properties", [*TESTS, "--no-fail-fast"], CPUS, limit_seconds=SOAK_SECONDS, environment=SEARCHING)
LONG = pytest("pytest, long forms", "python/tests", "-m", "soak", "-v", cpus=CPUS, seconds=SOAK_SECONDS)
GROUPS = {
    "lint": LINT,
    "quick": [AGENT, *LINT, *CARGO, *python("not agent and not thorough", AGENTS)],
    "test": with_racks(),
    "soak": [AGENT, FUZZ, PROPERTIES, replace(LONG, environment={"FRAMEGAUGE_SOAK": "1"})],
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
    """What has ended so far."""

    folder: Path
    seconds: dict[str, float] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)

    def reporting(self, check: Check) -> Check:
        """With the words by which pytest writes how long each test took."""
        report = self.report_of(check.name)
        small = {"PYTEST_DEBUG_TEMPROOT": str(self.folder)} if check.is_small else {}
        words = [*check.command, f"--junitxml={report}"] if check.report else check.command
        return replace(check, command=words, environment={**check.environment, **small})

    def report_of(self, name: str) -> Path:
        """Where pytest writes what a check found."""
        return self.folder / f"{name.replace(' ', '-').replace(',', '')}.xml"

    def add(self, job: Job, ended: Ended) -> None:
        """What is known of a check that has ended."""
        self.seconds[job.name], self.cpu_seconds[job.name] = ended.seconds, ended.cpu_seconds
        if job.name == AGAIN:
            return
        self.failed += [] if ended.passed else [job.name]
        for line in ended.lines:
            self.tally.read(line)

    def cases(self, checks: str = "*") -> Iterator[ElementTree.Element]:
        """All tests of pytest that have ended."""
        for path in sorted(self.folder.glob(self.report_of(checks).name)):
            yield from ElementTree.parse(path).iter("testcase")

    def slowest(self) -> list[tuple[float, str]]:
        """All tests whose times are known, the slowest first."""
        return sorted(((float(case.get("time", 0)), name_of(case)) for case in self.cases()), reverse=True)

    def failures(self, checks: str = "*") -> list[str]:
        """The tests of pytest that did not pass."""
        return [name_of(case) for case in self.cases(checks) if {each.tag for each in case} & {"failure", "error"}]

    def failed_tests(self) -> list[str]:
        """Those that did not pass, also alone, each with the first line of why."""
        lines = set()
        for case in self.cases():
            why = case.find("failure") if case.find("error") is None else case.find("error")
            if why is not None and name_of(case) not in self.alone:
                first = (why.get("message", "").strip().splitlines() or [""])[0]
                lines.add(f"{name_of(case)}\n    {first[:MOST_CHARACTERS]}")
        return sorted(lines)

    def once_more(self) -> Check | None:
        """The tests on racks that failed, to be run alone; none if there are too many, or a check failed otherwise."""
        names = [name for check in self.failed for name in self.failures(check)]
        of_racks = all(name.startswith(RACK.replace("/", ".")) for name in names)
        if not of_racks or not 0 < len(names) <= MOST_AGAIN or not all(map(self.failures, self.failed)):
            return None
        places = [name.partition("::") for name in names]
        words = [f"{module.replace('.', '/')}.py::{test}" for module, _, test in places]
        return self.reporting(pytest(AGAIN, *words, seconds=RACKS_SECONDS))

    def settle(self) -> None:
        """A check in which nothing failed but tests that passed alone has passed."""
        passed = {name_of(case) for case in self.cases(AGAIN) if not {each.tag for each in case} & UNPASSED}
        self.failed = [check for check in self.failed if not set(self.failures(check)) <= passed]
        self.alone = sorted(passed)
        self.tally.failed, self.tally.passed = self.tally.failed - len(passed), self.tally.passed + len(passed)

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


def main(groups: list[str]) -> int:
    """Run a group; 0 if every check passed."""
    if len(groups) != 1 or groups[0] not in GROUPS:
        print(f"usage: scripts/checks.py {'|'.join(GROUPS)}", file=sys.stderr)
        return 2
    checks = GROUPS[groups[0]]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="checks-", dir=place()) as folder:
        results = Results(Path(folder))
        with noted() as signals:
            jobs = Jobs([results.reporting(check) for check in checks], CPUS, ROOT, results.add)
            done = jobs.run(signals)
            if done and groups == ["test"] and (again := results.once_more()):
                done = Jobs([again], CPUS, ROOT, results.add).run(signals)
                results.settle()
            if not done:
                print(f"\nended by {signals[0]}, and with it all that was started", flush=True)
                return 130
        return summed_up(len(checks), results, time.monotonic() - began)


def summed_up(count: int, results: Results, seconds: float) -> int:
    """Print what is known of all `count` checks; 0 if they passed, and enough tests were judged."""
    slowest = [f"{took:6.1f} s  {name}" for took, name in results.slowest()[:SLOWEST] if took >= 0.5]
    listed("the slowest tests", slowest)
    parts = [f"{took:6.0f} s {results.cpu_seconds[name]:6.0f} s  {name}" for name, took in results.seconds.items()]
    listed("by part, and the CPU time of its processes", parts)
    listed("failed beside other checks, passed alone", results.alone)
    listed("failed tests", results.failed_tests())
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
        print("".join(f"  {line}\n" for line in lines), end="")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
