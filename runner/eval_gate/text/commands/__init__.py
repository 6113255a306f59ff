"""Lines for a shell that people wrote with places for values in them."""
