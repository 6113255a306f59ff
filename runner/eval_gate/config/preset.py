"""Names of the HTTP protocols for agents that are supported out of the box."""

from enum import StrEnum


class PresetName(StrEnum):
    """Values of `agentProtocol`."""

    EVAL_GATE = "eval-gate"
    TOOL_FORGE_SIDECAR = "tool-forge-sidecar"
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    LANGGRAPH = "langgraph"
    LANGGRAPH_THREAD = "langgraph-thread"
    LANGSERVE = "langserve"
    A2A = "a2a"
    A2A_0_3 = "a2a-0.3"
    AG_UI = "ag-ui"
    VERCEL_AI = "vercel-ai"
    OLLAMA = "ollama"
