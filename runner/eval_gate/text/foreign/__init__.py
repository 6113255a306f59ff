"""What strangers' bytes become text and JSON by, within bounds."""
