"""The workloads that a study runs; they do not depend on the testbed."""
