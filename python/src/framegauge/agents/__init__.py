"""The pipe's only Python end, and agents on other hosts."""
