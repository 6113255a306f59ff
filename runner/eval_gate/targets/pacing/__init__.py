"""How fast targets are asked."""
