"""The order desk as a LangGraph graph: its server keeps the messages of each thread."""

import json

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from order_desk import answer, variant


def think(state: MessagesState) -> dict:
    """Call the tools that the thread's last message asks for, and then say what they did."""
    messages = [str(one.content) for one in state["messages"] if isinstance(one, HumanMessage)]
    text, calls = answer(messages, variant())
    number = len(state["messages"])
    listed = [
        {"name": call["name"], "args": call["params"], "id": f"call-{number}-{at}", "type": "tool_call"}
        for at, call in enumerate(calls)
    ]
    results = [
        ToolMessage(json.dumps(call["result"]), tool_call_id=one["id"], name=call["name"])
        for one, call in zip(listed, calls, strict=True)
    ]
    asked = [AIMessage("", tool_calls=listed), *results] if calls else []
    return {"messages": [*asked, AIMessage(text)]}


builder = StateGraph(MessagesState)
builder.add_node("think", think)
builder.add_edge(START, "think")
builder.add_edge("think", END)
graph = builder.compile()
