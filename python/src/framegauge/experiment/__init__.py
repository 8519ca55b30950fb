"""The execution of a study: planning, forecast and measurement."""
