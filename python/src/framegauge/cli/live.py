"""The option --live of `study` and `report`: the address of the page, and for how long it is there; no logic."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from framegauge.cli import output
from framegauge.cli.arguments import Verb
from framegauge.errors import InputError, NothingJudged

__all__ = ["add", "beside", "only", "spelt"]


def add(whole: Verb) -> None:
    """Adds the option; its words have passed `spelt`."""
    whole.add_argument(
        "--live", nargs="?", const=0, type=_port, metavar="PORT",
        help="serve a page of its progress on loopback, at PORT or a free port, and at the end its report",
    )  # fmt: skip


def spelt(words: Sequence[str]) -> list[str]:
    """The same words with `--live=0` for a `--live` that no number follows: what follows is another argument."""
    return [
        "--live=0" if word == "--live" and not after.isdecimal() else word for word, after in pairwise([*words, ""])
    ]


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > 65535:
        raise InputError(f'--live: found "{text}", expected a port from 1 to 65535')
    return int(text)


@contextlib.contextmanager
def beside(folder: Path, port: int | None) -> Iterator[None]:
    """The page of a study that runs in the block, and of its report until Ctrl-C; nothing without a port."""
    if port is None:
        yield
        return
    from framegauge.live import beside as process

    with process.page(folder, port) as (address, wait):
        output.say(f"live page: {address}")
        try:
            yield
        except NothingJudged:
            _until_interrupted(address, wait)
            raise
        _until_interrupted(address, wait)


def _until_interrupted(address: str, wait: Callable[[], object]) -> None:
    output.say(f"the report is at {address} until Ctrl-C")
    with contextlib.suppress(KeyboardInterrupt):
        wait()


def only(folder: Path, port: int) -> None:
    """The page of a folder until Ctrl-C: InputError if it is no study's."""
    import threading

    from framegauge import listening
    from framegauge.live import server
    from framegauge.results.journal import read

    read(folder)
    token = server.new_token()
    socket_ = listening.listen((server.LOOPBACK, port), "--live")
    server.idly()
    output.say(f"live page: {server.address_of(socket_, token)}; Ctrl-C ends it")
    with server.served(socket_, token, folder), contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
