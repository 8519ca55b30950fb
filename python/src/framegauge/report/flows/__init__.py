"""What each flow got, and where drops came in runs."""
