"""A testbed without a network: every request of the runner answered from a model."""
