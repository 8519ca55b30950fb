"""The documentation and the examples that come with framegauge: in the wheel, or in the clone."""
