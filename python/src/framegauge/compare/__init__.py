"""Two sides compared: results folders, time windows, files of other tools."""
