"""Publication of a run result: comment, check run, artifacts and summary."""
