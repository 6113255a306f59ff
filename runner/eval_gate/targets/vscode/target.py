"""VS Code chat as a target (agentv spec, "VS Code provider")."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from eval_gate.config.settings import TargetChoice
from eval_gate.errors import GateError
from eval_gate.files.file_paths import format_path
from eval_gate.model.conversation import Response
from eval_gate.model.setup import TargetIdentity
from eval_gate.process.environment import WithheldVariables, filter_environment
from eval_gate.targets.base import DescribedTarget, Request, TargetError, TargetFault
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.coding_agent import (
    ATTACHMENT_FILES,
    build_prompt,
    create_file,
    list_linked_files,
    refuse_missing_file,
)
from eval_gate.targets.deadline import pause_case_clock
from eval_gate.targets.settings import (
    AGENT_PLACE,
    AGENT_SETTING,
    LONGEST_S,
    NoEffect,
    Place,
    ProgramSettings,
)
from eval_gate.targets.vscode.dispatcher import (
    Dispatcher,
    Editor,
    PromptFile,
    PromptReply,
    VscodeLimits,
)
from eval_gate.text.redaction import Redactor

PROMPTS_FOLDER: Final = ".agentv/logs/vscode"
"""Folder for the prompts of a dry run, relative to the root of the run."""
_DESKTOP_VARIABLES: Final = (
    *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"),
    *("VSCODE_IPC_HOOK_CLI", "WSL_DISTRO_NAME", "WSL_INTEROP"),
)
"""Variables by which the program finds the desktop, or the window that called it."""
_MAX_TROUBLE: Final = 10
DEFAULT_TIMEOUT_S: Final = 600


def _check_wait(wait: bool) -> bool:  # noqa: FBT001 (a setting)
    if not wait:
        raise ValueError("false leaves every case without a response: leave it out")
    return wait


class VscodeSettings(ProgramSettings):
    """Settings of a VS Code target. Paths are relative to the root of the run; `~` is the home folder."""

    other_names: ClassVar[Mapping[str, str]] = {"command": "vscodeCmd"}

    provider: Literal["vscode", "vscode-insiders"] = "vscode"
    vscode_cmd: Annotated[Place | None, AGENT_PLACE] = Field(
        default=None, description="Program to start; code or code-insiders by default."
    )
    wait: Annotated[bool, AfterValidator(_check_wait)] = Field(
        default=True, description="Only true: without a response there is nothing to evaluate."
    )
    dry_run: bool = Field(default=False, description="Write the prompts without starting VS Code or evaluating.")
    subagent_root: Place | None = Field(
        default=None, description="Folder of the subagents; by default ~/.subagent/vscode-agents."
    )
    workspace_template: Annotated[Place | None, AGENT_SETTING] = Field(
        default=None, description="A .code-workspace file as template for the subagent's."
    )
    timeout_seconds: float = Field(default=DEFAULT_TIMEOUT_S, gt=0, le=LONGEST_S)
    workers: Annotated[int | None, NoEffect("it is one at a time, whatever is written")] = Field(
        default=None, ge=1, le=1000, description="Ignored: always one at a time."
    )
    provider_batching: bool = Field(default=False, description="Send all cases of a file in one chat.")

    @property
    def command(self) -> str:
        """The program, by name or path."""
        return self.vscode_cmd or ("code-insiders" if self.provider == "vscode-insiders" else "code")

    @property
    def subagents(self) -> str:
        """The folder with the subagents, as it is written."""
        folder = "vscode-insiders-agents" if self.provider == "vscode-insiders" else "vscode-agents"
        return self.subagent_root or f"~/.subagent/{folder}"


class VscodeTarget(DescribedTarget[VscodeSettings]):
    """Target that uses one VS Code subagent at a time, or sends all cases of a file in one chat."""

    workspace_problem = "works in folders of its own (VS Code)"
    conversation_problem = "it begins a new chat for every message, and a chat cannot be continued (VS Code)"

    def __init__(
        self,
        settings: VscodeSettings,
        *,
        root: Path,
        environment: Mapping[str, str],
        redact: Redactor,
        dispatcher: Dispatcher | None = None,
    ) -> None:
        super().__init__(settings)
        self.workers = 1  # there is one window of VS Code
        self.timeout_ms = settings.timeout_seconds * 1000
        self.batches = settings.provider_batching
        self._root = root
        self._dispatcher = dispatcher or _build_dispatcher(settings, root, environment, redact)
        self._turn = asyncio.Lock()
        self._trouble: list[str] = []

    @property
    def identity(self) -> TargetIdentity:
        """The program of VS Code."""
        settings = self._settings
        command = f"{settings.provider}:{settings.command}"
        return TargetIdentity(name=settings.name, provider=settings.provider, identity=command)

    @property
    def notices(self) -> tuple[str, ...]:
        """That cases are sent one at a time, that a dry run sends none, and which cases of a batch failed."""
        settings = self._settings
        forced = f"workers: {settings.workers} is not possible with {settings.provider}: one case is sent at a time"
        return (
            *((forced,) if (settings.workers or 1) > 1 else ()),
            *(("dryRun: VS Code is not called, and no case is evaluated",) if settings.dry_run else ()),
            *self._trouble[:_MAX_TROUBLE],
        )

    async def check_health(self) -> None:
        """Raise TargetError when VS Code, its subagents or the template are missing."""
        await self._dispatcher.check(dry_run=self._settings.dry_run)

    async def respond(self, request: Request) -> Response:
        """Send one case and wait for its response. Raises TargetError."""
        if self._settings.dry_run:
            return await self._rehearse_request(request)
        (reply,) = await self._dispatch_requests([request])
        return self._build_response(request, reply)

    async def respond_batch(self, requests: Sequence[Request]) -> Mapping[str, Response]:
        """Send all cases in one chat. Cases without a response are missing, and notices say why. Raises TargetError."""
        if self._settings.dry_run:
            return {request.case_id: await self._rehearse_request(request) for request in requests}
        answers, broken = {}, []
        for request, reply in zip(requests, await self._dispatch_requests(requests), strict=True):
            try:
                answers[request.case_id] = self._build_response(request, reply)
            except TargetError as error:
                broken.append(error)
                self._trouble.append(f"case {request.case_id[:80]} within a batch: {error.message}")
        if broken and not answers:
            raise broken[0]
        return answers

    async def _dispatch_requests(self, requests: Sequence[Request]) -> tuple[PromptReply, ...]:
        prompts = [
            PromptFile(build_prompt(request, ATTACHMENT_FILES), list_linked_files(request)) for request in requests
        ]
        with pause_case_clock():
            await self._turn.acquire()
        try:
            return await self._dispatcher.dispatch(prompts)
        finally:
            self._turn.release()

    def _build_response(self, request: Request, reply: PromptReply) -> Response:
        if reply.text is None:
            fault = TargetFault.LATE if reply.timed_out else TargetFault.REFUSED
            raise TargetError(reply.reason, fault=fault)
        refuse_missing_file(request, reply.text)
        return Response(text=reply.text, duration_ms=reply.seconds * 1000, tool_calls_known=False)

    async def _rehearse_request(self, request: Request) -> Response:
        """Write the prompt to a file instead of sending it."""
        await self.check_health()
        return Response(
            text="", dry_run=True, tool_calls_known=False, warnings=(f"the prompt is in {self._write_prompt(request)}",)
        )

    def _write_prompt(self, request: Request) -> str:
        words = (self._settings.name, request.case_id)
        try:
            file, path = create_file(self._root / PROMPTS_FOLDER, words, ".md")
            with file:
                file.write(build_prompt(request, ATTACHMENT_FILES).encode("utf-8", "replace"))
        except (OSError, GateError) as error:
            why = error.message if isinstance(error, GateError) else error.strerror
            what = f"the prompt cannot be written to {PROMPTS_FOLDER}: {why}"
            raise TargetError(what, fault=TargetFault.NOT_SENT) from error
        return format_path(path, self._root)


def build(settings: VscodeSettings, choice: TargetChoice, context: BuildContext) -> VscodeTarget:
    """Build the VS Code target without looking for the editor or opening it."""
    return VscodeTarget(settings, root=context.root, environment=context.environment, redact=context.redact)


def _build_dispatcher(
    settings: VscodeSettings, root: Path, environment: Mapping[str, str], redact: Redactor
) -> Dispatcher:
    desktop = {name: environment[name] for name in _DESKTOP_VARIABLES if name in environment}
    variables = filter_environment(environment, {**desktop, **settings.env.open()})
    editor = Editor(
        settings.command, root, variables, redact.mask_bytes, WithheldVariables.from_environment(environment, variables)
    )
    home = Path(environment.get("HOME") or "/")
    template = _resolve_path(settings.workspace_template, root, home) if settings.workspace_template else None
    return Dispatcher(
        editor, _resolve_path(settings.subagents, root, home), template, VscodeLimits(settings.timeout_seconds)
    )


def _resolve_path(path: str, root: Path, home: Path) -> Path:
    """Resolve a path of a description; `~` is the home folder."""
    return home / path[2:] if path.startswith("~/") else root / path
