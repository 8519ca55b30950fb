"""Labs: networks with faults, described as data and built from real kernels."""
