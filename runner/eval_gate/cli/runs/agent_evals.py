"""`eval-gate agent-evals`: the Agent Evals command line, with its reports and exit codes."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from eval_gate.cli.terminal.help import CheckedCommand
from eval_gate.text.quoting import quote_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

_SUITES, _ANSWERS, _OUT = "Which suites", "Who answers", "What is written"
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


class AgentEvalsCommand(CheckedCommand):
    """Command that accepts the original's arguments: a lone `--`, and flags with a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the normalized arguments, and return the arguments that are left over."""
        return super().parse_args(ctx, [word for given in args for word in _normalize_argument(given, ctx)])


def _normalize_argument(given: str, context: Any) -> list[str]:
    """Normalize an argument: drop `--`, turn `--all=true` into `--all`, drop `--all=false`.

    Returns the words to parse. Ends in a usage error if such an option has any other value.
    """
    name, equals, value = given.partition("=")
    if given == "--" or not equals or name not in _FLAGS:
        return [] if given == "--" else [given]
    if value not in {"true", "false"}:
        context.fail(f"{name} is true or false, not {quote_value(value)}")
    return [name] if value == "true" else []


def agent_evals(
    context: typer.Context,
    suite: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The suite of this name, without .json.", rich_help_panel=_SUITES),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All suites of the folder; wins over --suite.", rich_help_panel=_SUITES)
    ] = False,
    suites_dir: Annotated[
        str, typer.Option(metavar="DIR", help="The folder of the suites.", rich_help_panel=_SUITES)
    ] = "suites",
    tags: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="Only cases with this tag. Repeatable.", rich_help_panel=_SUITES),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A target of --targets. Repeated: side by side.", rich_help_panel=_ANSWERS),
    ] = None,
    targets: Annotated[
        str | None, typer.Option(metavar="FILE", help="YAML file that describes targets.", rich_help_panel=_ANSWERS)
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Another model than gpt-5-mini; or provider:model. Repeated: side by side.",
            rich_help_panel=_ANSWERS,
        ),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="openai, openai-compatible, azure, anthropic, gemini.  [default: openai]",
            rich_help_panel=_ANSWERS,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The provider's API, if not the vendor's.", rich_help_panel=_ANSWERS),
    ] = None,
    report: Annotated[
        ReportKind, typer.Option("--report", help="Which reports to write.", rich_help_panel=_OUT)
    ] = ReportKind.JSON,
    out: Annotated[
        str, typer.Option(metavar="PATH", help="Where to, below --tmp-dir.", rich_help_panel=_OUT)
    ] = "agent-evals",
    tmp_dir: Annotated[
        str, typer.Option(metavar="DIR", help="The tmp/ of the suites, and of the reports.", rich_help_panel=_OUT)
    ] = "tmp",
) -> None:
    """Run Agent Evals suites: agents with file tools, each case with PASS, FAIL or ERROR, and a report.

    Either --suite NAME or --all says which. A suite is a file NAME.json in --suites-dir; every file is checked before
    the first case is run. Cases are run one at a time, each a fresh conversation, with OpenAI's gpt-5-mini
    (OPENAI_API_KEY) unless you choose who answers. The agents' tools work in TMP-DIR itself:
    what lies there is seen, and what they write stays.

    Reports are written to TMP-DIR/OUT/reports/report-TIME.json and .md, the complete record of the run beside that
    folder. --verbose says of every assertion that does not hold what was expected and what was seen. No configuration
    file is read; `eval-gate run suites/*.json` runs the same suites as part of a gate.

    Exit codes: 0 all cases passed, 1 a case failed or could not be judged, 2 an argument or a suite is wrong (nothing
    was run), 3 the results could not be written, 130 and 143 interrupted after writing what was done.

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
            "missing-suites", "either --suite NAME or --all is required", "--all runs every suite of the folder"
        )
    asked = SuitesCall(
        suites=find_suite_files(None if every else suite, Path(suites_dir)),
        tmp=Path(tmp_dir),
        out=split_output_path(out),
        kinds=report.endings,
        target_settings=build_target_settings(target or (), targets, model or (), provider, base_url),
        tags=tuple(tags or ()),
        verbosity=context.obj,
    )
    raise typer.Exit(run_suites(asked))


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
            "--target says who answers, and so do --model, --provider and --base-url",
            "leave one out",
        )
    if targets is not None and not target:
        raise GateError(
            "missing-target", "--targets describes targets, and none of them is chosen", "add --target NAME"
        )
    if target:
        listed: dict[str, JsonValue] = {"targets": targets} if targets is not None else {}
        return {name: listed | {"target": name} for name in target}
    if provider or base_url:
        model = model or (SUITE_MODEL,)
    return {name: _build_model_settings(name, provider, base_url) for name in model} or {"": {}}


def _build_model_settings(name: str, provider: str | None, base_url: str | None) -> dict[str, JsonValue]:
    """Build the run settings of a model.

    The provider is OpenAI, unless `provider` is given or the name of the model includes one.
    """
    given: dict[str, JsonValue] = {"model": name}
    if provider is not None or ":" not in name:
        given["provider"] = provider or "openai"
    return given | ({"baseUrl": base_url} if base_url is not None else {})
