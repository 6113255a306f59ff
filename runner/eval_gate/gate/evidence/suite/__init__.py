"""What a whole suite shows that no single case can: its failures, its scores, and since when it is as it is."""
