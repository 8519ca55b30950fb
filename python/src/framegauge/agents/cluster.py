"""A Dask cluster that the user has, on which agents run what needs neither root nor this machine's network."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from framegauge.agents import remote
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


@contextmanager
def connected(text: str) -> Iterator[Any]:
    """The client of the cluster of `--engine dask://HOST:PORT`, the address of its scheduler.

    InputError if it is no such engine, Dask is not installed, or nobody answers there.
    """
    if not text.startswith(DASK) or not text.removeprefix(DASK):
        raise InputError(f'--engine: found "{text}", expected {LOCAL} or {DASK}HOST:PORT')
    try:
        import cloudpickle
        import distributed
    except ImportError as missing:
        raise InputError(
            f"--engine {text}: found no {missing.name}, expected it: pip install 'framegauge[dask]'"
        ) from None
    try:
        client = distributed.Client(f"tcp://{text.removeprefix(DASK)}", timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as problem:
        raise InputError(
            f"--engine {text}: found no scheduler that answers ({one_line(problem, 120)}), expected HOST:PORT of one"
        ) from None
    # By value, so that workers need no framegauge of the same version, nor any.
    cloudpickle.register_pickle_by_value(remote)
    try:
        if not client.scheduler_info()["workers"]:
            raise InputError(f"--engine {text}: found a scheduler without workers, expected at least one")
        yield client
    finally:
        cloudpickle.unregister_pickle_by_value(remote)
        client.close()


class Work:
    """What the workers of a cluster do for us, from any thread: each answer is waited for, whatever becomes of them.

    Dask runs a task again whose worker died. But scattered data is lost with its worker, an answer may be lost before
    it is fetched, and a task may be left where nobody works on it: then it is submitted again, with its data.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        # It is the result of a task, and not scattered: if the workers that have it die, the scheduler runs it again.
        self._agent = client.submit(remote.same, Path(find_agent()).read_bytes(), pure=False)
        self._lock, self._looking = threading.Lock(), threading.Lock()
        self._running: set[Any] = set()
        self._stopped = False
        self._looked, self._busy, self._idle = 0.0, dict[str, set[str]](), set[str]()

    def threads(self) -> int:
        """How many tasks the workers do at a time."""
        return sum(self._client.nthreads().values())

    def answer(self, about: str, function: Callable[..., Any], *words: Any, sent: bytes | None = None) -> Any:
        """What `function` of `remote` answers on a worker; `sent` is its last argument, if it is given.

        AgentFailure for whatever a cluster may raise, `about` what it was to do.
        """
        from distributed.client import FutureCancelledError, FuturesCancelledError

        problem: BaseException | None = None
        strange = 0
        for _ in range(MOST_LOST):
            future = None
            try:
                # What is not referred to here, the cluster forgets.
                kept = () if sent is None else (self._kept(sent),)
                future = self._submit(function, *words, *kept)
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

    def _kept(self, sent: bytes) -> Any:
        """Data on a worker; ConnectionError if the worker that was to have it has died: Dask raises then whatever it
        meets first, such as a KeyError of the worker's address."""
        try:
            # The same bytes twice would have one key, which the end of the first use may take from the second.
            return self._client.scatter(sent, hash=False)
        except Exception as problem:
            raise ConnectionError(f"no worker took the data ({type(problem).__name__}: {problem})") from problem

    def _submit(self, function: Callable[..., Any], *words: Any) -> Any:
        with self._lock:
            if self._stopped:
                raise AgentFailure("the work was stopped")
            future = self._client.submit(function, self._agent, platform.machine(), *words, pure=False, retries=1)
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
                self._busy = {worker: {str(each) for each in keys} for worker, keys in processing.items()}
                answers = self._client.run(remote.is_idle, on_error="ignore")
                self._idle = {worker for worker, is_idle in answers.items() if is_idle is True}
                self._looked = time.monotonic()
            holders = {worker for worker, keys in self._busy.items() if key in keys}
            return holders <= self._idle if holders else bool(self._idle) or not self._busy


def _said(about: str, problem: BaseException) -> str:
    return f"{about}: the cluster failed ({type(problem).__name__}: {one_line(problem, 200)})"
