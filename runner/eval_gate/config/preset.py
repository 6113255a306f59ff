"""The known ways in which agents speak HTTP, by name."""

from enum import StrEnum


class PresetName(StrEnum):
    """The words that `preset` and `agentPreset` may be."""

    EVAL_GATE = "eval-gate"
    TOOL_FORGE_SIDECAR = "tool-forge-sidecar"
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    LANGGRAPH = "langgraph"
    LANGSERVE = "langserve"
    A2A = "a2a"
    A2A_0_3 = "a2a-0.3"
    AG_UI = "ag-ui"
    VERCEL_AI = "vercel-ai"
    OLLAMA = "ollama"
