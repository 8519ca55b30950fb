"""Completion, by the shells themselves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from framegauge.cli import completion, main

# Loads the script, and completes the last word of a line as a Tab does.
BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
$(complete -p framegauge | sed 's/.*-F \\([^ ]*\\) .*/\\1/') framegauge "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "framegauge"
    path.write_text(completion.script("bash"))
    return path


def completed(path: Path, words: list[str], folder: Path) -> set[str]:
    """What bash makes of `framegauge WORDS<Tab>` in a folder."""
    command = ["bash", "--norc", "-c", BASH, "bash", str(path), "framegauge", *words]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert not found.stderr
    return {line.strip() for line in found.stdout.splitlines() if line.strip()}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["stu"], {"study"}),
        (["c"], {"capture", "check", "compare", "completion"}),
        (["study", "--dry"], {"--dry-run"}),
        (["study", "--preset", "dem"], {"demo"}),
        (["rack", "wa"], {"watch"}),
        (["rack", "set", "--ra"], {"--rate"}),
        (["schema", "sum"], {"summary"}),
        (["completion", "z"], {"zsh"}),
        (["report", "results", "--html", "pa"], {"page.html"}),
        (["report", "res"], {"results"}),
    ],
    ids=lambda words: " ".join(sorted(words)),
)
def test_bash_completes(words: list[str], expected: set[str], bash_script: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").touch()
    (tmp_path / "results").mkdir()
    assert completed(bash_script, words, tmp_path) == expected


def test_bash_offers_every_verb(bash_script: Path, tmp_path: Path) -> None:
    assert set(main.VERBS) <= completed(bash_script, [""], tmp_path)


def accepted(shell: str, folder: Path) -> None:
    path = folder / "script"
    path.write_text(completion.script(shell))
    found = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.needs("zsh")
def test_zsh_takes_its_script(tmp_path: Path) -> None:
    accepted("zsh", tmp_path)


@pytest.mark.needs("fish")
def test_fish_takes_its_script(tmp_path: Path) -> None:
    accepted("fish", tmp_path)


@pytest.mark.needs("fish")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("framegauge stu", "study"),
        ("framegauge study --preset dem", "demo"),
        ("framegauge rack wa", "watch"),
        ("framegauge completion f", "fish"),
    ],
)
def test_fish_completes(line: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text(completion.script("fish"))
    asked = ["fish", "--no-config", "-c", f"source {path}; complete -C {line!r}"]
    offered = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert [row.split("\t")[0] for row in offered.stdout.splitlines()] == [expected]


def test_a_script_of_every_shell_has_every_verb() -> None:
    for shell in completion.SHELLS:
        script = completion.script(shell)
        assert [verb for verb in main.VERBS if verb not in script] == [], shell


@pytest.mark.needs("tcsh")
def test_tcsh_takes_its_script(tmp_path: Path) -> None:
    accepted("tcsh", tmp_path)


def test_the_script_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["completion", "bash"]) == 0
    assert "complete " in capsys.readouterr().out
