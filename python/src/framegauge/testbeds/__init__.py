"""Where a study runs. A testbed knows nothing of workloads."""
