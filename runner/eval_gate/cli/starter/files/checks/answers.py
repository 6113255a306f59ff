"""Judges an answer: 1 when it says anything at all, else 0.

The case and the answer come as JSON on standard input; the score goes to standard output.
"""

import json
import sys

answer = json.load(sys.stdin)["candidate_answer"].strip()
print(
    json.dumps(
        {
            "score": 1.0 if answer else 0.0,
            "hits": ["it answers"] if answer else [],
            "misses": [] if answer else ["the answer is empty"],
        }
    )
)
