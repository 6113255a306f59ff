"""AgentV 4 eval files."""
