"""What would fail at a study's first run, known before anything is built: `plan`, --dry-run and the study ask here.

What is wrong anywhere is a rule of the study's model (`study.model`). Here is what depends on this machine's kernel,
and on how long runs take. What only the user's own hosts know is no reason to refuse: `unknown` names it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from framegauge.errors import StudyError
from framegauge.experiment.planning import expected_seconds, missing_programs
from framegauge.experiment.storage import lacking_memory
from framegauge.files.settings import CONGESTION_CONTROL
from framegauge.quantities import print_seconds
from framegauge.study.blocks import block_order
from framegauge.study.model import Study, level_text

__all__ = ["Kernel", "check", "lines", "missing", "unknown"]

AVAILABLE = "/proc/sys/net/ipv4/tcp_available_congestion_control"
LEAST_BLOCKS = 2  # that a comparison needs
_MODULE = re.compile(r"/tcp_([a-z0-9_]+)\.ko")


@dataclass(frozen=True)
class Kernel:
    """The congestion controls that a kernel has, and those of modules that it can load."""

    available: frozenset[str]
    loadable: frozenset[str] = frozenset()

    @classmethod
    def here(cls, available: Path = Path(AVAILABLE), modules: Path | None = None) -> Kernel:
        """This machine's; empty where it does not tell."""
        folder = Path("/lib/modules") / os.uname().release if modules is None else modules
        has = frozenset(_text(available).split())
        return cls(has, frozenset(_MODULE.findall(_text(folder / "modules.dep"))) - has)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def check(study: Study, kernel: Kernel | None = None, name: str = "") -> None:
    """StudyError with all that would fail at the first run here; `kernel` is that of the hosts, by default this one,
    and `name` stands for the study's file."""
    if problems := [*_levels(study), *_algorithms(study, kernel or Kernel.here()), *_budget(study)]:
        raise StudyError([f"{name}: {line}" if name else line for line in problems])


def missing(study: Study, kernel: Kernel | None = None) -> list[dict[str, str]]:
    """What this machine has to get before it can run the study, as requirements: programs, memory, modules."""
    if not _runs_here(study):
        return []
    loadable = (kernel or Kernel.here()).loadable
    modules = [
        {
            "name": f"congestion control {name}", "needed_for": key, "found": "a module that is not loaded",
            "remedy": f"sudo modprobe tcp_{name}",
        }
        for key, name in _asked(study)
        if name in loadable and key.startswith("factors.")  # for a sysctl, the kernel loads it
    ]  # fmt: skip
    return [*missing_programs(study), *lacking_memory(study), *modules]


def unknown(study: Study) -> list[str]:
    """What only the hosts of a study can tell, in one line each."""
    if study.testbed.capabilities.builds_hosts:
        return []
    names = list(dict.fromkeys(name for _, name in _asked(study)))
    has = f"whether they have {' and '.join(names)}, " if names else ""
    return [f"known only once the hosts are asked: {has}which programs, and whether they can take what is changed"]


def lines(study: Study) -> list[str]:
    """What a plan says of both: what is missing, and what is unknown."""
    lacking = [
        f"missing here: {item['name']} (needed for {item['needed_for']}): found {item['found']}; {item['remedy']}"
        for item in missing(study)
    ]
    return [*lacking, *unknown(study)]


def _runs_here(study: Study) -> bool:
    """Whether hosts are built of this machine's kernel."""
    capabilities = study.testbed.capabilities
    return capabilities.builds_hosts and not capabilities.is_invented and not capabilities.is_virtual


def _asked(study: Study) -> Iterator[tuple[str, str]]:
    """The congestion controls that a study names, each with its key."""
    for index, name in enumerate(study.factors.levels("congestion_control")):
        if name is not None:
            yield f"factors.congestion_control.levels.{index}", str(name)
    sets = [("sysctls", study.sysctls)]
    sets += [(f"tunings.{name}.sysctls", tuning.sysctls or {}) for name, tuning in study.tunings.items()]
    for key, sysctls in sets:
        if CONGESTION_CONTROL in sysctls:
            yield f"{key}.{CONGESTION_CONTROL}", sysctls[CONGESTION_CONTROL]


def _levels(study: Study) -> Iterator[str]:
    """One level is compared with nothing, unless the file asks for an A/A control itself. A file of a kept rack, which
    is a network alone, has one as well: so this is no rule of the model."""
    levels = study.treatment_factor.levels
    if len(levels) < 2 and "control" not in study.model_fields_set:
        expected = "two or more for the treatment; or control: true, which compares one level with itself"
        yield f"factors.{study.treatment}: found one level, {level_text(levels[0])}, expected {expected}"


def _algorithms(study: Study, kernel: Kernel) -> Iterator[str]:
    if not _runs_here(study) or not kernel.available:
        return
    algorithms = kernel.available | kernel.loadable
    for key, name in _asked(study):
        if name not in algorithms:
            yield f'{key}: found "{name}", expected one that this kernel has: {", ".join(sorted(algorithms))}'


def _budget(study: Study) -> Iterator[str]:
    """Virtual time is no budget's: a simulation ends with its blocks."""
    if study.testbed.capabilities.is_virtual:
        return
    least = LEAST_BLOCKS * sum(expected_seconds(study, slot) for slot in block_order(study, 0))
    if study.budget < least:
        expected = f"{print_seconds(least)} or more, about what {LEAST_BLOCKS} blocks take: fewer compare nothing"
        yield f"budget: found {print_seconds(study.budget)}, expected {expected}"
