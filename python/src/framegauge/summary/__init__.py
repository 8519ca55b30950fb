"""The summary of a study: verdicts from its runs, summary.json, and its wording."""
