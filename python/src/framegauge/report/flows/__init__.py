"""The goodput of each flow to a shared receiver, and runs of consecutive drops."""
