"""How well the judges of a run are known: what a comparison with people's labels has left behind."""
