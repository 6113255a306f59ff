"""Foreign programs: started in a group of their own, within limits of time and size, and ended as a whole."""
