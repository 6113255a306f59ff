"""A compiled LangGraph graph with a scripted model and one tool."""

import re

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"22 degrees ({len(city)} letters)"


def think(state: MessagesState) -> dict:
    """Asks the tool about weather, and then tells what it said; a fault where the question wants one."""
    last = state["messages"][-1]
    if isinstance(last, ToolMessage):
        return {"messages": [AIMessage(f"It is {last.content} in Rome.")]}
    if "crash" in str(last.content):
        raise RuntimeError("the model is out of order")
    if "weather" in str(last.content):
        call = {"name": "get_weather", "args": {"city": "Rome"}, "id": "call-1", "type": "tool_call"}
        return {"messages": [AIMessage("", tool_calls=[call])]}
    if "who am I" in str(last.content):
        names = [name for one in state["messages"] for name in re.findall(r"I am (\w+)", str(one.content))]
        return {"messages": [AIMessage(f"You are {names[0]}." if names else "I do not know you.")]}
    return {"messages": [AIMessage(f"nothing; this is message {len(state['messages'])}")]}


def onward(state: MessagesState) -> str:
    return "tools" if state["messages"][-1].tool_calls else END


builder = StateGraph(MessagesState)
builder.add_node("think", think)
builder.add_node("tools", ToolNode([get_weather]))
builder.add_edge(START, "think")
builder.add_conditional_edges("think", onward, ["tools", END])
builder.add_edge("tools", "think")
graph = builder.compile()
