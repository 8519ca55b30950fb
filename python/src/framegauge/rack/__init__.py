"""A rack for hand use."""
