"""Reads results, prints verdicts."""
