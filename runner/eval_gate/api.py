"""Python API: `from eval_gate import evaluate` (docs/python.md).

The process belongs to the caller: no signal is handled, nothing is printed, and every error is a GateError.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from pydantic import JsonValue

from eval_gate.config.loader import FlagSource, load_config, load_eval_paths
from eval_gate.config.selection import Selection
from eval_gate.config.settings import SETTINGS
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.errors import PAGES, ExitCode, GateError, Problem, format_suggestion
from eval_gate.formats.discovery import find_partial_selection
from eval_gate.model.comparison import Outcome, Verdict
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import render
from eval_gate.reports.wording.problems import render_error
from eval_gate.reports.wording.progress import LogProgress
from eval_gate.session import evaluation
from eval_gate.session.evaluated_commit import find_git_facts
from eval_gate.session.session import Session, open_session
from eval_gate.struct import replace
from eval_gate.targets.base import Request
from eval_gate.targets.function import FunctionResult, FunctionTarget, TargetFunction

__all__ = ["Evaluation", "FunctionResult", "GateError", "Request", "TargetFunction", "evaluate", "evaluate_async"]

Paths: TypeAlias = str | Path | Sequence[str | Path]
_NO_TARGET_SETTINGS: Final[Mapping[str, JsonValue]] = dict.fromkeys(
    ("agentEndpoint", "agentFunction", "target", "provider", "model")
)
"""Every key that selects a target, without a value."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A finished run with its verdict, its stored files and its reports."""

    run: RunResult = field(repr=False)
    verdict: Verdict
    record: Path
    """The run's `run.json`: the baseline of the next one."""
    reports: tuple[Path, ...]
    """The paths of the requested reports, in the order of the request."""
    store_note: str | None
    """What was written into the store of baselines, or why nothing was; None without `store`."""
    _context: ReportContext = field(repr=False)

    @property
    def passed(self) -> bool:
        """Whether the gate passed."""
        return self.verdict.outcome is Outcome.PASSED

    @property
    def exit_code(self) -> ExitCode:
        """How `eval-gate run` would have ended: 0, 1, or 3 for an inconclusive verdict."""
        return self.verdict.exit_code

    @property
    def markdown(self) -> str:
        """The comment as it would be posted on a pull request."""
        return render("md", self.run, self._context)

    def __str__(self) -> str:
        """Return the summary as the command line prints it."""
        return render("console", self.run, self._context).rstrip()

    def _repr_markdown_(self) -> str:
        """Return the Markdown report that a notebook displays."""
        return self.markdown


def evaluate(  # noqa: PLR0913 (what a call of `eval-gate run` can say)
    evals: Paths | None = None,
    target: str | Mapping[str, JsonValue] | TargetFunction | None = None,
    *,
    baseline: str | Path | None = None,
    config: str | Path | None = None,
    cases: Sequence[str] = (),
    tags: Sequence[str] = (),
    tiers: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    **settings: object,
) -> Evaluation:
    """Run evals against a target, decide the verdict against a baseline, and write the results. Raises GateError.

    `target` is the URL of an agent, the name of a described target, a description, or a function that takes a `Request`
    and gives a text back (or `{"response": …, "toolCalls": […]}`); without it the configuration selects the target.
    `baseline` is an earlier run: its id, its file or folder, or `latest`. `config` is a configuration file, and every
    other keyword one of its settings: `fail_on=["regressions"]`, `concurrency=4`. `cases`, `tags` and `tiers` choose.
    `progress` gets a line about the progress of the run now and then, such as `print`.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        call = evaluate_async(
            evals,
            target,
            baseline=baseline,
            config=config,
            cases=cases,
            tags=tags,
            tiers=tiers,
            progress=progress,
            **settings,
        )
        return asyncio.run(call)
    with _add_error_notes():
        raise GateError("event-loop-running", "an event loop is already running", "use `await evaluate_async(…)`")


async def evaluate_async(  # noqa: PLR0913 (as above)
    evals: Paths | None = None,
    target: str | Mapping[str, JsonValue] | TargetFunction | None = None,
    *,
    baseline: str | Path | None = None,
    config: str | Path | None = None,
    cases: Sequence[str] = (),
    tags: Sequence[str] = (),
    tiers: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    **settings: object,
) -> Evaluation:
    """Run an evaluation as `evaluate` does, inside a running event loop such as a notebook's. Raises GateError."""
    with _add_error_notes():
        arguments = {"evals": [evals] if isinstance(evals, str | Path) else evals, "baseline": baseline}
        flags = _build_flags({key: value for key, value in arguments.items() if value is not None} | settings)
        selection = Selection(tuple(cases), tuple(tags), tuple(tiers))
        # a store may be on another machine
        file = Path(config) if config is not None else None
        session = await asyncio.to_thread(_open_session, flags, target, file, selection)
        stored_run = await evaluation.evaluate_session(session, LogProgress(progress or _ignore_progress))
        context = evaluation.build_report_context(session, stored_run)
        reports = evaluation.write_run_reports(session.config.output_requests, stored_run, context)
        note = await asyncio.to_thread(evaluation.store_baseline, session, stored_run)
        assert stored_run.run.verdict is not None
        return Evaluation(stored_run.run, stored_run.run.verdict, stored_run.result_path, reports, note, context)


