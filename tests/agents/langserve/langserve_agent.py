"""Runnables behind LangServe: /text answers a text, /chat a message with calls. `server.py PORT`."""

import re
import sys

import uvicorn
from fastapi import FastAPI
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langserve import add_routes


def text(question: str) -> str:
    if "crash" in question:
        raise RuntimeError("the model is out of order")
    last, names = question.rpartition("@[User]:")[2], re.findall(r"I am (\w+)", question)
    if "who am I" in last:
        return f"You are {names[0]}." if names else "I do not know you."
    return "It is 22 degrees in Rome." if "weather" in last else "nothing"


def chat(question: str) -> AIMessage:
    call = {"name": "get_weather", "args": {"city": "Rome"}, "id": "call-1", "type": "tool_call"}
    return AIMessage(text(question), tool_calls=[call] if "weather" in question.rpartition("@[User]:")[2] else [])


app = FastAPI()
add_routes(app, RunnableLambda(text).with_types(input_type=str, output_type=str), path="/text")
add_routes(app, RunnableLambda(chat).with_types(input_type=str), path="/chat")
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
