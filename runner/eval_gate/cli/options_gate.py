"""Options about the verdict: how sure a regression has to be, and what else fails the gate."""

from __future__ import annotations

from typing import Annotated

import typer

_VERDICT = "The verdict"

Confirm = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Run a case that looks regressed up to N more times, until the evidence decides.  [default: 0]",
        rich_help_panel=_VERDICT,
    ),
]
ErrorRate = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        help="Accepted chance of a regression where nothing changed, with --confirm.  [default: 0.05]",
        rich_help_panel=_VERDICT,
    ),
]
MustPass = Annotated[
    list[str] | None,
    typer.Option(
        "--must-pass",
        metavar="GLOB",
        help="Cases that must pass whatever their record; tag:NAME for all with a tag. Repeatable.",
        rich_help_panel=_VERDICT,
    ),
]
AllowedRegressions = Annotated[
    int | None,
    typer.Option(metavar="N", help="Regressions that do not fail the gate.  [default: 0]", rich_help_panel=_VERDICT),
]
MinCoverage = Annotated[
    float | None,
    typer.Option(metavar="X", help="Least share of all cases that are judged, 0..1.", rich_help_panel=_VERDICT),
]
MaxLatencyIncrease = Annotated[
    float | None,
    typer.Option(
        metavar="PCT", help="Percent that the typical case may take longer than then.", rich_help_panel=_VERDICT
    ),
]
MaxCostIncrease = Annotated[
    float | None,
    typer.Option(
        metavar="PCT", help="Percent that the typical case may cost more than then.", rich_help_panel=_VERDICT
    ),
]
MaxTokenIncrease = Annotated[
    float | None,
    typer.Option(metavar="PCT", help="Percent of tokens that the typical case may use more.", rich_help_panel=_VERDICT),
]
Accepted = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Accepted failures and quarantine.  [default: .eval-gate/accepted.yaml if it exists]",
        rich_help_panel=_VERDICT,
    ),
]
