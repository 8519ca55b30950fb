"""What the probes of a path MTU check add up to: which pairs to probe, who is to blame, the verdict. Pure."""
