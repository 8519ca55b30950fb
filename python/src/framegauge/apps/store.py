"""Where applications are kept: whole, with every checksum verified, or not at all."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from framegauge.apps import java, maven
from framegauge.apps.catalogue import APPS, App
from framegauge.errors import FramegaugeError, InputError
from framegauge.quantities import print_bytes

__all__ = ["fetch", "folder", "installed", "named", "remove"]

DRAFT = ".draft-"
SAY_SECONDS = 5.0

Say = Callable[[str], None]


def named(name: str) -> App:
    """The application of that name; InputError if there is none."""
    if name not in APPS:
        raise InputError(f"apps: found {name!r}, expected one of {', '.join(APPS)}")
    return APPS[name]


def cache(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of all applications. As the XDG specification says, a relative path counts as none."""
    base = Path(environment.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "framegauge" / "apps"


def folder(app: App) -> Path:
    """Where an application is, or would be."""
    return cache() / app.full_name


def installed(app: App) -> bool:
    """Whether it is there. Its folder appears when all of its files have been verified, and not before."""
    return folder(app).is_dir()


def fetch(app: App, say: Say) -> Path:
    """Fetches an application unless it is there: its folder. Nothing half remains, however this ends."""
    java.check()
    with _locked():
        if installed(app):
            wrong = _wrong(app, folder(app))
            if wrong is None:
                return folder(app)
            say(f"{app.full_name} is damaged and fetched again: {wrong}")
            shutil.rmtree(folder(app))
        draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=cache()))
        try:
            say(f"{app.full_name}: {len(app.files)} files, {print_bytes(app.size_bytes)}, by your Maven")
            maven.copy([file.coordinates for file in app.files], draft, _progress(app, say))
            files = draft / "lib"
            if (wrong := _wrong(app, files)) is not None:
                raise FramegaugeError(f"{app.full_name}: {wrong}")
            files.chmod(0o755)
            files.rename(folder(app))
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder(app)


def remove(app: App) -> bool:
    """Removes an application; whether it was there. What Maven keeps in its own repository stays."""
    with _locked():
        if not installed(app):
            return False
        draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=cache()))
        folder(app).rename(draft / app.full_name)
        shutil.rmtree(draft)
    return True


@contextmanager
def _locked() -> Iterator[None]:
    """One process at a time; what an earlier one that was killed has left is removed."""
    cache_folder = cache()
    try:
        cache_folder.mkdir(parents=True, exist_ok=True)
        lock = (cache_folder / ".lock").open("w")
    except OSError as error:
        raise InputError(f"{cache_folder}: {error.strerror}, expected a folder that can be written") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{cache_folder}: found another process that fetches or removes, expected none") from None
        for draft in cache_folder.glob(f"{DRAFT}*"):
            with suppress(OSError):
                shutil.rmtree(draft)
        yield


def _wrong(app: App, files: Path) -> str | None:
    """The first file that is not as the list says, in words."""
    names = {file.name for file in app.files}
    for file in app.files:
        path = files / file.name
        # What a link leads to may be another file tomorrow.
        if path.is_symlink() or not path.is_file():
            return f"{file.name}: found no such file, expected one ({file.coordinates})"
        with path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        if digest != file.sha256:
            return f"{file.name}: found SHA-256 {digest}, expected {file.sha256} ({file.coordinates})"
    if unlisted := sorted(path.name for path in files.iterdir() if path.name not in names):
        return f"{unlisted[0]}: found a file that is not listed, expected {len(names)} that are"
    return None


def _progress(app: App, say: Say) -> Callable[[str], None]:
    """Says from time to time how many files Maven has downloaded."""
    names = {file.name for file in app.files}
    last_report = time.monotonic()
    downloaded: set[str] = set()

    def on_file(name: str) -> None:
        nonlocal last_report
        downloaded.update({name} & names)
        if time.monotonic() - last_report >= SAY_SECONDS:
            last_report = time.monotonic()
            say(f"{app.full_name}: {len(downloaded)} of {len(names)} files downloaded")

    return on_file
