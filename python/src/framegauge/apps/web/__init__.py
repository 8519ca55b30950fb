"""An event calendar: a web site on two application servers, its data, and the users who visit it (workload `web`)."""

__all__ = ["COMPONENTS"]

# The programs of the set-up, in the order of the hosts that they run on.
COMPONENTS = ("driver", "balancer", "web-1", "web-2", "database", "memcached", "files")
