"""The Python end of the pipe to agents, and agents on other hosts."""
