"""Racks for use by hand: built, kept up, and used from the command line."""
