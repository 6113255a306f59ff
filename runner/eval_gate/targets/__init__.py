"""What is evaluated: anything that answers a message. Nothing here knows a case, an assertion or a report."""
