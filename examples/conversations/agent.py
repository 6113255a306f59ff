"""A returns desk that remembers: small enough to read. In your project this is where the model is asked.

python examples/conversations/agent.py --port 8080               the agent as it is on the default branch
python examples/conversations/agent.py --port 8080 --forgetful   the agent after a change of its memory
"""

import argparse
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ORDERS = {"4711": ("lamp", "49.90"), "4712": ("kettle", "24.00")}
sessions: dict[str, list[str]] = {}
"""The user's messages of each session, by the id that Eval Gate sends."""


def answer(session: str | None, message: str, memory: int) -> dict:
    """Answer from the newest messages of this session, as many as it remembers. One message alone has no session."""
    messages = sessions.setdefault(session, []) if session else []
    messages.append(message)
    numbers = re.findall(r"\b\d{4}\b", " ".join(messages[-memory:]))
    if not numbers or numbers[-1] not in ORDERS:
        return {"response": "Which order do you mean?", "toolCalls": []}
    item, price = ORDERS[numbers[-1]]
    params = {"order": numbers[-1]}
    if "refund" in message.lower():
        call = {"name": "refund_order", "params": params, "success": True}
        return {"response": f"I have refunded {price} euros for the {item}.", "toolCalls": [call]}
    if "how much" in message.lower():
        call = {"name": "find_order", "params": params, "success": True}
        return {"response": f"You get {price} euros back for the {item}.", "toolCalls": [call]}
    return {"response": f"I am sorry about the {item}. What can I do for you?", "toolCalls": []}


class Handler(BaseHTTPRequestHandler):
    memory = 100

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = json.dumps(answer(request.get("session"), request["message"], self.memory)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--forgetful", action="store_true", help="remember the newest two messages only")
    given = parser.parse_args()
    Handler.memory = 2 if given.forgetful else 100
    server = ThreadingHTTPServer((given.host, given.port), Handler)
    print(f"http://{given.host}:{server.server_port}/chat", flush=True)
    server.serve_forever()
