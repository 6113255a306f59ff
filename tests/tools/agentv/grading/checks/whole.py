"""0.9 where it is told the results of both members, else 0."""

import json
import sys

results = json.load(sys.stdin)["results"]
told = (results["a"]["score"], results["b"]["score"]) == (0.5, 1)
print(json.dumps({"score": 0.9 if told else 0}))
