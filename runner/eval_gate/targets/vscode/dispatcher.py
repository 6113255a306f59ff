"""Dispatch prompts to VS Code subagents through request and response files (agentv behaviour 5.5)."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.model import limits
from eval_gate.process.captured_output import Mask
from eval_gate.process.environment import WithheldVariables
from eval_gate.process.run import Command, FinishedProgram, ProcessError, run
from eval_gate.struct import FrozenStruct, field
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.coding_agent import build_program_error, find_program, format_timestamp
from eval_gate.targets.vscode.subagent import (
    Subagent,
    build_workspace,
    claim_subagent,
    get_unlocked_subagent,
    list_subagents,
)

MAX_RESPONSE: Final = limits.VSCODE_BYTES
MAX_BATCH: Final = 200
MAX_FILES: Final = 200
"""Maximum files attached to one chat; the prompt only links to further files."""
MODE: Final = "agent"
"""Chat mode in which VS Code can write files."""
_NO_EDITOR: Final = "use a machine with VS Code, or dry_run: true, which does not need it"


class PromptFile(FrozenStruct):
    """One prompt document with the absolute paths of its files."""

    document: str
    files: tuple[str, ...] = ()


class PromptReply(FrozenStruct):
    """Reply to one prompt, or the reason why it is missing, and its duration in seconds.

    `timed_out` means that the reply is missing because the time limit was reached.
    """

    text: str | None
    seconds: float = 0.0
    reason: str = ""
    timed_out: bool = False


class VscodeLimits(FrozenStruct):
    """Time limits in seconds: response, start of the editor, one call of its program, poll interval."""

    response_s: float
    alive_s: float = 60.0
    call_s: float = 60.0
    status_s: float = 10.0
    poll_s: float = 0.25


class Editor(FrozenStruct):
    """Program of VS Code: its name or path below `root`, and its environment."""

    command: str
    root: Path
    environment: Mapping[str, str]
    mask: Mask | None = None
    withheld: WithheldVariables = field(default_factory=WithheldVariables)
    """Variables that the program does not get."""

    def find_program(self) -> str:
        """Its absolute path. Raises TargetError (unreachable)."""
        try:
            return find_program(self.command, "VS Code command", self.root, self.environment)
        except TargetError as error:
            error.hint = _NO_EDITOR
            raise


class Dispatcher(FrozenStruct):
    """Dispatcher of prompts to the subagents in a folder. All methods raise TargetError."""

    editor: Editor
    folder: Path
    template: Path | None
    limits: VscodeLimits

    async def check(self, *, dry_run: bool) -> None:
        """Raise TargetError when there is no editor, no subagent, or no template; a dry run needs a free subagent."""
        if dry_run:
            get_unlocked_subagent(self.folder)
            return
        self.editor.find_program()
        build_workspace(self.template)
        if not list_subagents(self.folder):
            get_unlocked_subagent(self.folder)

    async def dispatch(self, prompts: Sequence[PromptFile]) -> tuple[PromptReply, ...]:
        """Ask one subagent, several prompts through an orchestrator in one chat, and return one reply for each."""
        if len(prompts) > MAX_BATCH:
            what = f"one chat supports at most {MAX_BATCH} cases, not {len(prompts):,}"
            raise TargetError(what, fault=TargetFault.REFUSED)
        program, workspace = self.editor.find_program(), build_workspace(self.template)
        try:
            with claim_subagent(self.folder) as subagent:
                subagent.prepare(workspace)
                return await _SubagentChat(program, self.editor, subagent, self.limits).ask(prompts)
        except OSError as error:
            what = f"the subagent's folder cannot be used: {error.strerror}: {error.filename}"
            raise build_program_error(what) from error


class _SubagentChat:
    def __init__(self, program: str, editor: Editor, subagent: Subagent, limits: VscodeLimits) -> None:
        self._program, self._editor = program, editor
        self._subagent, self._limits = subagent, limits
        self._stamp = f"{format_timestamp()}-{secrets.token_hex(2)}"

    async def ask(self, prompts: Sequence[PromptFile]) -> tuple[PromptReply, ...]:
        await self._wake_subagent()
        if len(prompts) == 1:
            names = [self._stamp]
            first = self._write_request(names[0], prompts[0])
        else:
            names = [f"{self._stamp}_{number}" for number in range(len(prompts))]
            first = self._write_batch(names, prompts)
        started = time.perf_counter()
        files = tuple(dict.fromkeys(path for prompt in prompts for path in prompt.files))[:MAX_FILES]
        attached = [word for path in (*files, str(first)) for word in ("-a", path)]
        await self._call_editor("-r", "chat", "-m", MODE, *attached, f"Follow instructions in {first.name}")
        return await self._wait_for_replies(names, started)

    def _write_request(self, name: str, prompt: PromptFile) -> Path:
        messages = self._subagent.messages
        text = _format_request(prompt.document, messages / f"{name}_res.tmp.md", messages / f"{name}_res.md")
        return self._subagent.write_message(f"{name}_req.md", text)

    def _write_batch(self, names: Sequence[str], prompts: Sequence[PromptFile]) -> Path:
        requests = [self._write_request(name, prompt) for name, prompt in zip(names, prompts, strict=True)]
        responses = [self._subagent.messages / f"{name}_res.md" for name in names]
        return self._subagent.write_message(f"{self._stamp}_orchestrator.md", _format_orchestrator(requests, responses))

    async def _wake_subagent(self) -> None:
        """Open the workspace in the editor and wait for its agent. Raises TargetError (unreachable)."""
        workspace = str(self._subagent.workspace)
        if await self._is_open():
            await self._call_editor(workspace)
            return
        self._subagent.prepare_wakeup()
        await self._call_editor(workspace)
        words = f"create a file named .alive in the {self._subagent.name} folder"
        await self._call_editor("-r", "chat", "-m", "wakeup", words)
        until = time.monotonic() + self._limits.alive_s
        while not self._subagent.awake:
            if time.monotonic() > until:
                what = f"VS Code did not respond in {self._subagent.path} within {self._limits.alive_s:g} s"
                raise build_program_error(what, "open it there and sign in to its chat")
            await asyncio.sleep(self._limits.poll_s)

    async def _is_open(self) -> bool:
        """Whether the editor reports that this workspace is open; without a report, it is not."""
        try:
            finished = await self._run_editor(("--status",), self._limits.status_s)
        except ProcessError:
            return False
        name = rf"(?<![\w-]){re.escape(self._subagent.name)}(?![\w-])"
        return finished.code == 0 and re.search(name, finished.stdout.to_text()) is not None

    async def _call_editor(self, *arguments: str) -> None:
        """Call the editor's program once. Raises TargetError (unreachable)."""
        try:
            finished = await self._run_editor(arguments, self._limits.call_s)
        except ProcessError as error:
            raise build_program_error(f"VS Code could not be run: {error.message}") from error
        if finished.timed_out or finished.code != 0:
            how = f"took more than {self._limits.call_s:g} s" if finished.timed_out else finished.ending
            words = finished.stderr.format_last_line(500) or finished.stdout.format_last_line(500)
            hint = self._editor.withheld.find_hint("", words)
            what = f"VS Code's program {how}{f': {words}' if words else ''}{f'; {hint}' if hint else ''}"
            raise build_program_error(what)

    async def _run_editor(self, arguments: tuple[str, ...], limit_s: float) -> FinishedProgram:
        editor, line = self._editor, (self._program, *arguments)
        return await run(
            Command(
                line,
                self._subagent.path,
                editor.environment,
                timeout_s=limit_s,
                max_output=1_000_000,
                mask=editor.mask,
            )
        )

    async def _wait_for_replies(self, names: Sequence[str], started: float) -> tuple[PromptReply, ...]:
        """Wait until every response has arrived, or the time for all of them is over."""
        limit_s = self._limits.response_s * len(names)
        replies: dict[str, PromptReply] = {}
        while True:
            seconds = time.perf_counter() - started
            open_names = [name for name in names if name not in replies]
            new_replies = {name: self._read_reply(f"{name}_res.md", seconds) for name in open_names}
            replies |= {name: reply for name, reply in new_replies.items() if reply is not None}
            if len(replies) == len(names) or seconds > limit_s:
                break
            await asyncio.sleep(self._limits.poll_s)
        late = f"no response within {limit_s:g} s: missing"
        return tuple(
            replies.get(name)
            or PromptReply(None, reason=f"{late} {self._subagent.messages / f'{name}_res.md'}", timed_out=True)
            for name in names
        )

    def _read_reply(self, name: str, seconds: float) -> PromptReply | None:
        """Read a response file; None if it does not exist yet."""
        try:
            output = self._subagent.read_message(name, MAX_RESPONSE)
        except ProcessError as error:
            return PromptReply(None, seconds, f"the response is not valid: {error.message}")
        if output is None:
            return None
        if output.is_truncated:
            return PromptReply(None, seconds, f"the response is larger than {MAX_RESPONSE:,} bytes")
        return PromptReply(output.data.decode("utf-8-sig", "replace"), seconds)


def _format_request(document: str, unfinished: Path, response: Path) -> str:
    """Format a request: the prompt document, and the two files that the response goes through."""
    return f"""\
[[ ## task ## ]]

{document.strip()}

[[ ## response ## ]]

Hand over your answer as a file, in these two steps:

1. Write the complete answer to `{unfinished}`.
2. When that file is complete, and not before, rename it to `{response}`.

Only this file is read. What you say in the chat, and any other file you make, is not.
"""


def _format_orchestrator(requests: Sequence[Path], responses: Sequence[Path]) -> str:
    """Format several requests for one chat: each goes to a subagent that does not see the others."""
    listed = "\n".join(f"{number}. `messages/{path.name}`" for number, path in enumerate(requests, start=1))
    awaited = "\n".join(f"* `messages/{path.name}`" for path in responses)
    return f"""\
Every file in this list is a request of its own. Give each one to a new subagent with the #runSubagent tool: pass it
the file's path only, and do not open the files yourself, so that no request sees another.

{listed}

The work is done when all of these files exist:

{awaited}
"""
