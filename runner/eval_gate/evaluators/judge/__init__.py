"""LLM judges: prompts, requests and replies."""
