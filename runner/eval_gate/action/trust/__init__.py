"""Trust rules for pull requests: waivers, policy and the secrets that targets get."""
