"""An agent of pydantic-ai with a scripted model: AG-UI at /ag-ui, the Vercel AI stream at /vercel. `server.py PORT`."""

import json
import re
import sys
from collections.abc import AsyncIterator

import uvicorn
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from pydantic_ai.ui.vercel_ai import VercelAIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def think(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
    """Asks the tool about weather, and then tells what it said; a fault where the question wants one."""
    parts = [part for message in messages for part in message.parts]
    question = next(part.content for part in reversed(parts) if isinstance(part, UserPromptPart))
    told = next((part for part in reversed(messages[-1].parts) if isinstance(part, ToolReturnPart)), None)
    if "crash" in str(question):
        raise RuntimeError("the model is out of order")
    if "weather" in str(question) and told is None:
        arguments = json.dumps({"city": "Rome"})
        yield {0: DeltaToolCall(name="get_weather", json_args=arguments[:6], tool_call_id="call-1")}
        yield {0: DeltaToolCall(json_args=arguments[6:])}
        return
    if "who am I" in str(question):
        names = [name for part in parts for name in re.findall(r"I am (\w+)", str(getattr(part, "content", "")))]
        yield f"You are {names[0]}." if names else "I do not know you."
        return
    for word in ("It is ", str(told.content if told else "nothing"), " in Rome."):
        yield word


agent = Agent(FunctionModel(stream_function=think))


@agent.tool_plain
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"22 degrees ({len(city)} letters)"


async def ag_ui(request: Request) -> Response:
    return await AGUIAdapter.dispatch_request(request, agent=agent)


async def vercel(request: Request) -> Response:
    return await VercelAIAdapter.dispatch_request(request, agent=agent)


app = Starlette(routes=[Route("/ag-ui", ag_ui, methods=["POST"]), Route("/vercel", vercel, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
