"""Stands before pandas in PYTHONPATH: programs that tests start find none (conftest.py)."""

raise ImportError("not for programs that tests start")
