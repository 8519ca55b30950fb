"""Did a switch in production do good or harm? Evidence from Prometheus, beside hosts that were not switched."""
