"""CI systems besides GitHub: what their jobs know, and comments through their APIs. No evals."""
