"""A model as a target, with recording, rate limits, retries and prices."""
