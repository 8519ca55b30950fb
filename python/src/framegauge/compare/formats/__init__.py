"""The file formats of other tools: bytes in, samples out; no files are opened here."""
