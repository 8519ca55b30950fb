"""The whole question in one command: facts, checks and a study of the same hosts, and what to do about it."""
