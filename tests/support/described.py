"""Servers that say of themselves what they are, as the real ones do, and agents behind them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.agents import Exchange, Handler

ROUTED = json.loads((Path(__file__).parents[1] / "agents/asgi/routed_openapi.json").read_text())
"""What FastAPI says of `tests/agents/asgi/routed_agent.py`."""
KEY = "key-of-the-desk"


def describes(documents: Mapping[str, object], respond: Callable[[Exchange], None] | None = None) -> Handler:
    """A server with these documents; every POST is answered by `respond`, everything else is not found."""

    async def handle(exchange: Exchange) -> None:
        method, path, _ = exchange.head.split(" ", 2)
        if path in documents:
            document = documents[path]
            exchange.answer(document if isinstance(document, bytes) else json.dumps(document).encode())
        elif method == "POST" and respond is not None:
            respond(exchange)
        else:
            exchange.answer({"detail": "Not Found"}, status="404 Not Found")

    return handle


def answer_as_desk(exchange: Exchange, degrees: int = 22) -> None:
    """What the desk of `routed_agent.py` answers."""
    if exchange.header("x-api-key") != KEY:
        exchange.answer({"detail": "no such key"}, status="401 Unauthorized")
    elif exchange.head.split(" ")[1] != "/v2/desk/ask" or "question" not in exchange.json:
        exchange.answer({"detail": "Field required"}, status="422 Unprocessable Entity")
    elif "weather" not in exchange.json["question"]:
        exchange.answer({"data": {"answer": "Ask me about the weather.", "trace": []}})
    else:
        calls = [{"name": "get_weather", "input": {"city": "Rome"}}]
        exchange.answer({"data": {"answer": f"It is {degrees} degrees in Rome.", "trace": calls}})


def answer_as_model(exchange: Exchange, degrees: int = 22) -> None:
    """What a server with OpenAI's protocol answers that knows the models `small` and `large`."""
    if exchange.json.get("model") not in {"small", "large"}:
        exchange.answer({"error": {"message": "no such model", "code": "model_not_found"}}, status="404 Not Found")
        return
    message = {"role": "assistant", "content": f"It is {degrees} degrees in Rome."}
    call = {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
    exchange.answer({"model": "small", "choices": [{"message": message | {"tool_calls": [call]}}]})


def list_models(*names: str) -> dict[str, object]:
    return {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}
