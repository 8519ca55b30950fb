"""The command line as people meet it: exit codes, first lines, what goes where."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema
import pytest
from helpers.support import ROOT, STUDY

from framegauge import __version__
from framegauge.cli import commands, main as cli
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order

MAIN = [sys.executable, "-m", "framegauge"]


def run(*arguments, **options):
    return subprocess.run([*MAIN, *map(str, arguments)], capture_output=True, text=True, check=False, **options)


def test_a_study_and_its_report_print_the_same(study_path, tmp_path, capsys):
    assert cli.main(["study", str(study_path), "--out", str(tmp_path / "out"), "--json"]) == 0
    out, err = capsys.readouterr()
    kept = json.loads((tmp_path / "out/summary.json").read_text())
    assert json.loads(out) == {key: each for key, each in kept.items() if key != "seal"}
    assert "run 1 of 18, about" in err
    moved = tmp_path / "elsewhere"
    shutil.move(tmp_path / "out", moved)
    assert cli.main(["report", str(moved), "--json"]) == 0
    assert capsys.readouterr().out == out
    assert cli.main(["report", str(moved)]) == 0
    table = capsys.readouterr().out
    assert "MTU 9000" in table
    assert "better" in table
    assert "no practical difference" in table
    assert "scope: invented; faithful" in table
    assert {"study.yaml", "results.json", "environment.json", "runs.jsonl", "runs.parquet", "runs.csv"} <= {
        item.name for item in moved.iterdir()
    }


def test_a_study_writes_its_page_where_it_is_wanted(study_path, tmp_path, capsys):
    words = ["study", str(study_path), "--out", str(tmp_path / "out"), "--html", str(tmp_path / "page.html")]
    assert cli.main(words) == 0
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "out/report.html").read_bytes()


def test_two_that_begin_together_have_folders_of_their_own(tmp_path, monkeypatch):
    """And what nothing was written into is gone when the program ends."""
    monkeypatch.chdir(tmp_path)
    ends = []
    monkeypatch.setattr("atexit.register", lambda *call: ends.append(call))
    folders = [commands.choose_folder("rack") for _ in range(3)]
    assert [str(each) for each in folders] == ["results/rack", "results/rack-2", "results/rack-3"]
    assert commands.free_folder("rack") == commands.free_folder("rack") == Path("results/rack-4")
    (folders[1] / "results.json").write_text("{}")
    for leave, folder in ends:
        leave(folder)
    assert sorted(str(each) for each in Path().rglob("*")) == [
        "results", "results/rack-2", "results/rack-2/results.json",
    ]  # fmt: skip


def test_seed_resume_and_dry_run(study_path, tmp_path, capsys):
    assert cli.main(["study", str(study_path), "--dry-run", "--seed", "5"]) == 0
    assert "18 runs" in capsys.readouterr().out
    out = str(tmp_path / "out")
    assert cli.main(["study", str(study_path), "--out", out, "--seed", "5"]) == 0
    assert cli.main(["study", str(study_path), "--out", out]) == 2
    assert "--resume" in capsys.readouterr().err
    assert cli.main(["study", str(study_path), "--out", out, "--resume"]) == 2
    assert "found another study" in capsys.readouterr().err
    assert cli.main(["study", "--out", out, "--resume"]) == 0
    assert cli.main(["study", str(study_path), "--out", out, "--resume", "--seed", "5"]) == 0


def test_what_there_is_to_begin_with_is_listed(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    cli.main(["study", "--list"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(study_file.presets()) + len(list((ROOT / "examples").glob("*.yaml")))
    assert re.fullmatch(r"--preset demo +2 min  Do jumbo frames help bulk transfers on this rack\?", lines[0])
    monkeypatch.chdir(tmp_path)
    cli.main(["study", "--list", "--json"])
    found = json.loads(capsys.readouterr().out)["studies"]
    assert [each["study"] for each in found] == [f"--preset {name}" for name in study_file.presets()]
    assert all(0 < each["seconds"] < 3600 and each["question"] for each in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["study"], "found neither FILE nor --preset"),
        (["study", "--preset", "dmeo"], "expected one of demo"),
        (["study", "none.yaml"], "No such file"),
        (["study", "--resume"], "found no --out"),
        (["report", "nowhere"], "found no results.json"),
        (["requirements", "--rate", "fast"], "expected a rate such as 1 Gb/s"),
    ],
)
def test_bad_input_is_exit_2_with_one_line_on_stderr(arguments, message, capsys):
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("framegauge: ")
    assert message in err.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "verb", "line"),
    [
        (["studdy"], "framegauge", "unknown verb 'studdy': did you mean 'study'?"),
        (["tsdy", "x.yaml", "--out", "y"], "framegauge", "unknown verb 'tsdy': did you mean 'study'?"),
        (["STUDY"], "framegauge", "unknown verb 'STUDY': did you mean 'study'?"),
        (["preflight", "db1"], "framegauge", "unknown verb 'preflight': did you mean 'rollout preflight'?"),
        (["apply"], "framegauge", "unknown verb 'apply': did you mean 'rollout apply'?"),
        (["version", "--json"], "framegauge", "version: found '--json' behind it, expected nothing"),
        (["-V"], "framegauge", "unknown option '-V': did you mean '--version'?"),
        (["capture", "db1", "--interval", "3s"], "framegauge capture", "unknown option '--interval': did you mean '--for'?"),
        (["check", "-i", "hosts"], "framegauge check", "unknown option '-i': did you mean '--hosts'?"),
        (["versoin"], "framegauge", "unknown verb 'versoin': did you mean 'version'?"),
        (["hlep", "check"], "framegauge", "unknown verb 'hlep': did you mean 'help'?"),
        (["frobnicate"], "framegauge", f"unknown verb 'frobnicate', expected one of {', '.join(cli.VERBS)}"),
        ([], "framegauge", f"found no verb, expected one of {', '.join(cli.VERBS)}"),
        (["--vresion"], "framegauge", "unknown option '--vresion': did you mean '--version'?"),
        (["--blocks", "schema"], "framegauge", "unknown option '--blocks'"),
        (["study", "x.yaml", "--sede", "3"], "framegauge study", "unknown option '--sede': did you mean '--seed'?"),
        (["study", "x.yaml", "--bocks=3"], "framegauge study", "unknown option '--bocks': did you mean '--blocks'?"),
        (["study", "x.yaml", "y.yaml"], "framegauge study", "unexpected argument 'y.yaml'"),
        (["wire", "--mut", "9000"], "framegauge wire", "unknown option '--mut': did you mean '--mtu'?"),
        (["estimate", "local", "--html", "x"], "framegauge estimate", "unknown option '--html'"),
        (["rack"], "framegauge rack", "found no VERB, expected one of up, exec, down, show, list, watch, capture, set"),
        (["plan"], "framegauge plan", "found none of FILE --preset, expected one"),
        (["report"], "framegauge report", "found no DIR, expected it"),
        (["study", "--preset"], "framegauge study", "--preset: found nothing behind it, expected a value"),
        (["study", "x.yaml", "--preset", "y"], "framegauge study", "found --preset and FILE, expected one of them"),
        (["rack", "shwo"], "framegauge rack", "unknown verb 'shwo': did you mean 'show'?"),
        (["rack", "set", "h1", "--reat", "1"], "framegauge rack set", "unknown option '--reat': did you mean '--rate'?"),
        (["schema", "sumary"], "framegauge schema", "argument WHAT: unknown value 'sumary': did you mean 'summary'?"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_one_line_that_names_the_nearest(arguments, verb, line, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [f"{verb}: {line}", f"help: {verb} --help"]


@pytest.mark.parametrize("name", cli.VERBS)
def test_help_of_every_verb_has_examples(name, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([name, "--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: framegauge {name} ")
    examples = out.partition("examples:\n")[2]
    assert f"framegauge {name}" in examples


def test_help_lists_every_verb_and_imports_nothing_heavy():
    script = "import sys\nfrom framegauge.cli import main\ntry: main.main(['--help'])\nfinally: print(*sys.modules)"
    found = run_python(script).stdout
    listed, _, modules = found.rstrip().rpartition("\n")
    for name in cli.VERBS:
        assert re.search(rf"^    {name}\s", listed, re.MULTILINE)
    assert not {"numpy", "scipy", "pyarrow", "pydantic", "rich", "yaml", "shtab"} & set(modules.split())


def run_python(script):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def test_the_version_is_that_of_framegauge_and_of_the_agent_that_is_found(tmp_path):
    agent = tmp_path / "agent"
    agent.write_text("#!/bin/sh\necho framegauge-agent 9.9\n")
    agent.chmod(0o755)
    found = run("--version", env=os.environ | {"FRAMEGAUGE_AGENT": str(agent)})
    assert found.returncode == 0
    assert found.stdout.splitlines() == [f"framegauge {__version__}", f"framegauge-agent 9.9 ({agent})"]
    found = run("--version", env=os.environ | {"FRAMEGAUGE_AGENT": "/none"})
    assert found.returncode == 0
    assert found.stdout.splitlines()[1] == "FRAMEGAUGE_AGENT: found /none, expected an executable file"


def test_a_missing_agent_is_a_requirement(capsys, monkeypatch):
    monkeypatch.setenv("FRAMEGAUGE_AGENT", "/none")
    assert cli.main(["requirements"]) == 1
    out, err = capsys.readouterr()
    assert out == (
        "missing framegauge-agent: needed for everything that is measured; found FRAMEGAUGE_AGENT=/none, which is not an "
        "executable file; correct or unset FRAMEGAUGE_AGENT\n"
    )
    assert err == "framegauge: a requirement is missing\n"


@pytest.mark.parametrize("name", ["../../proc/1/ns/net", "..", ".", "a/b", "", "x" * 5000, "a\nb", "a\0b", "\udcff"])
def test_a_namespace_is_a_name_and_no_path(name, fake_agent, monkeypatch, capsys):
    monkeypatch.setenv("FRAMEGAUGE_AGENT", str(fake_agent))
    assert cli.main(["check", f"netns:{name}", "local"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("framegauge: netns:")
    assert len(err) < 200


@pytest.mark.thorough
def test_a_folder_whose_name_is_no_utf8_is_a_folder(study_path, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8:strict")
    folders = [tmp_path / os.fsdecode(name) for name in (b"a\xff", b"b")]
    for seed, folder in enumerate(folders):
        assert cli.main(["study", str(study_path), "--out", str(folder), "--seed", str(seed)]) == 0
    program = [sys.executable, "-m", "framegauge"]
    for words in (
        ["report", folders[0], "--html", folders[0] / "x.html", "--pictures", folders[0] / "p"],
        ["report", folders[0], "--markdown", "-"],
        ["compare", *folders],
    ):
        done = subprocess.run([*program, *words], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (folders[0] / "report.html").is_file()


def test_unfaithful_is_exit_3(study_path, tmp_path, capsys):
    study_path.write_text(STUDY.replace("{kind: fake}", "{kind: fake, fake: {faults: [late]}}"))
    assert cli.main(["study", str(study_path), "--out", str(tmp_path / "out")]) == 3
    out, err = capsys.readouterr()
    assert "NOT faithful" in out
    assert "not judged" in out
    assert "run 1 excluded: fidelity: lateness p99" in err
    assert cli.main(["report", str(tmp_path / "out")]) == 3


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ([], "factors"),
        (["study"], "factors"),
        (["summary"], "verdicts"),
        (["check"], "target_mtu"),
        (["compare"], "outcome"),
        (["estimate"], "total"),
    ],
)
def test_schemas_are_printed(words, word, capsys):
    assert cli.main(["schema", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(found)
    assert word in found["properties"]


def on_pipes(study_path, change=("", "")):
    study_path.write_text(STUDY.replace("kind: fake", "kind: rack").replace("blocks: 6", "blocks: 2").replace(*change))


def as_root(tmp_path):
    """Environment in which the agent can be started from here, whoever runs the tests."""
    sudo = tmp_path / "bin" / "sudo"
    sudo.parent.mkdir()
    sudo.write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ] && [ $# -gt 0 ]; do shift; done\n[ $# -gt 0 ] && shift && exec "$@"\nexit 0\n'
    )
    sudo.chmod(0o755)
    return os.environ | {"PATH": f"{sudo.parent}:{os.environ['PATH']}"}


@pytest.mark.thorough
def test_the_whole_way_over_real_pipes(study_path, tmp_path, fake_agent):
    on_pipes(study_path)
    environment = as_root(tmp_path) | {"FRAMEGAUGE_AGENT": str(fake_agent)}
    found = run("study", study_path, "--out", tmp_path / "out", "--json", env=environment)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["scope"] == "emulated"


def test_an_mtu_above_the_devices_limit_is_exit_2_and_leaves_no_study(study_path, tmp_path, fake_agent):
    on_pipes(study_path, ("9000]", "65530]"))
    text = study_path.read_text().replace("{kind: rack}", "{kind: rack, link: {port_mtu: 65535}}")
    # The order of the arms is drawn by lot: one in which the run that is refused is the first.
    texts = (f"{text}seed: {seed}\n" for seed in range(100))
    study_path.write_text(
        next(each for each in texts if block_order(study_file.parse(each, "x"), 0)[0].arm.level == 65530)
    )
    environment = as_root(tmp_path) | {"FRAMEGAUGE_AGENT": str(fake_agent)}
    found = run("study", study_path, "--out", tmp_path / "out", env=environment)
    assert found.returncode == 2
    line = next(line for line in found.stderr.splitlines() if line.startswith("framegauge: "))
    assert line.startswith("framegauge: MTU of h1: requested 65530, the limit here is 65521")
    assert not (tmp_path / "out").exists()


def test_no_agent_says_how_to_get_one(study_path, tmp_path):
    on_pipes(study_path)
    found = run("study", study_path, "--out", tmp_path / "out", env=os.environ | {"FRAMEGAUGE_AGENT": "/none"})
    assert found.returncode == 1
    assert "FRAMEGAUGE_AGENT: found /none, expected an executable file" in found.stderr
    assert not (tmp_path / "out").exists()


# Becomes another user only after the imports: Python itself may lie in a folder that is closed to that user.
UNPRIVILEGED = """
import os, sys
from framegauge.cli import main as cli, commands, progress
from framegauge.rack import hand
from framegauge.study import file as study_file
cli.parser(whole=True)  # and after what the imports leave for later
study_file.load_preset("demo")
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(cli.main(sys.argv[1:]))
"""


def test_without_privilege_it_says_so_before_anything_is_built(tmp_path):
    text = STUDY.replace("kind: fake", "kind: rack")
    kept = {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}  # this source, and no other
    environment = {"PATH": "/nonexistent", "FRAMEGAUGE_AGENT": "/bin/true", **kept}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        path = Path(folder) / "study.yaml"
        path.write_text(text)
        path.chmod(0o644)
        command = [sys.executable, "-c", UNPRIVILEGED, "study", str(path), "--out", f"{folder}/out"]
        process = subprocess.run(command, capture_output=True, env=environment, text=True, check=False)
        assert [each.name for each in Path(folder).iterdir()] == ["study.yaml"]
    assert process.returncode == 2
    assert process.stderr.splitlines() == [
        "framegauge: a simulation needs no root: framegauge simulate FILE, or --preset simulate to begin with",
        "framegauge: missing privilege (needed for network namespaces and TAP): found no sudo; "
        "run framegauge as root, or install sudo",
    ]


def test_interrupted_is_exit_130_with_what_there_is(study_path, tmp_path):
    study_path.write_text(STUDY.replace("blocks: 6", "blocks: 2000\nstop: blocks"))
    out = tmp_path / "out"
    command = [*MAIN, "study", str(study_path), "--out", str(out), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        first = process.stderr.readline()
        while (out / "runs.jsonl").read_text().count("\n") < 12:  # two blocks and more
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate()
    assert first.startswith("run 1 of")
    assert process.returncode == 130, errors
    assert "framegauge study --resume --out" in errors
    assert json.loads(printed)["verdicts"]
