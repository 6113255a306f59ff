"""Hooks: commands and requests that prepare a workspace or an agent for cases, and clean up after them.

Commands run as graders that are programs do: without secrets, as the same user. A request to the target's own host has
the headers of the target, and one to another address has only its own.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeAlias
from urllib.parse import quote

from eval_gate.engine.run_plan import RunPlan
from eval_gate.evaluators.base import EvaluatorError
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalCase, HookName, WorkspaceHook, WorkspaceHooks
from eval_gate.model.execution import ErrorCause
from eval_gate.process.environment import WithheldVariables
from eval_gate.process.misplaced_files import find_path_hint
from eval_gate.process.run import Command, ProcessError, run
from eval_gate.struct import FrozenStruct, field
from eval_gate.targets.agent_address import ContainerProbe, resolve_host
from eval_gate.targets.base import Origin, Target, TargetError
from eval_gate.targets.http.connection import Connection, ConnectionLostError, HttpRequest, ResponseLimits, read_head
from eval_gate.targets.http.request_builder import parse_address
from eval_gate.text.escape import to_one_line
from eval_gate.text.json_values import map_texts
from eval_gate.text.redaction import Redactor
from eval_gate.text.untrusted.surrogates import to_well_formed

_MAX_QUOTED: Final = 300
_VARIABLE: Final = re.compile(r"\{\{(\w+)\}\}")
_RESPONSE: Final = ResponseLimits(limits.HOOK_BYTES, frozenset())
_encode: Final = partial(quote, safe="")
_Values: TypeAlias = Mapping[str, JsonValue]


class PreparationError(EvaluatorError):
    """A hook that failed, or a workspace that cannot be made: an evaluation error, never an agent error."""

    error_cause = ErrorCause.NOT_SENT


class HookError(PreparationError):
    """A hook that failed."""

    error_cause = ErrorCause.HOOK_FAILED


class UnreachableAgentError(HookError):
    """A hook whose request did not reach the agent, so that no case would."""


class HookRunner(FrozenStruct):
    """Runner of the hooks of one run."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """All the variables that a hook gets."""
    withheld: WithheldVariables = field(default_factory=WithheldVariables)
    redactor: Redactor = field(default_factory=Redactor)
    run_id: str = ""

    @classmethod
    def from_plan(cls, plan: RunPlan) -> Self:
        """Build the runner of a planned run."""
        return cls(plan.environment, plan.withheld, plan.redactor, plan.run_id)

    async def run(
        self, name: HookName, hooks: WorkspaceHooks, case: EvalCase | None, folder: Path | None, target: Target | None
    ) -> None:
        """Run the hooks of this name for `case`, or with None for all that share them. Raises HookError."""
        values = _build_input(name, folder, self.run_id, case)
        usual_s = limits.HOOK_CLEANUP_S if name.startswith("after") else limits.HOOK_PREPARATION_S
        for hook in getattr(hooks, name):
            label = f"the hook {hook.place}" if hook.place else f"the {name} hook"
            limit_s = usual_s if hook.timeout_ms is None else hook.timeout_ms / 1000
            if hook.request:
                label += f" ({to_one_line(hook.request.partition('?')[0])})"
                await self._send(label, hook, values, limit_s, target)
            else:
                await self._run_command(label, hook, values, limit_s)

    async def _run_command(self, label: str, hook: WorkspaceHook, values: _Values, limit_s: float) -> None:
        command = Command(
            tuple(_fill_in(word, values) for word in hook.command),
            Path(hook.cwd),
            self.environment,
            stdin=json.dumps(values).encode(),
            timeout_s=limit_s,
            max_output=limits.HOOK_BYTES,
            max_errors=limits.HOOK_BYTES,
            mask=self.redactor.mask_bytes,
        )
        try:
            finished = await run(command)
        except ProcessError as error:
            hint = find_path_hint(command.line, command.cwd)
            raise HookError(f"{label} could not be run: {error.message}{f'; {hint}' if hint else ''}") from error
        words = finished.stderr.format_last_line(_MAX_QUOTED)
        quoted = f": {words}" if words else ""
        if finished.timed_out:
            raise HookError(f"{label} did not end within {limit_s:g} s{quoted}")
        if finished.code:
            hint = self.withheld.find_hint(" ".join(hook.command), quoted) or find_path_hint(command.line, command.cwd)
            raise HookError(f"{label} {finished.ending}{quoted}{f'; {hint}' if hint else ''}")

    async def _send(
        self, label: str, hook: WorkspaceHook, values: _Values, limit_s: float, target: Target | None
    ) -> None:
        origin = target.origin if target is not None and hook.is_for_target else None
        if hook.is_for_target and origin is None:
            raise HookError(f"{label} needs a target of provider http, because it is a path at its host")
        request = _build_request(hook, values, origin)
        connection = Connection(self.redactor, _RESPONSE, 1, secure=request.url.scheme == "https")
        try:
            async with asyncio.timeout(limit_s), connection.open_response(request) as response:
                head = read_head(response)  # the body of a success says nothing
                if not head.is_success:
                    raise connection.build_status_error(head, await connection.read_body(response, head), request)
        except TargetError as error:
            raise HookError(f"{label} failed: {error.message.removeprefix('agent error: ')}") from error
        except (TimeoutError, ConnectionLostError) as error:
            why = f"no response within {limit_s:g} s"
            if isinstance(error, ConnectionLostError):
                why = f"no connection: {connection.describe_error(error)}"
            raise (UnreachableAgentError if origin else HookError)(f"{label} failed: {why}") from error
        finally:
            await connection.aclose()


def _build_request(hook: WorkspaceHook, values: _Values, origin: Origin | None) -> HttpRequest:
    """Build the request with its variables filled in. `origin` is None for a whole URL."""
    method, _, address = hook.request.partition(" ")
    place, target_headers = origin or ("", {})
    url = parse_address(place + _fill_in(address, values, _encode))
    headers = {name: text for name, text in target_headers.items() if name != "content-type"} | {"accept": "*/*"}
    content = None
    if hook.body is not None:
        headers["content-type"] = "application/json"
        content = json.dumps(map_texts(hook.body, lambda text: _fill_in(text, values))).encode()
    headers |= {name.lower(): _fill_in(text, values, _encode) for name, text in hook.headers.items()}
    url = url if origin else url.with_host(resolve_host(url.host or "", ContainerProbe()))
    return HttpRequest(method, url, headers, content, is_repeatable=False)


def _build_input(name: str, workspace: Path | None, run_id: str, case: EvalCase | None) -> dict[str, JsonValue]:
    """Build the input of a hook: its standard input, and the values for its command."""
    brief = None if case is None else case.brief
    return {
        "workspace_path": None if workspace is None else str(workspace),
        "test_id": f"__{name}__" if case is None else case.id,
        "eval_run_id": run_id,
        "case_input": None if brief is None else brief.question,
        "case_metadata": None if brief is None else brief.metadata,
    }


def _fill_in(word: str, values: _Values, encode: Callable[[str], str] = str) -> str:
    """Fill in the variables of a word, each encoded; unknown ones stay."""

    def replace_variable(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        value = values[match[1]]
        text = value if isinstance(value, str) else "" if value is None else json.dumps(value, separators=(",", ":"))
        return encode(to_well_formed(text))

    return to_well_formed(_VARIABLE.sub(replace_variable, word))
