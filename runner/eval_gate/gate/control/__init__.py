"""The base branch's agent, asked where the gate would be red: what it is asked, and what its answers are worth."""
