"""Charts from plain data: Vega-Lite specifications (Altair), rendered to SVG and PNG without a browser."""
