"""Scores a response: 1 if it is not empty, else 0.

The case and the response come as JSON on standard input; the score goes to standard output.
"""

import json
import sys

response = json.load(sys.stdin)["candidate_answer"].strip()
print(
    json.dumps(
        {
            "score": 1.0 if response else 0.0,
            "hits": ["the response is not empty"] if response else [],
            "misses": [] if response else ["the response is empty"],
        }
    )
)
