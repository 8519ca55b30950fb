"""The page of a study that runs: progress, runs and intervals from its results folder, and at the end its report."""
