"""What changed while runs were under way."""
