"""`eval-gate draft`: writes draft cases from a target's responses, and lets a person review them."""

from __future__ import annotations

import typer

from eval_gate.cli import options
from eval_gate.config.setting import Panel

USED = (
    *("agentEndpoint", "agentProtocol", "agentFunction", "target", "targets", "provider", "model", "baseUrl"),
    *(
        "systemPromptPath",
        "judge",
        "simulatedUser",
        "concurrency",
        "waitFor",
        "maxRetries",
        "requestsPerMinute",
        "passEnv",
    ),
    *("toolRegistryPath", "timeoutMs", "maxCostUsd", "keepResponses", "outputDir"),
)
COMMON = (
    *("output", "file_format", "trials", "agentEndpoint", "agentFunction", "target", "targets", "judge"),
    *("toolRegistryPath", "config"),
    *("from_log", "from_traces", "from_results", "proxy", "review", "accept", "drop", "update", "yes"),
)
_SOURCE = "Sources"
_REVIEW = "Review"


def draft(
    context: typer.Context,
    files: list[str] | None = options.argument(
        "QUESTIONS", "Text file with one question a line; for a review or an update, eval files.", default=None
    ),
    config: str | None = options.CONFIG,
    *,
    output: str | None = options.option(
        "New eval file to write.", "--output", "-o", metavar="FILE", panel=Panel.OUTPUT
    ),
    file_format: str = options.option(
        "Format of the eval file: tool-forge or agentv.",
        "--format",
        default="tool-forge",
        metavar="FORMAT",
        panel=Panel.OUTPUT,
    ),
    from_log: str | None = options.option(
        "Log of conversations to draft from, as JSON lines.", metavar="FILE", panel=_SOURCE
    ),
    fields: list[str] | None = options.option(
        "Path of a part in each entry of the log, such as question=request.text. Repeatable.",
        "--field",
        metavar="NAME=PATH",
        panel=_SOURCE,
    ),
    from_traces: str | None = options.option(
        "OpenTelemetry traces of an agent to draft from, as OTLP JSON.", metavar="FILE", panel=_SOURCE
    ),
    from_results: list[str] | None = options.option(
        "Results of another tool to draft from, as `check` reads them. Repeatable.", metavar="FILE", panel=_SOURCE
    ),
    proxy: int | None = options.option(
        "Port of a proxy that records what a client asks the agent, until you stop it.",
        metavar="PORT",
        panel=_SOURCE,
        min=1,
        max=65535,
    ),
    turns: bool = options.option(
        "Lines of questions without a blank line between them are the turns of a conversation.",
        "--turns",
        default=False,
        panel=_SOURCE,
    ),
    review: bool = options.option(
        "Show each draft with its responses, to accept, edit or drop it.", "--review", default=False, panel=_REVIEW
    ),
    accept: list[str] | None = options.option("Draft to accept, or all. Repeatable.", metavar="CASE", panel=_REVIEW),
    drop: list[str] | None = options.option("Draft to remove, or all. Repeatable.", metavar="CASE", panel=_REVIEW),
    update: list[str] | None = options.option(
        "Case whose expectations are taken from what the target does now. Repeatable.", metavar="CASE", panel=_REVIEW
    ),
    yes: bool = options.option("Write an update without asking.", "--yes", default=False, panel=_REVIEW),
    trials: int = options.option(
        "Number of executions of each question.", default=3, metavar="N", panel=Panel.RUN, min=1, max=100
    ),
    resume: str | None = options.option("Id of interrupted questions to continue.", metavar="RUN_ID", panel=Panel.RUN),
    **settings: object,
) -> None:
    """Write draft cases from what a target answers, for you to review.

    Asks the target each question three times and writes a case with what was the same each time: tools, parameters,
    and the words that carry the answer. Drafts never gate: a run skips them by name until you accept them.

      eval-gate draft questions.txt -o evals/first.golden.json --agent-endpoint http://127.0.0.1:8000/chat

      eval-gate draft --review evals/first.golden.json

    It asks nothing that is not in the file. Other sources are a log, traces, results of another tool, and a proxy.

    Exit codes: 0 written, 2 usage or configuration error (nothing was asked), 3 no question got a response, 130 and 143
    interrupted (finished executions are stored).
    """
    from pathlib import Path

    from eval_gate.cli.repository.draft_call import DraftCall, DraftMode

    call = DraftCall(
        files=tuple(files or ()),
        flags=options.select_given_settings(settings) | {"trials": trials},
        config_file=Path(config) if config else None,
        verbosity=context.obj,
        output=Path(output) if output else None,
        format=file_format,
        from_log=Path(from_log) if from_log else None,
        from_traces=Path(from_traces) if from_traces else None,
        from_results=tuple(map(Path, from_results or ())),
        fields=tuple(fields or ()),
        port=proxy,
        is_review=review,
        accept=options.split_commas(accept),
        drop=options.split_commas(drop),
        update=options.split_commas(update),
        assume_yes=yes,
        has_turns=turns,
        resume=resume,
    )
    match call.mode:
        case DraftMode.REVIEW:
            from eval_gate.cli.repository.draft_review import review_drafts

            code = review_drafts(call)
        case DraftMode.DECIDE:
            from eval_gate.cli.repository.draft_review import decide_drafts

            code = decide_drafts(call)
        case DraftMode.UPDATE:
            from eval_gate.cli.repository.draft_update import update_cases

            code = update_cases(call)
        case mode:
            from eval_gate.cli.repository.draft_writing import write_drafts

            code = write_drafts(call, mode)
    raise typer.Exit(code)
