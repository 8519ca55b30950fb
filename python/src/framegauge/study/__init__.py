"""A study as data: its file, factors, workloads' parameters and order."""
