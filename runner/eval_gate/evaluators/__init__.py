"""Judges of a response. They get everything they need as arguments and read nothing else."""
