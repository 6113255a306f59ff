"""The run record as JSON: the forms in which it is written, what is left out where there is no room, how it is read."""
