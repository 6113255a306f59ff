"""A stand-in for a model, so that the suites can be tried without a key: it understands a handful of sentences.

    python examples/agent-evals/model.py --port 8088

It speaks OpenAI's chat completions: POST /v1/chat/completions. Asked for the model `forgetful`, it says that it wrote
a file without doing so.
"""

import argparse
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOURS = {"hours": {"open": 9, "close": 17}, "days": ["Mon", "Tue"]}
SENTENCES = (
    (r"Note in (?P<path>\S+): (?P<content>.+)", "writeFile"),
    (r"What does (?P<path>\S+) say\?", "readFile"),
    (r"Delete (?P<path>\S+)", "deleteFile"),
)
"""What is understood, and the tool that does it."""


def turn(model: str, messages: list[dict]) -> dict:
    """The message that comes next in this conversation."""
    prompt = next(message["content"] for message in reversed(messages) if message["role"] == "user")
    last = messages[-1]
    if last["role"] == "tool":
        return after_tool(prompt, str(last["content"]))
    for pattern, tool in SENTENCES:
        found = re.fullmatch(pattern, prompt)
        if found and tool == "writeFile" and model == "forgetful":
            return {"content": f"I wrote it to {found['path']}."}
        if found:
            call = {"name": tool, "arguments": json.dumps(found.groupdict())}
            return {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
    if "JSON" in prompt:
        return {"content": f"```json\n{json.dumps(HOURS)}\n```"}
    return {"content": "We are open from nine to five, Monday and Tuesday."}


def after_tool(prompt: str, said: str) -> dict:
    """What is said when the tool has answered."""
    if said.startswith("Error"):
        return {"content": f"I could not do that. {said}"}
    path = re.search(r"\S+\.\w+", prompt)
    where = path[0].rstrip(":") if path else "the file"
    done = {"N": f"I wrote it to {where}.", "D": f"I deleted {where}."}
    return {"content": f"It says: {said}" if prompt.startswith("What") else done[prompt[0]]}


class Handler(BaseHTTPRequestHandler):
    """One request after the other, each answered at once."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        message = {"role": "assistant", **turn(asked["model"], asked["messages"])}
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        answer = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": asked["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30},
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name of the base class)
        """Say nothing: the runner says what it asked."""


def main() -> None:
    parser = argparse.ArgumentParser(description="A stand-in for a model.")
    parser.add_argument("--port", type=int, default=8088)
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
