"""AgentV's files as its version 4 reads them."""
