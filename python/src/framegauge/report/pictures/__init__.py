"""What a report is made of: arms, readings, series and their charts."""
