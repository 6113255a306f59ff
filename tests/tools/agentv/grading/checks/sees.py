"""1 where everything is on stdin that a grader is told, else 0 and what is not."""

import json
import sys

told = json.load(sys.stdin)
wanted = told["config"]["wanted"]
content = told["input"][-1]["content"]
checks = {
    "criteria": told["criteria"] == wanted["criteria"],
    "metadata": told["metadata"] == {"level": wanted["level"]},
    "output": told["output"].startswith("The ferry"),
    "messages": told["messages"][-1]["content"] == told["output"],
    "first the file's input": told["input"][0]["content"] == "Answer in one line.",
    "a file": content[0]["type"] == "file" and "harbour,depth" in content[0]["text"],
    "the text behind it": content[1]["value"] == "Which harbour, Ada? {{ unknown }}",
    "input files": [one.rpartition("/")[2] for one in told["input_files"]] == ["list.csv"],
    "expected": told["expected_output"] == [],
}
print(json.dumps({"assertions": [{"text": name, "passed": passed} for name, passed in checks.items()]}))
