"""A Dask cluster that the user has, on which agents run what needs neither root nor this machine's network.

Neither its scheduler nor its workers need anything of framegauge: a task is the built-in `eval` with an expression, the
text of the program to run (such as `remote`), and data. A pickled function would be one by reference, to a module that
a worker may not have, or the bytecode of one version of Python.
"""

from __future__ import annotations

import inspect
import logging
import platform
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from framegauge.agents.binary import find_agent
from framegauge.errors import AgentFailure, InputError
from framegauge.printable import one_line

__all__ = ["DASK", "LOCAL", "Work", "connected"]

LOCAL = "local"
DASK = "dask://"
CONNECT_SECONDS = 10
LOOK_SECONDS = 5.0
IDLE_LOOKS = 3  # between two tasks a worker is idle, too
MOST_LOST = 10
MOST_STRANGE = 2
# With the names of its task: the function `name` of the program `source`, of `words`.
CALL = "(lambda space: (exec(source, space), space[name](*words))[1])({'__name__': 'framegauge_remote'})"
# Tasks of a worker that it works on, or will: the other states are those of results, and of what is forgotten.
AT_WORK = ("executing", "long-running", "ready", "constrained", "waiting", "fetch", "flight", "resumed", "cancelled")


@contextmanager
def connected(text: str) -> Iterator[Any]:
    """The client of the cluster of `--engine dask://HOST:PORT`, the address of its scheduler.

    InputError if it is no such engine, Dask is not installed, or nobody answers there.
    """
    if not text.startswith(DASK) or not text.removeprefix(DASK):
        raise InputError(f'--engine: found "{text}", expected {LOCAL} or {DASK}HOST:PORT')
    try:
        import distributed
    except ImportError as missing:
        raise InputError(
            f"--engine {text}: found no {missing.name}, expected it: pip install 'framegauge[dask]'"
        ) from None
    # What it logs of the end of its scheduler is said in the line of what failed.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            # Packages that differ are no matter to tasks of data; versions of Dask are in what is said of failures.
            warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
            address = f"tcp://{text.removeprefix(DASK)}"
            client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as problem:
        raise InputError(
            f"--engine {text}: found no scheduler that answers ({one_line(problem, 120)}), expected HOST:PORT of one"
        ) from None
    try:
        if not _workers(client):
            raise InputError(f"--engine {text}: found a scheduler without workers, expected at least one")
        yield client
    finally:
        client.close()


def _workers(client: Any) -> dict[str, dict[str, Any]]:
    """What the scheduler knows of each worker."""
    # Newer versions answer for five workers unless they are asked for all.
    options = {"n_workers": -1} if "n_workers" in inspect.signature(client.scheduler_info).parameters else {}
    workers: dict[str, dict[str, Any]] = client.scheduler_info(**options)["workers"]
    return workers


def _program(function: Callable[..., Any]) -> dict[str, str]:
    """The text of the module of a function, and its name in there."""
    return {"source": inspect.getsource(sys.modules[function.__module__]), "name": function.__name__}


