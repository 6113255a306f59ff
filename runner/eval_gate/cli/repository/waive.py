"""`eval-gate waive CASE…`: waives a known failure for a limited time in the waiver file."""

from __future__ import annotations

import typer

from eval_gate.cli import options


def waive(
    context: typer.Context,
    cases: list[str] = typer.Argument(..., metavar="CASE", help="Case ids, or globs over whole ids."),
    reason: str = options.option("Reason for the waiver, up to 500 characters.", default=..., metavar="TEXT"),
    until: str = options.option(
        "Last day of the waiver: a date such as 2026-12-31, or days from today, 90d at most.",
        default=...,
        metavar="DATE",
    ),
    suite: str | None = options.option("Eval files whose cases are waived.  [default: all]", metavar="GLOB"),
    quarantine: bool = options.option(
        "Quarantine a flaky case: it runs, and its result never counts.", "--quarantine", default=False
    ),
    owner: str | None = options.option("Owner of the waiver.", metavar="NAME"),
    file: str | None = options.option(
        "Waiver file to write.  [default: the configuration's, or .eval-gate/waivers.yaml]", metavar="FILE"
    ),
    config: str | None = options.CONFIG,
    output_dir: str | None = options.option(
        "Folder of results in which to find the cases.  [default: evals/results]", metavar="DIR"
    ),
) -> None:
    """Waive the failure of cases until a date: they still run and are shown, and do not fail the gate.

    Adds an entry for each case to the file that `eval-gate run` and the action read, and keeps everything else in the
    file. Renews an entry that has ended; an entry that is still valid is an error. Then shows what the entries cover in
    the newest run. Review and commit the file like any other:
    https://github.com/eval-gate/eval-gate/blob/main/docs/waivers.md.

      eval-gate waive refund/partial --reason "the new tool is slower, #481" --until 14d

      eval-gate waive "faq/opening-*" --quarantine --reason "the judge is flaky" --until 2026-12-31 --owner Kim

    Exit codes: 0 written, 2 invalid (nothing was written).
    """
    from eval_gate.cli.repository.new_waivers import WaiverPaths, write_waivers
    from eval_gate.gate.waivers.waiver_edit import WaiverRequest
    from eval_gate.model.waiver import WaiverKind

    kind = WaiverKind.QUARANTINE if quarantine else WaiverKind.WAIVER
    places = WaiverPaths.from_options(file, config, output_dir)
    write_waivers(WaiverRequest(kind, tuple(dict.fromkeys(cases)), reason, until, suite, owner), places, context.obj)
