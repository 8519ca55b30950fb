"""The folders of what is shipped. They have one source, the root of the repository; a wheel has a copy (setup.py)."""

from __future__ import annotations

from pathlib import Path

__all__ = ["docs", "examples", "published"]

PACKAGED = Path(__file__).resolve().parent  # setup.py puts the copies here
CLONE = Path(__file__).resolve().parents[4]  # the root of the clone, if this file is in one


def docs() -> Path:
    """The folder of the documentation."""
    return _folder("docs")


def examples() -> Path:
    """The folder of the examples."""
    return _folder("examples")


def published() -> Path:
    """The folder of the documents whose figures are run again."""
    return _folder("published")


def _folder(name: str) -> Path:
    packaged = PACKAGED / name
    return packaged if packaged.is_dir() else CLONE / name