class Work:
    """What the workers of a cluster do for us, from any thread: each answer is waited for, whatever becomes of them.

    Dask runs a task again whose worker died. But scattered data is lost with its worker, an answer may be lost before
    it is fetched, and a task may be left where nobody works on it: then it is submitted again, with its data.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        # It is the result of a task, and not scattered: if the workers that have it die, the scheduler runs it again.
        self._agent = client.submit(eval, "data", {"data": Path(find_agent()).read_bytes()}, pure=False)
        self._lock, self._looking = threading.Lock(), threading.Lock()
        self._running: set[Any] = set()
        self._stopped = False
        self._looked, self._busy, self._idle = 0.0, dict[str, set[str]](), set[str]()

    def threads(self) -> int:
        """How many tasks the workers do at a time."""
        return sum(self._client.nthreads().values())

    def answer(self, about: str, function: Callable[..., Any], *words: Any, sent: bytes | None = None) -> Any:
        """What `function` answers on a worker, whose module needs the standard library only; `sent` is its last
        argument, if it is given.

        AgentFailure for whatever a cluster may raise, `about` what it was to do.
        """
        from distributed.client import FutureCancelledError, FuturesCancelledError

        problem: BaseException | None = None
        strange = 0
        for _ in range(MOST_LOST):
            future = None
            try:
                # What is not referred to here, the cluster forgets.
                arguments = () if sent is None else (self._kept(sent),)
                future = self._submit(function, *words, *arguments)
                return self._awaited(future)
            except (OSError, FutureCancelledError, FuturesCancelledError) as lost:
                problem = lost
                time.sleep(LOOK_SECONDS / 10)  # the scheduler may not know yet that a worker has died
            except AgentFailure:
                raise
            except Exception as failed:
                # A task whose workers have all died may end with whatever Dask trips over; one that is wrong, always.
                problem, strange = failed, strange + 1
                if strange > MOST_STRANGE:
                    raise AgentFailure(_said(about, failed)) from None
                time.sleep(LOOK_SECONDS / 10)
            finally:
                if future is not None:
                    self._forget(future)
        assert problem is not None
        raise AgentFailure(f"{_said(about, problem)}; it was tried {MOST_LOST} times")

    def stop(self) -> None:
        """Cancels all."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
            self._running.clear()
        if running:
            self._client.cancel(running, force=True)

    def _kept(self, data: bytes) -> Any:
        """Data on a worker; ConnectionError if the worker that was to have it has died: Dask raises then whatever it
        meets first, such as a KeyError of the worker's address."""
        try:
            # The same bytes twice would have one key, which the end of the first use may take from the second.
            return self._client.scatter(data, hash=False)
        except Exception as problem:
            raise ConnectionError(f"no worker took the data ({type(problem).__name__}: {problem})") from problem

    def _submit(self, function: Callable[..., Any], *words: Any) -> Any:
        with self._lock:
            if self._stopped:
                raise AgentFailure("the work was stopped")
            names = {**_program(function), "words": [self._agent, platform.machine(), *words]}
            future = self._client.submit(eval, CALL, names, pure=False, retries=1)
            self._running.add(future)
        return future

    def _awaited(self, future: Any) -> Any:
        """The result of a task; TimeoutError if nobody works on it."""
        idle = 0
        while idle < IDLE_LOOKS:
            try:
                return future.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                if future.status == "error":
                    raise
                idle = idle + 1 if self._nobody_works_on(str(future.key)) else 0
        raise TimeoutError(f"no worker works on it, of {len(self._busy)}")

    def _forget(self, future: Any) -> None:
        with self._lock:
            was_running = future in self._running
            self._running.discard(future)
        if was_running and not future.done():
            with suppress(Exception):
                self._client.cancel([future], force=True)

    def _nobody_works_on(self, key: str) -> bool:
        """Whether all workers that have a task do nothing; or no worker has it, and one of them does nothing, or there
        are none. All threads share a look."""
        with self._looking:
            if time.monotonic() - self._looked > LOOK_SECONDS / 2:
                processing = self._client.processing()
                self._busy = {worker: {str(task) for task in keys} for worker, keys in processing.items()}
                self._idle = {worker for worker, info in _workers(self._client).items() if _is_idle(info)}
                self._looked = time.monotonic()
            holders = {worker for worker, keys in self._busy.items() if key in keys}
            return holders <= self._idle if holders else bool(self._idle) or not self._busy


def _is_idle(info: dict[str, Any]) -> bool:
    """Whether a worker had nothing to do when it last told of itself, some seconds ago."""
    counts = info.get("metrics", {}).get("task_counts", {})
    return not any(counts.get(state) for state in AT_WORK)


def _said(about: str, problem: BaseException) -> str:
    return f"{about}: the cluster failed ({type(problem).__name__}: {one_line(problem, 200)})"
