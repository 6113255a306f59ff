"""Event streams of coding agents, parsed into the response to one case."""
