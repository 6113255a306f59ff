"""The order desk as people write it with FastAPI: it keeps the messages of each session. `desk_agent.py PORT`."""

import sys

import uvicorn
from fastapi import FastAPI
from order_desk import answer, variant
from pydantic import BaseModel

app = FastAPI()
sessions: dict[str, list[str]] = {}


class Question(BaseModel):
    message: str
    session: str


@app.post("/chat")
def chat(question: Question) -> dict:
    messages = sessions.setdefault(question.session, [])
    messages.append(question.message)
    text, calls = answer(messages, variant())
    return {"response": text, "toolCalls": calls}


uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
