"""1 where the messages on stdin have the roles of `config.roles` and the answer is `config.output`, else 0."""

import json
import sys

told = json.load(sys.stdin)
config = told["config"]
checks = {
    "roles": [one["role"] for one in told["input"]] == config["roles"],
    "output": told["output"] == config["output"],
    "expected": [one["content"] for one in told["expected_output"]] == config.get("expected", []),
}
print(json.dumps({"assertions": [{"text": name, "passed": passed} for name, passed in checks.items()]}))
