"""The report on changes made while runs were under way."""
