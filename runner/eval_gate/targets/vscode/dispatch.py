"""How prompts get to an agent inside VS Code and answers back, whatever the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from eval_gate.struct import FrozenStruct


class PromptFile(FrozenStruct):
    """One prompt document, and the absolute paths of the files that go with it."""

    document: str
    files: tuple[str, ...] = ()


class PromptReply(FrozenStruct):
    """The answer to one prompt, and how many seconds it took; None where there is none, and then why.

    `late`: there is none because the time was over.
    """

    text: str | None
    seconds: float = 0.0
    reason: str = ""
    late: bool = False


class Dispatcher(Protocol):
    """Puts prompts to agents. All of its methods raise TargetError when nothing could be asked."""

    async def check(self) -> None:
        """Whether everything is there that `dispatch` needs."""
        ...

    async def rehearse(self) -> None:
        """Whether there is somebody to ask; nobody is."""
        ...

    async def dispatch(self, prompts: Sequence[PromptFile]) -> tuple[PromptReply, ...]:
        """Replies to all of the prompts, in their order; several prompts are one exchange."""
        ...
