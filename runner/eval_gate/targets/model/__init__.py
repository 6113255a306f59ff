"""A model as a target, and everything around asking one: recording, pace, prices."""
