"""Ways for an agent to answer `ask N`."""

from __future__ import annotations

from tests.support.agents import Exchange, Handler


def fails_on(*numbers: int) -> Handler:
    """Answers `ok`, but `no` to these."""

    async def handler(exchange: Exchange) -> None:
        asked = int(exchange.json["message"].split()[1])
        exchange.answer({"response": "no" if asked in numbers else "ok", "toolCalls": []})

    return handler
