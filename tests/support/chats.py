"""A model that says what a test wants, turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eval_gate.config.settings import RecordingMode
from eval_gate.model.conversation import Message, ToolCall, ToolSpec
from eval_gate.model.usage import Usage
from eval_gate.targets.base import RetryPolicy, TargetError, TargetFault
from eval_gate.targets.model.chat import ModelTurn
from eval_gate.targets.model.model_client import ModelClient
from eval_gate.targets.model.recording import Recording
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.targets.retry import LoadLimiter

TOY = ModelSettings.model_validate({"name": "toy", "provider": "openai", "model": "toy"})
Answer = Callable[[Sequence[Message], Sequence[ToolSpec]], ModelTurn]


def says(text: str = "", *calls: str, **params) -> ModelTurn:
    """A turn with this text and calls of these tools."""
    made = tuple(ToolCall(name=name, params=params, id=f"call-{number}") for number, name in enumerate(calls))
    return ModelTurn(text=text, tool_calls=made, usage=Usage(input_tokens=10, output_tokens=5), model="toy-1")


def limited(retry_after_s: float | None = None) -> TargetError:
    return TargetError("too many", fault=TargetFault.REFUSED, retryable=True, status=429, retry_after_s=retry_after_s)


class ScriptedChat:
    """Gives its turns in order, the last one for ever; an error in their place is raised."""

    provider = "toy"
    model = "toy"
    address = "http://toy.test"
    notice = None

    def __init__(self, *turns: ModelTurn | TargetError, temperature: float = 0.0) -> None:
        self._turns = list(turns)
        self.settings: dict[str, object] = {"temperature": temperature}
        self.asked: list[tuple[tuple[Message, ...], tuple[ToolSpec, ...]]] = []
        self.closed = False

    async def ask(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), schema: object = None
    ) -> ModelTurn:
        self.asked.append((tuple(messages), tuple(tools)))
        turn = self._turns.pop(0) if len(self._turns) > 1 else self._turns[0]
        if isinstance(turn, TargetError):
            raise turn
        return turn

    async def aclose(self) -> None:
        self.closed = True


def make_asker(chat: ScriptedChat, recording: Recording | None = None, folder=None, **policy) -> ModelClient:
    """An asker without waits between its tries."""
    made = recording or Recording(RecordingMode.OFF)
    if folder is not None:
        made.set_run_folder(folder)
    return ModelClient(chat, RetryPolicy(**{"initial_delay_ms": 0, "max_retries": 3} | policy), LoadLimiter(1), made)
