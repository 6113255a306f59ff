"""Write draft eval cases from what a target answers, for people to review."""
