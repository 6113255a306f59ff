"""Terminal input and output: streams, colours, progress, summary."""
