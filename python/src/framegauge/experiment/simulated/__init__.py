"""Studies that are simulated: scenarios, the runs of a sweep, and what follows from each."""
