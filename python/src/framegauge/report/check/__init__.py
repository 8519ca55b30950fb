"""The result of a check: page, matrix, terminal, metrics."""
