"""A command line as a target."""
