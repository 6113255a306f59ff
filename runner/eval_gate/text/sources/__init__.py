"""JSON and YAML files written by people: parse them with line numbers, and edit them in place."""
