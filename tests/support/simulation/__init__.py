"""Random histories of a repository, and what is right in each of them: which commit is a run's base, who broke what."""