def _open_session(
    flags: dict[str, JsonValue],
    target: str | Mapping[str, JsonValue] | TargetFunction | None,
    file: Path | None,
    selection: Selection,
) -> Session:
    twice = sorted(flags.keys() & _NO_TARGET_SETTINGS.keys()) if target is not None else []
    if twice:
        message = f"target and {SETTINGS[twice[0]].keyword} are both given: one run evaluates one target"
        raise GateError("conflicting-targets", message, "remove all but one")
    root = Path.cwd()
    config = load_config(
        flags | _build_target_settings(target), {}, file, flag_source=FlagSource(lambda row: row.keyword)
    )
    paths = find_partial_selection(config.evals, load_eval_paths({}, file), root) if "evals" in flags else ()
    return open_session(
        config,
        replace(selection, paths=paths),
        RunContext(
            root,
            os.environ,
            find_git_facts(os.environ, root),
            custom_target=FunctionTarget(target) if callable(target) else None,
            owns_process=False,
        ),
    )


def _build_target_settings(target: str | Mapping[str, JsonValue] | TargetFunction | None) -> dict[str, JsonValue]:
    """Build the settings that select this target and clear the targets of a configuration file."""
    if target is None:
        return {}
    if isinstance(target, str):
        return {**_NO_TARGET_SETTINGS, "agentEndpoint" if "://" in target else "target": target}
    if isinstance(target, Mapping):
        described = {"name": "agent", **target}
        return {**_NO_TARGET_SETTINGS, "targets": [described], "target": described["name"]}
    return dict(_NO_TARGET_SETTINGS)


def _build_flags(keywords: Mapping[str, object]) -> dict[str, JsonValue]:
    """Build settings by their keys from keywords. Raises GateError with every unknown one."""
    keys = {row.keyword: key for key, row in SETTINGS.items()}
    flags: dict[str, JsonValue] = {}
    problems: list[Problem] = []
    for name, value in keywords.items():
        try:
            flags[keys[name]] = _to_json_value(value)
        except KeyError:
            problems.append(Problem(f"unknown setting{format_suggestion(name, keys)}", field=name))
        except TypeError as error:
            problems.append(Problem(str(error), field=name))
    if problems:
        hint = f"see {PAGES}/cli.md for the settings, and write timeoutMs as timeout_ms"
        raise GateError("invalid-configuration", "the configuration is not valid", hint, problems=problems)
    return flags


def _to_json_value(value: object) -> JsonValue:
    """Convert a Python value to the value that a configuration file would hold."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case os.PathLike():
            return str(os.fspath(value))
        case list() | tuple():
            return [_to_json_value(member) for member in value]
        case Mapping():
            return {str(key): _to_json_value(member) for key, member in value.items()}
    raise TypeError(f"has the type {type(value).__name__}, which no setting can have")


def _ignore_progress(_line: str) -> None:
    """Drop a line of progress."""


@contextmanager
def _add_error_notes() -> Iterator[None]:
    """Add the code, places and hint of a GateError to it as a note: a traceback otherwise shows only its message."""
    try:
        yield
    except GateError as error:
        error.add_note("\n".join(render_error(error)))
        raise
