"""The Codex CLI as a target."""
