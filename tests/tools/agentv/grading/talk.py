"""Answers a turn of a conversation from its own text: as `You said: …`, or breaks off at `break off`.

AgentV gives a program only the text of the turn. With us it gets all messages, the newest last.
"""

import json
import pathlib
import sys

prompt, place = sys.argv[1:3]
message = prompt.rpartition("@[User]:\n")[2]
if message == "break off":
    sys.exit(3)
answer = {"role": "assistant", "content": f"You said: {message}"}
if message == "look it up":
    answer["tool_calls"] = [{"tool": "lookup", "input": {"what": "it"}}]
record = {"output": [answer], "token_usage": {"input": 5, "output": 7}, "cost_usd": 0.01}
pathlib.Path(place).write_text(json.dumps(record))
