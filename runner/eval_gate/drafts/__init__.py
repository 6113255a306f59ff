"""Write draft eval cases from the responses of a target, for people to review."""
