"""AgentV's YAML files."""
