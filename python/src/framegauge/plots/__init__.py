"""Charts from plain data: Vega-Lite specifications (Altair), drawn to SVG and PNG without a browser."""
