"""Commands that ask an agent: once, side by side, in a demo, in a workflow, with the options of Agent Evals."""
