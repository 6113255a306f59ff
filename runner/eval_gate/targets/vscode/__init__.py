"""VS Code chat as a target."""
