"""Published figures run again: documents as data, the studies that answer them, and why a figure differs."""
