"""What users write, read and checked: the types, YAML files, machines and inventories."""
