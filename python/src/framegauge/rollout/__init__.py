"""Changing the MTU of a live network: planned, proved by packets at each step, and undone by itself if they stop."""
