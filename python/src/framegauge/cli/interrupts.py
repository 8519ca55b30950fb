"""Ctrl-C as one KeyboardInterrupt in the main thread, where it does no harm."""

from __future__ import annotations

import os
import signal
import sys
import time
from _thread import start_new_thread
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

__all__ = ["ENDING", "interruptible"]

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# What is raised between taking one of their locks and entering its block leaves the lock held, and whoever needs it
# waits for ever; what is raised in the callback of a weak reference ends there.
FRAGILE = {
    "threading", "queue", "concurrent.futures._base", "concurrent.futures.thread", "weakref", "_weakrefset",
}  # fmt: skip
# A module whose import was interrupted is half there; one that is compiled takes that for a fault of its own.
IMPORTING = {"importlib._bootstrap", "_frozen_importlib"}
# So CPython tells of a signal that came with the one before it, when its handler is no more.
IGNORED = "ignored due to race condition"
AGAIN_SECONDS = 0.002
# They leave such a place within microseconds, or wait in it: then it may be raised. An import takes longer.
MOST_PUT_OFF = 25
MOST_PUT_OFF_IMPORTING = 1000


@contextmanager
def interruptible(signals: Sequence[signal.Signals] = ENDING) -> Iterator[None]:
    """Raises KeyboardInterrupt at the first of these signals, and ignores all further ones until the block is left: a
    second Ctrl-C would interrupt the putting back, which ends by itself within seconds. SIGHUP stays ignored where
    `nohup` has it so.

    It is put off for some milliseconds where it would do harm, and raised again if a destructor has swallowed it.
    """
    put_off, is_over = 0, False

    def interrupt(_: int, frame: FrameType | None) -> None:
        nonlocal put_off
        if put_off < _most_put_off(frame):
            put_off += 1
            start_new_thread(again, ())  # and no Thread, whose locks may be those that are held
            return
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    def again() -> None:
        time.sleep(AGAIN_SECONDS)
        if not is_over:
            os.kill(os.getpid(), signals[0])  # of the whole process, so that it wakes the main thread

    def swallowed(unraisable: sys.UnraisableHookArgs) -> None:
        if IGNORED in str(unraisable.exc_value):
            return
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            hook(unraisable)
            return
        for number in signals:
            signal.signal(number, interrupt)
        start_new_thread(again, ())

    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signals = [number for number in signals if number is not signal.SIGHUP]
    hook = sys.unraisablehook
    before = {number: signal.signal(number, interrupt) for number in signals}
    sys.unraisablehook = swallowed
    try:
        yield
    finally:
        is_over = True
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


def _most_put_off(frame: FrameType | None) -> int:
    """How often an interrupt here may be put off."""
    if _module(frame) in FRAGILE:
        return MOST_PUT_OFF
    while frame is not None:
        if _module(frame) in IMPORTING:
            return MOST_PUT_OFF_IMPORTING
        frame = frame.f_back
    return 0


def _module(frame: FrameType | None) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__"))
