"""What a person at a terminal sees and where it goes: streams, colours, progress, the summary."""
