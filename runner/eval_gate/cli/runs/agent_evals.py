"""`eval-gate agent-evals`: the Agent Evals command line, with its reports and exit codes."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import typer

from eval_gate.cli import options
from eval_gate.cli.terminal.help import PlainCommand
from eval_gate.config.setting import Panel
from eval_gate.text.quoting import quote_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

_SUITES, _TARGET, _OUTPUT = Panel.RUN, Panel.TARGET, Panel.OUTPUT
_FLAGS: Final = ("--all", "--verbose", "--quiet")


class ReportKind(StrEnum):
    """Formats of the report to write."""

    JSON = "json"
    MD = "md"
    BOTH = "both"

    @property
    def endings(self) -> tuple[str, ...]:
        """The endings of the files."""
        return ("json", "md") if self is ReportKind.BOTH else (self.value,)


class AgentEvalsCommand(PlainCommand):
    """Command that accepts the original's arguments: a lone `--`, and flags with a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the normalized arguments, and return the arguments that are left over."""
        return super().parse_args(ctx, [word for argument in args for word in _normalize_argument(argument, ctx)])


def _normalize_argument(argument: str, context: Any) -> list[str]:
    """Normalize an argument: drop `--`, turn `--all=true` into `--all`, drop `--all=false`."""
    name, equals, value = argument.partition("=")
    if argument == "--" or not equals or name not in _FLAGS:
        return [] if argument == "--" else [argument]
    if value not in {"true", "false"}:
        context.fail(f"{name} must be true or false, not {quote_value(value)}")
    return [name] if value == "true" else []


def agent_evals(
    context: typer.Context,
    suite: str | None = options.option("Name of the suite to run, without .json.", metavar="NAME", panel=_SUITES),
    every: bool = options.option(
        "Run all suites of the folder, whatever --suite.", "--all", default=False, panel=_SUITES
    ),
    suites_dir: str = options.option("Folder with the suites.", default="suites", metavar="DIR", panel=_SUITES),
    tags: list[str] | None = options.option(
        "Tag of the cases to run. Repeatable.", "--tag", metavar="TAG", panel=_SUITES
    ),
    target: list[str] | None = options.option(
        "Name of the target to evaluate, from --targets. Repeatable, for a table of targets.",
        metavar="NAME",
        panel=_TARGET,
    ),
    targets: str | None = options.option("YAML file that describes targets.", metavar="FILE", panel=_TARGET),
    model: list[str] | None = options.option(
        "Model to use, also as provider:model. Repeatable, for a table of models.  [default: gpt-5-mini]",
        metavar="NAME",
        panel=_TARGET,
    ),
    provider: str | None = options.option(
        "Provider of the model: openai, openai-compatible, azure, anthropic, gemini.  [default: openai]",
        metavar="NAME",
        panel=_TARGET,
    ),
    base_url: str | None = options.option(
        "URL of the provider's API.  [default: the vendor's]", metavar="URL", panel=_TARGET
    ),
    report: ReportKind = options.option("Formats of the report.", "--report", default=ReportKind.JSON, panel=_OUTPUT),
    output: str = options.option(
        "Folder for results, below --tmp-dir.", "--out", default="agent-evals", metavar="PATH", panel=_OUTPUT
    ),
    tmp_dir: str = options.option(
        "Folder in which the agents' tools work.", default="tmp", metavar="DIR", panel=_OUTPUT
    ),
) -> None:
    """Run Agent Evals suites of agents with file tools, and report PASS, FAIL or ERROR for each case.

    Choose the suites with --suite NAME or --all. A suite is a file NAME.json in --suites-dir. All files are checked
    before the first case runs. Cases run one at a time, each in a new conversation, with OpenAI's gpt-5-mini
    (OPENAI_API_KEY) unless you choose another model or target. The agents' tools work in TMP-DIR itself: they see the
    files in it, and the files that they write stay.

    Reports are written to TMP-DIR/OUT/reports/report-TIME.json and .md, the complete run result to TMP-DIR/OUT. With
    --verbose, every failed assertion shows the expected and the actual value. This command reads no configuration file;
    `eval-gate run suites/*.json` runs the same suites as part of a gate.

    Exit codes: 0 all cases passed, 1 a case failed, has no score or is skipped because of a mistake, 2 an argument or
    a suite is invalid (nothing ran), 3 the results cannot be written, 130 and 143 interrupted (finished cases are
    stored).

    \b
    Examples:
      eval-gate agent-evals --suite example
      eval-gate agent-evals --all --report both --verbose
      eval-gate agent-evals --all --model gpt-5-mini --model gpt-5
    """
    from pathlib import Path

    from eval_gate.cli.runs.agent_evals_run import SuitesCall, find_suite_files, run_suites, split_output_path
    from eval_gate.errors import GateError

    if suite is None and not every:
        raise GateError(
            "missing-suites", "--suite NAME or --all is required", "add --all to run every suite of the folder"
        )
    call = SuitesCall(
        suites=find_suite_files(None if every else suite, Path(suites_dir)),
        tmp=Path(tmp_dir),
        output=split_output_path(output),
        kinds=report.endings,
        target_settings=build_target_settings(target or (), targets, model or (), provider, base_url),
        tags=tuple(tags or ()),
        verbosity=context.obj,
    )
    raise typer.Exit(run_suites(call))


def build_target_settings(
    target: Sequence[str], targets: str | None, model: Sequence[str], provider: str | None, base_url: str | None
) -> Mapping[str, Mapping[str, JsonValue]]:
    """Build the run settings of each chosen target or model, by name.

    If nothing is chosen, the suites decide: the result is one entry without settings. Raises GateError if the
    choices contradict each other.
    """
    from eval_gate.cli.runs.target_matrix import check_target_names
    from eval_gate.errors import GateError
    from eval_gate.model.agent import SUITE_MODEL

    check_target_names([*target, *model])
    if target and (model or provider or base_url):
        raise GateError(
            "conflicting-targets",
            "--target cannot be combined with --model, --provider or --base-url",
            "omit one of them",
        )
    if targets is not None and not target:
        raise GateError(
            "missing-target", "--targets needs --target, to choose a target of the file", "add --target NAME"
        )
    if target:
        listed: dict[str, JsonValue] = {"targets": targets} if targets is not None else {}
        return {name: listed | {"target": name} for name in target}
    if provider or base_url:
        model = model or (SUITE_MODEL,)
    return {name: _build_model_settings(name, provider, base_url) for name in model} or {"": {}}


def _build_model_settings(name: str, provider: str | None, base_url: str | None) -> dict[str, JsonValue]:
    """Build the run settings of a model, from OpenAI unless `provider` or the model's name says otherwise."""
    settings: dict[str, JsonValue] = {"model": name}
    if provider is not None or ":" not in name:
        settings["provider"] = provider or "openai"
    return settings | ({"baseUrl": base_url} if base_url is not None else {})
