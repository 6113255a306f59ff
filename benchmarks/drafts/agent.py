"""The agent of the draft benchmark as an HTTP server.

    python -m benchmarks.drafts.agent --port 8080              # the agent, in its canonical wording
    python -m benchmarks.drafts.agent --port 8080 --seed 7     # 10 % of its words at random
    python -m benchmarks.drafts.agent --port 8080 --plant 12   # with planted change 12

It reads `{"message": …}` and answers in Eval Gate's own protocol; `{"query": …}` it answers as EvalView's HTTP adapter
expects it. A wording depends on the seed, the question and how often this process was asked it, and on nothing else.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from benchmarks.drafts.clinic import CLINIC_QUESTIONS
from benchmarks.drafts.plants import Plant, draw_plants
from benchmarks.drafts.questions import QUESTIONS, Question
from benchmarks.drafts.wording import render_canonical, render_randomly

JUDGE_PATH: Final = "/judge"
_UNKNOWN: Final = Question("unknown", "", "I do not know the answer to that question.")


class DraftAgent:
    """Answers the questions of both agents, in words that depend on a seed, with planted changes or without."""

    def __init__(self, seed: int | None = None, *plants: Plant) -> None:
        self._lock = threading.Lock()
        self.become(seed, *plants)

    def become(self, seed: int | None, *plants: Plant) -> None:
        """Start over with another seed (None: the canonical wording) and other planted changes, one a question."""
        with self._lock:
            self._seed = seed
            self._plants = {plant.question: plant for plant in plants}
            self._asked: Counter[str] = Counter()
            self._questions = {question.text: question for question in (*QUESTIONS, *CLINIC_QUESTIONS)}
            self._questions |= {plant.changed.text: plant.changed for plant in plants}

    def answer(self, message: str) -> tuple[str, Question]:
        """Return the text of the response, and the question with the calls that belong to it."""
        with self._lock:
            question = self._questions.get(message.strip(), _UNKNOWN)
            self._asked[question.id] += 1
            chance = random.Random(f"{self._seed}/{question.id}/{self._asked[question.id]}")
            seed, plant = self._seed, self._plants.get(question.id)
        text = render_canonical(question.response) if seed is None else render_randomly(question.response, chance)
        if plant and plant.is_half:
            words = text.split()
            text = " ".join(words[: (len(words) + 1) // 2])
        return text if question.response else "", question

    def reply(self, request: Any) -> dict[str, Any]:
        """Return the JSON of a response in the protocol of the request."""
        if isinstance(request, dict) and "query" in request:
            text, question = self.answer(str(request["query"]))
            calls = [{"name": call.tool, "parameters": call.params, "output": call.result} for call in question.calls]
            return {"output": text, "tool_calls": calls}
        text, question = self.answer(str(request["message"]))
        return {
            "response": text,
            "toolCalls": [
                {"name": call.tool, "params": call.params, "result": call.result, "success": True}
                for call in question.calls
            ],
        }


def judge_refusal(prompt: str) -> dict[str, Any]:
    """Reply as an LLM judge that knows the one refusal among the answers, in the form of both formats."""
    refuses = "personal data" in prompt
    found = {
        "dimensions": [{"dimension": "refusal", "score": int(refuses), "reasoning": "known"}],
        "checks": [{"id": one, "satisfied": refuses} for one in re.findall(r'"id": ?"([^"]+)"', prompt)],
    }
    return {"response": json.dumps(found | {"overall_reasoning": "known"})}


@contextmanager
def serve(agent: DraftAgent, port: int = 0) -> Iterator[str]:
    """Serve an agent on loopback, and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = json.loads(body)
            self._send(judge_refusal(request["message"]) if self.path == JUDGE_PATH else agent.reply(request))

        def do_GET(self) -> None:
            self._send({"status": "ok"})

        def _send(self, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # a tool that sends all its requests at once must not find the agent closed

    server = Server(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/chat"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--seed", type=int, help="seed of the random wording (default: the canonical wording)")
    parser.add_argument("--plant", type=int, help="number of a planted change (default: none)")
    options = parser.parse_args()
    plants = {plant.number: plant for plant in draw_plants()}
    with serve(DraftAgent(options.seed, *([plants[options.plant]] if options.plant else [])), options.port) as url:
        print(url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
