"""Text handling: escaping, redaction, quoting, tokens, JSON and YAML with positions, URLs."""
