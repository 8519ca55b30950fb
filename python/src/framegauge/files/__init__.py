"""The files that users write, read and validated: types, YAML, machines and inventories."""
