"""What a reader needs to decide, on one page."""
