"""GitHub as we use it: events, reads, comments, checks, artifacts, workflow commands and files. Knows no evals."""
