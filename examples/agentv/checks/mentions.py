"""Grades an answer by the words it has to hold: the share of them that are there."""

import json
import sys

answer = json.load(sys.stdin)["candidate_answer"]
hits = [word for word in sys.argv[1:] if word in answer]
misses = [word for word in sys.argv[1:] if word not in answer]
print(json.dumps({"score": len(hits) / len(sys.argv[1:]), "hits": hits, "misses": misses}))
