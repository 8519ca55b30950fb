"""The folder of a decision: what was asked, and the result of each step, which is reused while it is there.

    asked.json           hosts, target, study: a decision that is resumed has no other
    facts.json           step facts
    preflight.json       step preflight: what stands against a change, and would undo it
    check-present.json   step check: the paths as they are
    check-target.json    step check: the target, with the hosts as they are
    check-raised.json    step check: the target, with the hosts raised to it
    estimate.json        step estimate: the load as it is
    study/, study.json   step study: its results folder; and that it is whole
    decision.json        the document of framegauge decide --json
    decision.html        the page
    rollout.yaml         the change, for framegauge rollout, if the answer is to do it

A file is there whole or not at all. One process works in a folder at a time (flock).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from framegauge import foreign
from framegauge.check import saved as check_file
from framegauge.errors import CorruptResults, FolderNotEmpty, InputError, NewerResults
from framegauge.results import seals, shapes
from framegauge.results.lock import LOCK, Claim

__all__ = ["CHECKS", "FILES", "PAGE", "RESTING", "ROLLOUT", "SCHEMA", "STEPS", "STUDY", "Folder"]

SCHEMA = 1
STUDY, PAGE, ROLLOUT = "study", "decision.html", "rollout.yaml"
CHECKS = ("check-present", "check-target", "check-raised")
# The files of each step, in their order; and the steps that rest on a step's result.
FILES: Mapping[str, tuple[str, ...]] = {
    "facts": ("facts",), "preflight": ("preflight",), "check": CHECKS, "estimate": ("estimate",), "study": ("study",),
}  # fmt: skip
STEPS = tuple(FILES)
RESTING: Mapping[str, tuple[str, ...]] = {
    "facts": STEPS, "preflight": ("preflight",), "check": ("check", "study"), "estimate": ("estimate",),
    "study": ("study",),
}  # fmt: skip
AGAIN = "an edited step is not evidence: --again makes it anew"
Json = dict[str, Any]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)


class _Asked(_Shape):
    hosts: list[StrictStr]
    machines: list[dict[str, Any]]
    rack: StrictBool
    testbed: StrictStr | None
    target_mtu: StrictInt = Field(ge=1501, le=65_535)
    study: StrictStr | None
    load_seconds: Annotated[float, Field(ge=1, le=3600)] = 10.0


class _Interface(_Shape):
    name: StrictStr
    mtu: StrictInt = Field(ge=68)
    maximum_mtu: StrictInt | None


class _Host(_Shape):
    name: StrictStr
    error: StrictStr | None
    interfaces: list[_Interface]


class _Facts(_Shape):
    present_mtu: StrictInt | None
    families: list[Literal[4, 6]] | None = None  # None: of a folder that is older than they are
    hosts: list[_Host]


class _AtMost(_Shape):
    at_most: Annotated[float, Field(ge=0)] | None


class _Packets(_Shape):
    before_per_second: Annotated[float, Field(ge=0)]


class _Total(_Shape):
    mtu: StrictInt
    answer: StrictStr
    packets: _Packets
    goodput: _AtMost
    cpu: _AtMost


class _Nagle(_Shape):
    mtu: StrictInt
    sockets: list[dict[str, Any]]


class _Estimated(_Shape):
    host: StrictStr
    nagle: list[_Nagle]


class _Estimate(_Shape):
    total: list[_Total]
    hosts: list[_Estimated]


class _Finding(_Shape):
    where: StrictStr
    what: StrictStr
    severity: Literal["refused", "warning", "note"]
    found: StrictStr
    expected: StrictStr
    remedy: StrictStr


class _Preflight(_Shape):
    verdict: StrictStr
    findings: list[_Finding]
    changes: list[dict[str, Any]]


class _Study(_Shape):
    hosts: list[StrictStr]


SHAPES: Mapping[str, type[BaseModel]] = {
    "asked": _Asked,
    "facts": _Facts,
    "estimate": _Estimate,
    "preflight": _Preflight,
    "study": _Study,
}


class Folder:
    """The folder of one decision, locked by this process until the block is left."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def held(self, resumes: bool) -> Iterator[None]:
        """Takes the lock; FolderNotEmpty, or InputError if there is nothing to resume."""
        there = self.path.is_dir() and any(path.name != LOCK for path in self.path.iterdir())
        if there and not resumes:
            raise FolderNotEmpty(f"{self.path}: found files, expected a new folder, or --resume to go on with these")
        if resumes and not self._file("asked").exists():
            raise InputError(f"{self.path}: found no asked.json, expected the folder of a decision to go on with")
        claim = Claim(self.path, lambda _: contextlib.nullcontext(), ())
        try:
            yield
        finally:
            if not self._file("asked").exists():
                claim.forget()
            claim.free()

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.json"

    def has(self, name: str) -> bool:
        """Whether a result is there, whole."""
        return self._file(name).exists()

    def load(self, name: str) -> Json | None:
        """A result; None if it is not there. CorruptResults or NewerResults if it cannot be used."""
        path = self._file(name)
        if not path.exists():
            return None
        document = check_file.read(path) if name in CHECKS else self._document(name)
        seals.check(document, str(path), AGAIN)
        return {key: value for key, value in document.items() if key != seals.KEY}

    def _document(self, name: str) -> Mapping[str, Any]:
        path, expected = self._file(name), "a file that framegauge decide wrote"
        try:
            content = shapes.load(foreign.read(path), str(path), expected)
        except foreign.TooLarge as error:
            raise CorruptResults(f"{path}: {error}") from None
        if not isinstance(content, dict) or type(content.get("schema")) is not int:
            raise CorruptResults(f"{path}: found no schema, expected {expected}")
        if content["schema"] > SCHEMA:
            raise NewerResults(
                f"{path}: found schema {content['schema']}, expected at most {SCHEMA}: update to read it"
            )
        return shapes.checked(content, SHAPES[name], str(path))

    def keep(self, name: str, document: Mapping[str, Any]) -> None:
        """Writes a result, whole."""
        self.write(f"{name}.json", json.dumps(seals.sealed(document), indent=1).encode())

    def write(self, name: str, data: bytes) -> Path:
        """Writes a file, whole or not at all."""
        path = self.path / name
        draft = path.with_name(f"{name}.new")
        try:
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise InputError(f"{path}: cannot be written ({error.strerror}), expected a place to") from None
        return path

    def forget(self, step: str) -> None:
        """Removes the results of a step, and of those that rest on it."""
        for name in RESTING[step]:
            for file in FILES[name]:
                self._file(file).unlink(missing_ok=True)
            if name == STUDY:
                shutil.rmtree(self.path / STUDY, ignore_errors=True)

    @property
    def study(self) -> Path:
        """The results folder of the study."""
        return self.path / STUDY
