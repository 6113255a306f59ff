"""promptfoo's configuration: prompts, providers, tests and assertions (read from 0.121)."""
