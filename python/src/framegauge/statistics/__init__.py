"""Estimates and verdicts: numbers in, numbers and warnings out; no files, no clock."""
