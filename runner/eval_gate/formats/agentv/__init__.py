"""AgentV eval files."""
