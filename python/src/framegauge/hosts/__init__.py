"""Hosts of the user's own: what they are, how they reach each other, what would change on them."""
