"""Runs measured by other tools, as they saved them: bytes in, samples out. Opens no file."""
