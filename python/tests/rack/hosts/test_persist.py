"""Files of owners changed on a real host: whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.support import PATIENCE_SECONDS

from framegauge.agents.binary import find_agent
from framegauge.errors import ProgramFailure
from framegauge.rollout import persist
from framegauge.rollout.owners import Edit
from framegauge.testbeds.base import Host
from framegauge.testbeds.listed import ListedHosts
from framegauge.workloads.programs import running

OLD, NEW = "iface eth0 inet static\n    mtu 1500\n", "iface eth0 inet static\n    mtu 9000\n"


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    listed = ListedHosts(["a"], print, {"a": [str(find_agent()), "host"]})
    yield listed.hosts()[0]
    listed.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "interfaces"
    path.write_text(OLD)
    path.chmod(0o640)
    os.chown(path, 0, 1)
    return path


def test_a_file_keeps_its_owner_and_permissions_and_goes_back(host: Host, place: Path) -> None:
    edit = Edit("ifupdown", str(place), OLD, NEW, (("test", "-f", str(place)),))
    persist.apply(host, edit)
    assert place.read_text() == NEW
    found = place.stat()
    assert (found.st_mode & 0o777, found.st_uid, found.st_gid) == (0o640, 0, 1)
    persist.apply(host, edit.undo)
    assert place.read_text() == OLD
    assert [path.name for path in place.parent.iterdir()] == ["interfaces"]


def test_a_file_that_has_changed_since_it_was_read_is_left_alone(host: Host, place: Path) -> None:
    place.write_text(OLD + "# by hand\n")
    with pytest.raises(ProgramFailure, match=r"a: .*interfaces is not as it was when it was read"):
        persist.apply(host, Edit("ifupdown", str(place), OLD, NEW))
    assert place.read_text() == OLD + "# by hand\n"
    with pytest.raises(ProgramFailure, match="is there by now"):
        persist.apply(host, Edit("ifupdown", str(place), None, NEW))


def test_what_its_owner_refuses_is_put_back(host: Host, place: Path) -> None:
    refusing = (("sh", "-c", f"grep -q 1500 {place} || {{ echo no >&2; exit 4; }}"),)
    with pytest.raises(ProgramFailure, match=r"a: ifupdown: sh -c .*: no$"):
        persist.apply(host, Edit("ifupdown", str(place), OLD, NEW, refusing))
    assert place.read_text() == OLD


def test_a_new_file_has_its_mode_and_is_removed_again(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "new/90-mtu.yaml"
    edit = Edit("netplan", str(path), None, "mtu: 9000\n", mode=0o600)
    persist.apply(host, edit)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("mtu: 9000\n", 0o600)
    persist.apply(host, edit.undo)
    assert list(path.parent.iterdir()) == []


def test_a_link_is_followed_and_stays_one(host: Host, place: Path) -> None:
    link = place.parent / "link"
    link.symlink_to(place)
    persist.apply(host, Edit("ifupdown", str(link), OLD, NEW))
    assert (link.is_symlink(), place.read_text()) == (True, NEW)


@pytest.mark.parametrize("others", [0o757, 0o1777, 0o775, 0o755])
def test_no_link_leads_through_a_folder_of_others(host: Host, place: Path, tmp_path: Path, others: int) -> None:
    """Its owner could put a link to any file of root's in the place of the one that is written."""
    folder = tmp_path / "of/others"
    folder.mkdir(parents=True)
    (folder / "interfaces").write_text(OLD)
    place.unlink()
    place.symlink_to(folder / "interfaces")
    os.chown(folder.parent, 12345 if others == 0o755 else 0, 12345)
    folder.parent.chmod(others)
    edit = Edit("ifupdown", str(place), OLD, NEW)
    if others == 0o1777:  # as /tmp is
        persist.apply(host, edit)
        assert (folder / "interfaces").read_text() == NEW
        return
    with pytest.raises(ProgramFailure, match=r"interfaces: found that others can write to .*/of, expected root alone"):
        persist.apply(host, edit)
    assert (folder / "interfaces").read_text() == OLD
    assert [path.name for path in folder.iterdir()] == ["interfaces"]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "nothing"])
def test_what_has_taken_the_place_of_a_file_is_left_alone(host: Host, place: Path, kind: str) -> None:
    place.unlink()
    match kind:
        case "link":
            place.symlink_to("/nonexistent/file")
        case "fifo":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
        case _:
            pass
    before = [(each.name, each.lstat().st_mode) for each in place.parent.iterdir()]
    with pytest.raises(ProgramFailure, match=r"is no file by now"):
        persist.apply(host, Edit("ifupdown", str(place), OLD, NEW))
    assert [(each.name, each.lstat().st_mode) for each in place.parent.iterdir()] == before


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """A file system of 64 kB, of which nothing is left for a second copy."""
    place = tmp_path / "etc"
    place.mkdir()
    (tmp_path / "old").write_text(OLD + "#" * 40_000 + "\n")
    script = (
        f"mount -t tmpfs -o size=64k none {place} && cp {tmp_path}/old {place}/interfaces && exec {find_agent()} host"
    )
    listed = ListedHosts(["a"], print, {"a": ["unshare", "--mount", "sh", "-c", script]})
    try:
        [full] = listed.hosts()
        path = f"{place}/interfaces"
        before, after = (text + "#" * 40_000 + "\n" for text in (OLD, NEW))
        with pytest.raises(ProgramFailure, match=r"a: .*interfaces: .*No space left on device"):
            persist.apply(full, Edit("ifupdown", path, before, after))
        with running(full, "look", ["sh", "-c", f"ls -A {place}; cat {path}"]) as program:
            assert program.wait(PATIENCE_SECONDS) is not None
            assert program.output() == f"interfaces\n{before}"
    finally:
        listed.close()


def test_what_its_owner_changes_itself_is_not_written(host: Host, place: Path) -> None:
    told = place.parent / "told"
    edit = Edit(
        "NetworkManager", str(place), "part", "other", (("touch", str(told)),), whole=False, back=(("rm", str(told)),)
    )
    persist.apply(host, edit)
    assert (told.exists(), place.read_text()) == (True, OLD)
    persist.apply(host, edit.undo)
    assert not told.exists()


def test_nothing_of_it_stays_on_the_host(host: Host, place: Path) -> None:
    persist.apply(host, Edit("ifupdown", str(place), OLD, NEW))
    folder = Path(host.agent.request("host.folder", {})["path"])
    assert not (folder / persist.FOLDER).exists()
