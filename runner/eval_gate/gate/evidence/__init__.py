"""What records and re-runs show: whether a failure is news, or chance."""
