"""The results folder of a study: its journal, its lock, and derived tables."""
