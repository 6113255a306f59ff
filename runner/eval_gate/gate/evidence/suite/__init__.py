"""Statistical tests over a whole suite: failures, scores, and the level of the branch."""
