"""That `scripts/house.py`, which `make lint` and `make test` run, finds what breaks each rule, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.support import PATIENCE_SECONDS, ROOT, script

house = script("house")
# In two parts, so that these are not taken for what they are an example of.
SOAK, ENDING, HOME = "@pytest.mark." + "soak", "from helpers.un" + "judged import not_judged\n", "/home/" + "me/\n"
LINTS = '[lints.clippy]\nundocumented_unsafe_blocks = "deny"\n'


def rust(lines: int) -> str:
    """A function of so many lines."""
    return "fn a() {\n" + "    b();\n" * (lines - 2) + "}\n"


def python(name: str, lines: int) -> str:
    """A module with a function of so many lines."""
    return f'"""A."""\n\n\ndef {name}():\n    """A."""\n' + "    c()\n" * (lines - 2)


# A tree without an offence.
GOOD = {
    "Cargo.toml": '[workspace.lints]\nrust.unsafe_code = "forbid"\nclippy.disallowed_methods = "deny"\n',
    "crates/frames/Cargo.toml": '[package]\nname = "framegauge-frames"\n[lints]\nworkspace = true\n',
    "crates/frames/src/lib.rs": rust(60),
    "crates/frames/tests/all/main.rs": "//! All.\n\nmod sizes;\n",
    "crates/frames/tests/all/sizes.rs": "",
    "crates/linux/Cargo.toml": f'[package]\nname = "framegauge-linux"\n{LINTS}[dependencies]\nframegauge-frames = {{}}\n',
    "crates/linux/src/lib.rs": "#![expect(clippy::disallowed_methods)]\n",
    "pyproject.toml": '[[tool.importlinter.contracts]]\ntype = "layers"\nlayers = ["cli", "study | results"]\n',
    "python/src/framegauge/__init__.py": '"""All."""\n',
    "python/src/framegauge/cli/output.py": '"""Words."""\nprint(1)\n',
    "python/src/framegauge/results/a.py": python("a", 60),
    "python/src/framegauge/study/a.py": '"""A."""\n\n\ndef a():\n    """A."""\n\n    def b():\n        pass\n',
    "python/tests/study/test_a.py": f"{SOAK}(0.5)\n",
    "python/tests/helpers/real.py": ENDING,
    "results/1/note.txt": HOME,
}
# For each rule: files that are other ones, and its offender.
OFFENCES = [
    ("crates use only what their place allows", {
        "crates/frames/Cargo.toml": GOOD["crates/frames/Cargo.toml"] + "[dev-dependencies]\nframegauge-linux = {}\n",
    }, "crates/frames/Cargo.toml: may not use linux"),
    ("crates use only what their place allows", {
        "crates/fabric/Cargo.toml": '[package]\nname = "fabric"\n[lints]\nworkspace = true\n',
    }, "crates/fabric/Cargo.toml: found the name fabric, expected framegauge-fabric"),
    ("crates use only what their place allows", {
        "crates/stranger/Cargo.toml": '[package]\nname = "framegauge-stranger"\n[lints]\nworkspace = true\n',
    }, "crates/stranger: found a crate without a place in scripts/house.py, expected one"),
    ("every file of tests is named", {
        "crates/frames/tests/all/rates.rs": "",
    }, "crates/frames/tests/all/rates.rs: main.rs beside it does not name it"),
    ("no crate hands on another one whole", {
        "crates/linux/src/lib.rs": "pub use framegauge_frames as frames;\n",
    }, "crates/linux/src/lib.rs: hands on a crate whole"),
    ("only linux and what is preloaded hold unsafe code", {
        "crates/frames/Cargo.toml": '[package]\nname = "framegauge-frames"\n[lints.rust]\nunsafe_code = "allow"\n',
    }, "crates/frames/Cargo.toml: expected lints of the workspace"),
    ("only linux and what is preloaded hold unsafe code", {
        "crates/linux/Cargo.toml": GOOD["crates/linux/Cargo.toml"].replace('"deny"', '"allow"'),
    }, "crates/linux/Cargo.toml: expected undocumented_unsafe_blocks = 'deny'"),
    ("only linux and what is preloaded hold unsafe code", {
        "Cargo.toml": GOOD["Cargo.toml"].replace("forbid", "deny"),
    }, "Cargo.toml: expected unsafe_code = 'forbid' for the workspace"),
    ("pure crates never lift the ban on clocks sockets and files", {
        "crates/frames/src/lib.rs": "#[allow(clippy::disallowed_methods)]\nfn now() {}\n",
    }, "crates/frames/src/lib.rs: lifts the ban on clocks, sockets and files"),
    ("functions of rust are short", {
        "crates/frames/tests/a.rs": rust(61),
    }, "crates/frames/tests/a.rs: a has 61 lines, expected at most 60"),
    ("files of rust are short", {
        "crates/frames/src/a.rs": "use a;\n" * 401,
    }, "crates/frames/src/a.rs: 401 lines, expected at most 400"),
    ("files and functions of python are short", {
        "python/src/framegauge/study/b.py": '"""B."""\n' + 400 * "\n",
    }, "study/b.py: 401 lines, expected at most 400"),
    ("files and functions of python are short", {
        "python/src/framegauge/study/b.py": python("b", 61),
    }, "study/b.py: b has 61 lines, expected at most 60"),
    ("everything public is documented", {"python/src/framegauge/study/b.py": ""}, "study/b.py: expected a docstring"),
    ("everything public is documented", {
        "python/src/framegauge/study/b.py": '"""B."""\n\n\nclass A:\n    """A."""\n\n    def b(self):\n        pass\n',
    }, "study/b.py: expected a docstring of b"),
    ("everything is printed at one place", {
        "python/src/framegauge/study/b.py": '"""B."""\nprint(1)\n',
    }, "study/b.py: found print, expected printing through cli/output.py or cli/console.py"),
    ("everything is printed at one place", {
        "python/src/framegauge/study/b.py": '"""B."""\nimport sys\nsys.stderr.write("")\n',
    }, "study/b.py: found sys.stderr, expected printing through cli/output.py or cli/console.py"),
    ("locals have names of things", {
        "python/src/framegauge/study/b.py": '"""B."""\n\n\ndef a(told):\n    """A."""\n    for found in told:\n        pass\n',
    }, "study/b.py:6: found a local found, expected what it is"),
    ("contracts name every room", {
        "python/src/framegauge/new/a.py": '"""A."""\n',
    }, "pyproject.toml: the layers name no room new"),
    ("contracts name every room", {
        "pyproject.toml": GOOD["pyproject.toml"].replace("cli", "cli | gone"),
    }, "pyproject.toml: found no room gone, which the layers name"),
    ("tests mirror the rooms", {
        "python/tests/elsewhere/test_a.py": "",
    }, "python/tests/elsewhere: found no room of this name"),
    ("long forms say their minutes", {
        "python/tests/study/test_a.py": f"{SOAK}(MINUTES)\n",
    }, f"python/tests/study/test_a.py: found {SOAK[8:]}(MINUTES), expected a number of minutes"),
    ("no test ends itself as not judged", {
        "python/tests/study/test_a.py": ENDING,
    }, "python/tests/study/test_a.py: ends tests as not judged, expected helpers.real.judged or faithful"),
    ("no file names a path of the machine it was written on", {
        "docs/a.md": HOME,
    }, "docs/a.md: names a path of a machine"),
]  # fmt: skip


def written(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.mark.parametrize(("rule", "files", "offender"), OFFENCES, ids=[each[2] for each in OFFENCES])
def test_each_rule_finds_its_offender_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rule: str, files: dict[str, str], offender: str
) -> None:
    assert house.main([str(written(tmp_path, {**GOOD, **files}))]) == 1
    *lines, count = capsys.readouterr().out.splitlines()
    assert lines == [f"{rule}: {offender}"]
    assert count.startswith("1 offenders in ")


def test_a_tree_without_an_offence_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert house.main([str(written(tmp_path, GOOD))]) == 0
    assert capsys.readouterr().out == f"{len(GOOD) - 1} files, {len(house.RULES)} rules\n"


def test_places_that_have_a_circle_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house, "MAY_USE", {**house.MAY_USE, "frames": {"packets"}})
    assert "scripts/house.py: frames may use what may use it" in list(house.places_have_no_circle(house.Tree(tmp_path)))


def test_no_rule_is_without_an_offence() -> None:
    named = {rule.replace(" ", "_") for rule, _, _ in OFFENCES} | {"places_have_no_circle"}
    assert {rule.__name__ for rule in house.RULES} == named


def test_long_files_of_rust_with_a_reason_and_tests_of_a_file_do_not_count(tmp_path: Path) -> None:
    files = {
        "crates/frames/src/a.rs": "//! Longer than others, for a reason.\n" + "use a;\n" * 500,
        "crates/frames/src/b.rs": "use a;\n" * 300 + "#[cfg(test)]\nmod tests {\n" + "    use a;\n" * 300 + "}\n",
    }
    assert list(house.files_of_rust_are_short(house.Tree(written(tmp_path, files)))) == []


def test_functions_are_measured_to_their_own_end() -> None:
    text = "impl A {\n    fn a(&self) {\n        b();\n    }\n    fn c();\n}\nfn d() {}\n"
    assert list(house.functions(text)) == [("a", 3), ("c", 1), ("d", 1)]


def test_this_project_is_among_what_is_looked_at() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/house.py"], capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    tree = house.Tree(ROOT)
    assert len(tree.modules) > 400
    assert len(tree.rust) > 100
    assert len(tree.manifests) == len(house.MAY_USE)
