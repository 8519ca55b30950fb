"""Applications that workloads run: our own, and how those are fetched and kept that distributions lack."""
