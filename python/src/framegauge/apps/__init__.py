"""Applications that workloads need and distributions lack: what they consist of, and how they are fetched and kept."""
