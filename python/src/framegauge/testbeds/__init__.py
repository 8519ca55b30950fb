"""The testbeds on which studies run; they do not depend on workloads."""
