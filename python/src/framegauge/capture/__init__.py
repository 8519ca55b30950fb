"""Captures of headers on several hosts at once, and what their kernels count meanwhile."""
