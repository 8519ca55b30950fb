"""A study as it runs: planned, forecast, measured."""
