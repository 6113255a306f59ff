"""How a judge and people grade the same answers."""
