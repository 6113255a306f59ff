"""Commands that ask an agent: once, again at each change, side by side, in a demo, in a workflow."""
