"""An agent of a2a-sdk: /message answers with a message, /task with a task that ends, /slow with one to be asked about.

/plain answers with a message that is in no context, so that it remembers nothing; /asking asks back, and ends its task
with the next message. The others remember the messages of each context. Each speaks the protocol's version 1.0 and the
older 0.3. `server.py PORT`.
"""

import asyncio
import re
import sys
from collections import defaultdict

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_artifact_update_event, new_text_message
from a2a.helpers import new_text_status_update_event as status
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, TaskState
from starlette.applications import Starlette

contexts: dict[str | None, list[str]] = defaultdict(list)


def answer(context: RequestContext) -> str:
    question = context.get_user_input()
    contexts[context.context_id].append(question)
    if "who am I" in question:
        names = re.findall(r"I am (\w+)", " ".join(contexts[context.context_id]))
        return f"You are {names[0]}." if names else "I do not know you."
    return "It is 22 degrees in Rome." if "weather" in question else "nothing"


class Messenger(AgentExecutor):
    """Answers at once."""

    def __init__(self, *, in_context: bool = True) -> None:
        self._in_context = in_context

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        if "crash" in context.get_user_input():
            raise RuntimeError("the model is out of order")
        place = {"context_id": context.context_id} if self._in_context else {}
        await event_queue.enqueue_event(new_text_message(answer(context), **place))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


class Worker(Messenger):
    """Answers with a task, whose artifact is there after so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        place = {"task_id": task.id, "context_id": task.context_id}
        await event_queue.enqueue_event(status(**place, state=TaskState.TASK_STATE_WORKING, text="thinking"))
        await asyncio.sleep(self._seconds)
        question = context.get_user_input()
        if "crash" in question:
            await event_queue.enqueue_event(status(**place, state=TaskState.TASK_STATE_FAILED, text="out of order"))
            return
        await event_queue.enqueue_event(new_text_artifact_update_event(**place, name="answer", text=answer(context)))
        await event_queue.enqueue_event(status(**place, state=TaskState.TASK_STATE_COMPLETED, text="done"))


class Asker(Messenger):
    """Asks back about every new task, and ends it with the next message."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task, text = context.current_task, answer(context)
        state = TaskState.TASK_STATE_COMPLETED
        if task is None:
            task, state = new_task_from_user_message(context.message), TaskState.TASK_STATE_INPUT_REQUIRED
            await event_queue.enqueue_event(task)
            text += " What else?"
        place = {"task_id": task.id, "context_id": task.context_id}
        await event_queue.enqueue_event(status(**place, state=state, text=text))


card = AgentCard(name="weather", version="1", capabilities=AgentCapabilities(streaming=True))
place = f"http://localhost:{sys.argv[1]}/message"
card.supported_interfaces.append(AgentInterface(url=place, protocol_binding="JSONRPC", protocol_version="1.0"))
routes = create_agent_card_routes(card)
executors = {"/message": Messenger(), "/plain": Messenger(in_context=False), "/asking": Asker()}
for path, executor in (executors | {"/task": Worker(0.0), "/slow": Worker(1.0)}).items():
    handler = DefaultRequestHandler(agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=card)
    routes += create_jsonrpc_routes(handler, path, enable_v0_3_compat=True)
uvicorn.run(Starlette(routes=routes), port=int(sys.argv[1]), log_level="warning")
