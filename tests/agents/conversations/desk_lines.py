"""The order desk as a command that lives as long as a conversation: a line of JSON in, a line of JSON out."""

import json
import sys

from order_desk import answer, variant

messages: list[str] = []
for line in sys.stdin:
    messages.append(json.loads(line)["message"])
    text, calls = answer(messages, variant())
    listed = [{"tool": call["name"], "input": call["params"], "output": call["result"]} for call in calls]
    record = {"output_messages": [{"role": "assistant", "content": text, "tool_calls": listed}]}
    print(json.dumps(record), flush=True)
