"""An agent inside VS Code as a target."""
