"""Where a judged run is to be seen: comment, check, artifact."""
