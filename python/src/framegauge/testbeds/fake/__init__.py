"""A testbed without a network: a model answers every request of the runner."""
