"""Evaluators of a response. They get all they need as arguments and read nothing else."""
