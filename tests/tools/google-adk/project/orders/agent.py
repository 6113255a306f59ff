"""The team's agent in ADK. Its model says what agent.py next to the folder answers."""

import runpy
from collections.abc import AsyncIterator
from pathlib import Path

from google.adk.agents import Agent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types

answer = runpy.run_path(str(Path(__file__).parents[1] / "agent.py"))["answer"]  # ADK imports this file as `agent`


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        said = answer(llm_request.contents[-1].parts[-1].text)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]))


root_agent = Agent(name="orders", model=Scripted(model="scripted"))
