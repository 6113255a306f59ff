"""Results that other tools wrote: recognised, read within bounds, and brought into one shape."""
