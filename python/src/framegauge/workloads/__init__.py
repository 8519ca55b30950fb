"""What a study runs. A workload knows nothing of which testbed it runs on."""
