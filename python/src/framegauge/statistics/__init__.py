"""Estimates and verdicts. Pure: numbers in, numbers and warnings out."""
