"""From the runs of a study to its verdicts: summary.json, and its words."""
