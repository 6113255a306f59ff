"""Base branch's agent: which cases it is given when the gate is red, and which it clears."""
