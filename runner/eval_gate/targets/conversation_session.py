"""Session of a conversation: what one execution of it shares over its turns, and no other execution does."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

_Opened = TypeVar("_Opened")


class ConversationSession:
    """Session of one execution. Each re-run, trial, attempt and restart of a conversation has its own.

    `id` is `{{session}}`: first an id of Eval Gate, then the one that the agent returned, if it did. `values` are
    other texts that the agent returned and gets back, such as a cookie, by name. `calls` are the names of the
    tool calls that its responses listed so far. None of them is stored or shown.
    """

    def __init__(self) -> None:
        self.id = str(uuid.uuid4())
        self.has_own_id = False
        """Whether `id` is the agent's own."""
        self.values: dict[str, str] = {}
        self.calls: tuple[str, ...] = ()
        self._opened: dict[str, Any] = {}
        self._stack = AsyncExitStack()

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
