"""framegauge: should this network run jumbo frames? The control plane; the agent measures."""

__version__ = "0.1.0"
