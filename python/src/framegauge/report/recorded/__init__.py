"""A run of a study as recorded flows, which a simulation can replay."""
