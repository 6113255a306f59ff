"""Session of a conversation: what one execution of it shares over its turns, and no other execution does."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

from eval_gate.model.base import JsonValue

_Opened = TypeVar("_Opened")


class ConversationSession:
    """Session of one execution, such as a re-run or an attempt; nothing that the agent returned is stored or shown."""

    def __init__(self) -> None:
        self._id = str(uuid.uuid4())
        self.own_id: str | int | None = None
        """The agent's own id, as it returned it last."""
        self.task: JsonValue = None
        """Task of the agent that the next turn has to continue; None for none."""
        self.calls: tuple[str, ...] = ()
        """Names of the tool calls that its responses listed so far, where they list those of all turns."""
        self.totals: dict[str, int] = {}
        """Tokens that its responses counted so far, by name, where they count those of all turns."""
        self._opened: dict[str, Any] = {}
        self._stack = AsyncExitStack()

    @property
    def id(self) -> str:
        """`{{session}}`: an id of Eval Gate until the agent has returned its own."""
        return self._id if self.own_id is None else str(self.own_id)

    async def enter(self, name: str, manager: Callable[[], AbstractAsyncContextManager[_Opened]]) -> _Opened:
        """Open something for the whole conversation, such as a process, or return it if it is open already."""
        if name not in self._opened:
            self._opened[name] = await self._stack.enter_async_context(manager())
        opened: _Opened = self._opened[name]
        return opened

    async def aclose(self) -> None:
        """Close what was opened, in reverse order."""
        self._opened.clear()
        await self._stack.aclose()
