"""GitHub access: events, API reads, comments, check runs, artifacts and workflow commands. No evals."""
