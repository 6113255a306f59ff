"""What of a pull request counts: its waivers, its rules, and the variables that its targets are given."""
