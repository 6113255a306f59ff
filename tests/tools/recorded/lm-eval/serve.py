"""The agent behind the protocol of OpenAI's completions."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from agent import answer


class Desk(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompts = [asked["prompt"]] if isinstance(asked["prompt"], str) else asked["prompt"]
        said = []
        for at, one in enumerate(prompts):
            try:
                text = answer(one)
            except RuntimeError:
                text = ""
            said.append({"index": at, "text": text, "finish_reason": "stop"})
        body = json.dumps({"id": "c", "object": "text_completion", "choices": said}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


HTTPServer(("127.0.0.1", int(sys.argv[1])), Desk).serve_forever()
