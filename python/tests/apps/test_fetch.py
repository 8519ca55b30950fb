"""Fetching applications: whole and verified, or not at all, with a Maven and a Java that are scripts."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from framegauge.apps import catalogue, java, maven, store
from framegauge.apps.catalogue import App, File
from framegauge.cli import main as cli
from framegauge.errors import FramegaugeError, InputError

CONTENT = b"the content of a jar"
JAVA = """#!/bin/sh
echo 'openjdk version "{version}" 2025-04-15' >&2
"""
MAVEN = """#!/bin/sh
echo run >> "$0.log"
for word; do case "$word" in -DoutputDirectory=*) folder="${word#-DoutputDirectory=}";; esac; done
mkdir -p "$folder"
echo 'Downloaded from somewhere: https://somewhere/org/tool/1.0/tool-1.0.jar (20 B at 1 kB/s)'
"""
WRITES = "printf 'the content of a jar' > \"$folder/tool-1.0.jar\"\n"


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> App:
    """An application of one file, a PATH with java alone, and an empty cache."""
    one = App("tool", "1.0", "workload of tests")
    # A cached property: what is there already is not read from the package.
    one.__dict__["files"] = (File(hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "org:tool:1.0", "Apache-2.0"),)
    monkeypatch.setattr(catalogue, "APPS", {"tool": one})
    monkeypatch.setattr(store, "APPS", {"tool": one})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    program(tmp_path, "java", JAVA.format(version="17.0.15"))
    return one


def program(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / "bin" / name
    path.write_text(text.replace("mkdir", "/bin/mkdir"))
    path.chmod(0o755)
    return path


def left(tmp_path: Path) -> list[str]:
    folder = tmp_path / "cache/framegauge/apps"
    return sorted(each.name for each in folder.iterdir() if each.name != ".lock") if folder.is_dir() else []


def test_what_is_fetched_is_verified_and_fetched_once(app: App, tmp_path: Path, capsys) -> None:
    mvn = program(tmp_path, "mvn", MAVEN + WRITES)
    for _ in range(2):
        assert cli.main(["apps", "fetch", "tool"]) == 0
        out, err = capsys.readouterr()
        assert out == f"tool-1.0 is in {tmp_path}/cache/framegauge/apps/tool-1.0\n"
    assert err == ""
    assert mvn.with_name("mvn.log").read_text() == "run\n"
    assert [each.name for each in store.folder(app).iterdir()] == ["tool-1.0.jar"]
    assert left(tmp_path) == ["tool-1.0"]
    assert cli.main(["apps", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["apps"]
    assert [(each["name"], each["installed"], each["size_bytes"]) for each in told] == [("tool", True, 20)]
    for words in ("tool-1.0 was removed", "tool-1.0 is not there"):
        assert cli.main(["apps", "remove", "tool"]) == 0
        assert capsys.readouterr().out == f"{words}\n"
    assert left(tmp_path) == []
    assert cli.main(["apps"]) == 0
    assert "tool 1.0 (for workload of tests): not there: framegauge apps fetch tool" in capsys.readouterr().out


def test_a_damaged_file_is_fetched_again(app: App, tmp_path: Path) -> None:
    program(tmp_path, "mvn", MAVEN + WRITES)
    said: list[str] = []
    (store.fetch(app, said.append) / "tool-1.0.jar").write_bytes(b"other")
    store.fetch(app, said.append)
    assert "tool-1.0 is damaged and fetched again: tool-1.0.jar: found SHA-256 " in "\n".join(said)
    assert (store.folder(app) / "tool-1.0.jar").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            'printf other > "$folder/tool-1.0.jar"\n',
            r"tool-1\.0: tool-1\.0\.jar: found SHA-256 \w+, expected \w+ \(org",
        ),
        ("", r"tool-1\.0\.jar: found no such file, expected one \(org:tool:1\.0\)"),
        (WRITES + ': > "$folder/more.jar"\n', r"more\.jar: found a file that is not listed, expected 1 that are"),
        (
            WRITES + '/bin/mv "$folder/tool-1.0.jar" "$folder/.."; /bin/ln -s ../tool-1.0.jar "$folder"\n',
            r"tool-1\.0\.jar: found no such file, expected one \(org:tool:1\.0\)",
        ),
        (
            "echo '[\x1b[1;31mERROR\x1b[m] Could not transfer artifact: Unknown host'; echo '[ERROR] more'; exit 1\n",
            r"mvn failed \(exit code 1\): Could not transfer artifact: Unknown host; expected a network, or a mirror",
        ),
        ("exit 3\n", r"mvn failed \(exit code 3\): it printed no error; expected"),
    ],
    ids=["checksum", "missing", "another", "link", "no network", "silent"],
)
def test_what_goes_wrong_is_one_line_and_leaves_nothing(app: App, tmp_path: Path, script: str, message: str) -> None:
    program(tmp_path, "mvn", MAVEN + script)
    with pytest.raises(FramegaugeError, match=message) as error:
        store.fetch(app, lambda _: None)
    assert error.value.exit_code == 1
    assert "\n" not in str(error.value)
    assert left(tmp_path) == []


def test_programs_that_are_missing_or_too_old_are_named(app: App, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^mvn: found no such program, expected Maven, .*apt-get install maven"):
        store.fetch(app, lambda _: None)
    for version, found in (("1.8.0_412", "version 8"), ("24", "version 24"), ("x", "an unknown version")):
        program(tmp_path, "java", JAVA.format(version=version))
        with pytest.raises(InputError, match=rf"^java: found .*/java of {found}, expected Java 11 to 23"):
            store.fetch(app, lambda _: None)
    (tmp_path / "bin/java").unlink()
    with pytest.raises(InputError, match=r"^java: found no such program, expected Java 11 to 23"):
        store.fetch(app, lambda _: None)
    assert left(tmp_path) == []


def test_an_interrupted_fetch_ends_maven_and_leaves_nothing(app: App, tmp_path: Path) -> None:
    program(tmp_path, "mvn", MAVEN.replace("echo run", 'echo $$ > "$0.pid"; echo run') + "exec /bin/sleep 600\n")

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    (tmp_path / "work").mkdir()
    with pytest.raises(KeyboardInterrupt):
        maven.copy(["org:tool:1.0"], tmp_path / "work", interrupt)
    assert not os.path.exists(f"/proc/{(tmp_path / 'bin/mvn.pid').read_text().strip()}")
    with pytest.raises(KeyboardInterrupt):
        store.fetch(app, interrupt)
    assert left(tmp_path) == []
    # What a process that was killed has left goes with the next fetch.
    (store.cache() / f"{store.DRAFT}x").mkdir()
    program(tmp_path, "mvn", MAVEN + WRITES)
    store.fetch(app, lambda _: None)
    assert left(tmp_path) == ["tool-1.0"]


def test_two_at_once_are_one_too_many(app: App) -> None:
    with (
        store._locked(),
        pytest.raises(InputError, match="found another process that fetches or removes, expected none"),
    ):
        store.fetch(app, lambda _: None)


def test_an_unknown_application_is_named(capsys) -> None:
    assert cli.main(["apps", "fetch", "hadop"]) == 2
    assert capsys.readouterr().err == "framegauge: apps: found 'hadop', expected one of hadoop\n"


def test_versions_of_java() -> None:
    assert java.version_of('java version "1.8.0_412"') == 8
    assert java.version_of('openjdk version "11.0.22" 2024-01-16') == 11
    assert java.version_of("no java") is None


def test_the_list_of_hadoop_is_whole() -> None:
    app = catalogue.APPS["hadoop"]
    names = [each.name for each in app.files]
    assert len(set(names)) == len(names) > 150
    assert all(len(each.sha256) == 64 and each.size_bytes > 0 and each.licence for each in app.files)
    assert f"hadoop-mapreduce-examples-{app.version}.jar" in names
    assert sum(app.licences.values()) == len(names)


def test_every_file_depends_on_nothing_else() -> None:
    text = maven.pom(["org:tool:1.0", "org:tool:1.0:linux-x86_64"])
    assert text.count("<artifactId>*</artifactId>") == 2
    assert "<version>1.0</version><classifier>linux-x86_64</classifier><exclusions>" in text
