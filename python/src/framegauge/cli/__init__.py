"""The command line: a table of verbs, one module per verb."""
