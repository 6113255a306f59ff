"""Agents as people write them with FastAPI, one at each path. `fastapi_agent.py PORT`."""

import asyncio
import json
import re
import sys
import uuid
from collections.abc import AsyncIterator
from typing import Annotated

import uvicorn
from fastapi import Cookie, FastAPI, Form, Header, HTTPException, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel
from sse_starlette import EventSourceResponse

app = FastAPI()
jobs: dict[str, str] = {}
looks: list[str] = []


sessions: dict[str, list[str]] = {}


class Question(BaseModel):
    message: str
    session: str | None = None


def answer(question: str) -> str:
    if "crash" in question:
        raise HTTPException(500, "out of order")
    return "It is 22 degrees in Rome." if "weather" in question else "nothing"


def calls(question: str, name: str = "name", args: str = "params") -> list[dict]:
    return [{name: "get_weather", args: {"city": "Rome"}, "success": True}] if "weather" in question else []


@app.post("/chat")
def chat(question: Question) -> dict:
    return {"response": answer(question.message), "toolCalls": calls(question.message)}


def remember(session: str | None, question: str) -> tuple[str, str]:
    """The session, begun where there is none, and the answer to a question in it; 404 for one of somebody else."""
    if session is None:
        session = f"s/{uuid.uuid4().hex}=="
        sessions[session] = []
    if session not in sessions:
        raise HTTPException(404, "no such session")
    sessions[session].append(question)
    names = re.findall(r"I am (\w+)", " ".join(sessions[session]))
    if "who am I" in question:
        return session, f"You are {names[0]}." if names else "I do not know you."
    return session, answer(question)


@app.post("/session")
def by_its_id(question: Question) -> dict:
    if question.session is not None:
        sessions.setdefault(question.session, [])
    session, text = remember(question.session, question.message)
    return {"response": text, "session": session, "toolCalls": calls(question.message)}


@app.post("/header")
def by_header(question: Question, response: Response, x_session: Annotated[str | None, Header()] = None) -> dict:
    response.headers["X-Session"], text = remember(x_session, question.message)
    return {"response": text, "toolCalls": calls(question.message)}


@app.post("/cookie")
def by_cookie(question: Question, response: Response, sid: Annotated[str | None, Cookie()] = None) -> dict:
    session, text = remember(sid and sid.replace("-", "/", 1).replace(".", "="), question.message)
    response.set_cookie("sid", session.replace("/", "-").replace("=", "."), httponly=True)
    return {"response": text, "toolCalls": calls(question.message)}


@app.post("/sidecar")
def sidecar(question: Question) -> dict:
    return {"message": answer(question.message), "toolCalls": calls(question.message, "toolName", "args")}


@app.post("/text", response_class=PlainTextResponse)
def text(question: Question) -> str:
    return answer(question.message)


@app.post("/events")
def events(question: Question) -> EventSourceResponse:
    said = answer(question.message)

    async def pieces() -> AsyncIterator[str]:
        yield json.dumps({"toolCalls": calls(question.message)})
        for word in said.split(" "):
            yield json.dumps({"delta": f"{word} "})
            await asyncio.sleep(0.01)

    return EventSourceResponse(pieces())


@app.post("/lines")
def lines(question: Question) -> StreamingResponse:
    said = answer(question.message)

    def pieces() -> AsyncIterator[str]:
        yield json.dumps({"toolCalls": calls(question.message)}) + "\n"
        yield from (json.dumps({"delta": f"{word} "}) + "\n" for word in said.split(" "))

    return StreamingResponse(pieces(), media_type="application/x-ndjson")


@app.get("/ask")
def ask(q: str) -> dict:
    return {"response": answer(q), "toolCalls": calls(q)}


@app.post("/form")
def form(q: Annotated[str, Form()]) -> dict:
    return {"response": answer(q), "toolCalls": calls(q)}


@app.post("/jobs", status_code=202)
def begin(question: Question, response: Response) -> dict:
    name = f"job-{len(jobs)}"
    jobs[name] = question.message
    response.headers["Location"] = f"/jobs/{name}"
    return {"id": name, "status": "queued"}


@app.get("/jobs/{name}")
def job(name: str) -> dict:
    looks.append(name)
    if looks.count(name) < 3:
        return {"id": name, "status": "running"}
    if "crash" in jobs[name]:
        return {"id": name, "status": "failed", "error": "out of order"}
    return {"id": name, "status": "done", "response": answer(jobs[name]), "toolCalls": calls(jobs[name])}


uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
