"""Record the model calls of an agent, and replay them."""
