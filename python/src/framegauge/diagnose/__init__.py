"""Named TCP problems of capture files: asks the agent's binary, and tells what it found."""
