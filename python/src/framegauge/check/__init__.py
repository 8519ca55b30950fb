"""The path MTU check: planned, asked of agents, judged."""
