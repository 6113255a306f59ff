"""Text as others define it: tokens, ECMAScript strings and patterns, escaping, positions in JSON, paths."""
