"""A small weather agent over HTTP, so that Eval Gate has something real to ask. No model, no key, no network.

    python examples/weather/agent.py --port 8080             the agent as it is on the default branch
    python examples/weather/agent.py --port 8080 --regress   the agent after a change of its prompt

POST /chat {"message": "…"} answers {"response": "…", "toolCalls": […], "usage": {…}}; GET /health says it is up.
"""

import argparse
import asyncio
import contextlib
import re
import sys
import zlib

from aiohttp import web

CITIES = {
    "Lisbon": {"celsius": 21, "sky": "sunny", "aqi": 31, "days": ["sunny", "windy", "light rain"]},
    "Oslo": {"celsius": 4, "sky": "cloudy", "aqi": 18, "days": ["sleet", "cloudy", "clear"]},
    "Rome": {"celsius": 18, "sky": "clear", "aqi": 52, "days": ["clear", "sunny", "thunderstorms"]},
    "Tokyo": {"celsius": 12, "sky": "light rain", "aqi": 44, "days": ["light rain", "cloudy", "sunny"]},
}
WORDS = {
    "get_forecast": r"\b(forecast|tomorrow|next \w+ days|this week|weekend)\b",
    "get_air_quality": r"\b(air quality|aqi|pollution|smog)\b",
    "get_weather": r"\b(weather|temperature|warm|warmer|cold|colder|hot|raining|rain|umbrella|jacket|outside)\b",
}
INJECTION = r"\b(ignore (all|your|previous)|system prompt|api key|password)\b"


class Agent:
    """Picks tools by rules over the message, calls them, and writes a sentence about what they returned."""

    def __init__(self, *, changed: bool) -> None:
        self.words = dict(WORDS)
        self.compares_cities = changed
        if changed:
            # what somebody took for a harmless clean-up of the prompt
            self.words["get_forecast"] = r"\b(forecast|next \w+ days|this week|weekend)\b"
            self.words["get_weather"] = WORDS["get_weather"].replace("weather", "weather|tomorrow")

    def answer(self, message: str) -> dict:
        calls: list[dict] = []
        sentences = []
        if not re.search(INJECTION, message, re.IGNORECASE):
            tools = [tool for tool, words in self.words.items() if re.search(words, message, re.IGNORECASE)]
            cities = self.cities_in(message)
            # a forecast answers the question about the weather too
            for tool in tools[:1] if "get_forecast" in tools else tools:
                for city in cities if self.compares_cities else cities[:1]:
                    sentences.append(self.call(tool, city, message, calls))
        text = (
            " ".join(sentences)
            or "I can help with weather, forecasts and air quality. Which city are you asking about?"
        )
        usage = {"inputTokens": 40 + len(message) // 4, "outputTokens": len(text) // 4}
        return {"response": text, "toolCalls": calls, "usage": usage}

    def cities_in(self, message: str) -> list[str]:
        return re.findall(r"(?<!^)(?<![.?!] )\b(?!I\b|AQI\b|API\b)[A-Z][a-z]+\b", message)

    def call(self, tool: str, city: str, message: str, calls: list[dict]) -> str:
        params: dict = {"city": city}
        if tool == "get_weather":
            params["units"] = "fahrenheit" if re.search("fahrenheit", message, re.IGNORECASE) else "celsius"
        if tool == "get_forecast":
            params["days"] = 1 if "tomorrow" in message.lower() else 3
        found = CITIES.get(city)
        calls.append({"name": tool, "success": found is not None, "durationMs": 3, "params": params})
        if found is None:
            return f"I could not find a place called {city}."
        return self.say(tool, city, params, found)

    def say(self, tool: str, city: str, params: dict, found: dict) -> str:
        if tool == "get_forecast":
            return f"Forecast for {city}: {', '.join(found['days'][: params['days']])}."
        if tool == "get_air_quality":
            return f"The air quality index in {city} is {found['aqi']}."
        degrees = found["celsius"]
        if params["units"] == "fahrenheit":
            return f"It is {round(degrees * 9 / 5 + 32)} °F and {found['sky']} in {city}."
        return f"It is {degrees} °C and {found['sky']} in {city}."


def application(agent: Agent, latency_ms: int) -> web.Application:
    async def chat(request: web.Request) -> web.Response:
        message = (await request.json())["message"]
        # a different but repeatable pause for every message, as a model would take
        await asyncio.sleep(latency_ms * (0.5 + zlib.crc32(message.encode()) % 100 / 100) / 1000)
        return web.json_response(agent.answer(message))

    async def health(_request: web.Request) -> web.Response:
        return web.json_response({"ok": True})

    app = web.Application()
    app.add_routes([web.post("/chat", chat), web.get("/health", health)])
    return app


async def serve(arguments: argparse.Namespace) -> None:
    runner = web.AppRunner(application(Agent(changed=arguments.regress), arguments.latency_ms))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1" if not arguments.public else "0.0.0.0", arguments.port).start()
    host, port = runner.addresses[0][:2]
    print(f"http://{host}:{port}", flush=True)
    if arguments.until_input_ends:
        await asyncio.to_thread(sys.stdin.read)
    else:
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8080, help="0 takes a free one")
    parser.add_argument("--public", action="store_true", help="listen on every address, for callers in containers")
    parser.add_argument("--regress", action="store_true", help="the agent after its change")
    parser.add_argument("--latency-ms", type=int, default=60, help="pause before an answer")
    parser.add_argument("--until-input-ends", action="store_true", help="end with standard input, for parent processes")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
