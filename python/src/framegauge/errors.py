"""All errors, with the exit codes of commands that end with them.

FramegaugeError (exit 1)
├── InputError (exit 2): the user can fix it by changing the input
│   ├── QuantityError        a value with a wrong type or unit
│   ├── StudyError           a study or lab file that cannot be accepted, with file and line
│   ├── FolderInUse          another process writes to this output folder
│   ├── FolderNotEmpty       the output folder already holds results
│   ├── NewerResults         results written by a newer framegauge
│   ├── CorruptResults       results that are damaged
│   ├── Refused              the kernel or device cannot honour a setting (agent -32003)
│   └── MissingRequirement   privilege, TAP, cgroups, … (agent -32002)
├── NothingJudged (exit 3): not faithful, or no verdict
│   └── TooBusy              no link rate is carried by this machine at the moment
├── Interrupted (exit 130)
├── DiskFull                 finished runs are intact
└── AgentFailure
    ├── AgentMissing         the agent's binary cannot be found or started
    ├── AgentLost            the agent ended or closed the pipe
    ├── AgentTimeout         no answer in time
    ├── BadAnswer            an agent's message that is not as pipe/schema.json says
    ├── Lapsed               the network no longer carries traffic that it carried earlier in this study
    ├── ProgramFailure       a program in a host failed, or its output was not understood
    ├── AgentRefused         Refused, as an agent answered it
    ├── AgentLacks           MissingRequirement, as an agent answered it
    └── AgentError           an error answer: code, message, data
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from framegauge.printable import one_line, printable

__all__ = [
    "SPOILT",
    "AgentError",
    "AgentFailure",
    "AgentLacks",
    "AgentLost",
    "AgentMissing",
    "AgentRefused",
    "AgentTimeout",
    "BadAnswer",
    "CorruptResults",
    "DiskFull",
    "FolderInUse",
    "FolderNotEmpty",
    "FramegaugeError",
    "InputError",
    "Interrupted",
    "Lapsed",
    "MissingRequirement",
    "NewerResults",
    "NothingJudged",
    "ProgramFailure",
    "QuantityError",
    "Refused",
    "StudyError",
    "TooBusy",
    "ending",
    "failing_as",
    "from_agent",
    "named",
]

MOST_MISSING = 20  # requirements that one answer can name: more lines than that, nobody reads


def ending(code: int) -> str:
    """How a process ended, by what `subprocess` has of it: an exit code, or below 0 a signal. SIGKILL is also what the
    kernel ends processes with when memory is used up (memory.max in cgroup-v2.rst)."""
    if code >= 0:
        return f"exit code {code}"
    if -code == signal.SIGKILL:
        return "SIGKILL, which the kernel sends, too, when the memory of a machine or a cgroup is used up"
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"


class FramegaugeError(Exception):
    """Any error that ends a command. The first line of its message makes sense on its own."""

    exit_code = 1


class InputError(FramegaugeError):
    """An error that the user can fix by changing the input."""

    exit_code = 2


class QuantityError(InputError, ValueError):
    """A value with a wrong type or unit: what was found, what was expected."""

    def __init__(self, found: object, expected: str) -> None:
        self.found = f'"{printable(found)}"' if isinstance(found, str) else repr(found)
        self.expected = expected
        super().__init__(f"found {self.found}, expected {expected}")


class StudyError(InputError):
    """A study or lab file that cannot be accepted; one line per problem: where, found, expected."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = [printable(line) for line in problems]
        super().__init__("\n".join(self.problems))


class FolderInUse(InputError):
    """Another process holds the output folder's lock."""


class FolderNotEmpty(InputError):
    """The output folder is not empty."""


class NewerResults(InputError):
    """Results whose schema version this framegauge does not know."""


class CorruptResults(InputError):
    """Results that cannot be read; the message names file and line."""


class Refused(InputError):
    """The kernel or device cannot honour a setting: refused before the run, never silently skipped."""


