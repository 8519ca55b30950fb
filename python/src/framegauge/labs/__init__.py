"""Networks with faults, as data."""
