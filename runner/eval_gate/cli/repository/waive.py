"""`eval-gate waive CASE…`: waives a known failure for a limited time in the waiver file."""

from __future__ import annotations

from typing import Annotated

import typer

from eval_gate.cli import options


def waive(
    context: typer.Context,
    cases: Annotated[list[str], typer.Argument(metavar="CASE", help="Case ids, or globs over whole ids.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, in words, up to 500 characters.")],
    until: Annotated[
        str,
        typer.Option(
            metavar="DATE", help="The last day on which it holds: 2026-12-31, or 14d from today; 90d at most."
        ),
    ],
    suite: Annotated[
        str | None, typer.Option(metavar="GLOB", help="Only cases of these eval files.  [default: all]")
    ] = None,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="The case is flaky: it is run and shown, and its result never counts.")
    ] = False,
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="Who answers for it.")] = None,
    file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The file.  [default: the configuration's, else .eval-gate/waivers.yaml]"),
    ] = None,
    config: options.Config = None,
    output_dir: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Results in which the cases are looked up.  [default: evals/results]"),
    ] = None,
) -> None:
    """Accept the failure of cases until a day: they are run and shown, and neither block nor count as failures.

    Writes an entry for each case into the file that `eval-gate run` and the action read, and keeps everything that is
    in it. An entry that has ended is renewed in its place; one that still holds is an error. Then says what this covers
    in the newest run. The file is reviewed and committed like any other:
    https://github.com/eval-gate/eval-gate/blob/v1/docs/waivers.md.

      eval-gate waive refund/partial --reason "the new tool answers later, #481" --until 14d

      eval-gate waive "faq/opening-*" --quarantine --reason "the judge wavers" --until 2026-12-31 --owner Kim

    Exit codes: 0 written, 2 refused, and nothing was written.
    """
    from eval_gate.cli.repository.new_waivers import WaiverPaths, write_waivers
    from eval_gate.gate.waivers.waiver_edit import WaiverRequest
    from eval_gate.model.waiver import WaiverKind

    kind = WaiverKind.QUARANTINE if quarantine else WaiverKind.WAIVER
    places = WaiverPaths.from_options(file, config, output_dir)
    write_waivers(WaiverRequest(kind, tuple(dict.fromkeys(cases)), reason, until, suite, owner), places, context.obj)