class NothingJudged(FramegaugeError):
    """The study ended without a verdict that counts as evidence."""

    exit_code = 3


class TooBusy(NothingJudged):
    """Nothing that is worth running is carried by this machine at the moment: what was tried, and what helps."""


class Interrupted(FramegaugeError):
    """The command was ended by Ctrl-C or SIGTERM; finished runs are on disk."""

    exit_code = 130


class DiskFull(FramegaugeError):
    """The disk is full; finished runs are intact."""


class MissingRequirement(InputError):
    """Something that the testbed needs is missing; one line for each entry of `missing`."""

    def __init__(self, missing: Sequence[Mapping[str, Any]]) -> None:
        self.missing = [dict(item) for item in missing]
        lines = [
            f"missing {item.get('name')} (needed for {item.get('needed_for')}): "
            f"found {item.get('found')}; {item.get('remedy')}"
            for item in self.missing
        ]
        super().__init__("\n".join(lines) or "missing requirement")


class AgentFailure(FramegaugeError):
    """The agent could not carry out a request."""


class AgentMissing(AgentFailure):
    """The agent's binary cannot be found or started."""


class AgentLost(AgentFailure):
    """The agent ended, or closed the pipe, with requests unanswered."""


class AgentTimeout(AgentFailure):
    """The agent did not answer in time; the request was cancelled."""


class BadAnswer(AgentFailure):
    """An agent's message that is not as the pipe's schema says, in one line: where, what was found and expected."""


# What a host that is broken, or in other hands, can do to whoever asks it: none of it is the fault of what was asked.
SPOILT = (AgentLost, AgentTimeout, BadAnswer)


class Lapsed(AgentFailure):
    """The network no longer carries traffic that it carried earlier in this study."""


class ProgramFailure(AgentFailure):
    """A program in a host failed, or its output was not as expected: what was found, what was expected."""


class AgentError(AgentFailure):
    """An agent's error answer, with `code` and `data` as in pipe/README.md."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any]) -> None:
        self.code = code
        self.message = message
        self.data = dict(data)
        super().__init__(f"{message} (agent error {code})")


class AgentRefused(Refused, AgentFailure):
    """An agent's answer that the kernel or device cannot honour a setting. As it is the failure of one agent, what
    remains to be done with others goes on."""


class AgentLacks(MissingRequirement, AgentFailure):
    """An agent's answer that something is missing there; likewise."""


def from_agent(code: int, message: str, data: Mapping[str, Any]) -> FramegaugeError:
    """The error for an agent's error answer; codes -32002 and -32003 have their own classes. Each of the agent's words
    is one printable line, and there are not many."""
    message = one_line(message)
    if code == -32002 and data.get("missing"):
        return AgentLacks(
            [{one_line(key): one_line(value) for key, value in item.items()} for item in data["missing"][:MOST_MISSING]]
        )
    if code == -32003:
        what, request, limit = (one_line(data.get(key)) for key in ("what", "asked", "limit"))
        return AgentRefused(f"{what}: requested {request}, the limit here is {limit} ({message})")
    return AgentError(code, message, data)


def named(error: FramegaugeError, name: str) -> FramegaugeError:
    """The error of an agent's answer, with the name of its host in front: "h2: ", or nothing for an agent here."""
    if not name:
        return error
    if isinstance(error, AgentError):
        return AgentError(error.code, f"{name}{error.message}", error.data)
    if isinstance(error, AgentLacks):
        return AgentLacks([{**item, "found": f"{name}{item.get('found')}"} for item in error.missing])
    return type(error)(f"{name}{error}")


@contextmanager
def failing_as(code: int) -> Iterator[None]:
    """Turns exit code 1 of errors into `code`, for commands whose exit code 1 is an answer."""
    try:
        yield
    except FramegaugeError as error:
        if error.exit_code == FramegaugeError.exit_code:
            error.exit_code = code
        raise
