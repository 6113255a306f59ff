"""JSON and YAML that people write: read with the line of every value, and changed in place."""
