"""What coding agents print while they work: their own streams of events, read as the answer to one case."""
