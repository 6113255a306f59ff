"""`eval-gate import`: converts evals of another tool into eval files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from eval_gate.cli.terminal.console import Verbosity, print_output
from eval_gate.errors import GateError, format_suggestion
from eval_gate.text.quoting import quote_value

if TYPE_CHECKING:
    from pathlib import Path

    from eval_gate.importers.import_result import ImportResult


_FORCE_HINT: Final = "choose another folder with -o, or replace the files with --force"


PROMPTFOO: Final = "promptfoo"
"""The tool whose definitions are imported."""


def import_evals(
    context: typer.Context,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Tool of the evals: promptfoo.", show_default=False)],
    config: Annotated[
        str, typer.Argument(metavar="CONFIG", help="Configuration file of the tool.", show_default=False)
    ],
    *,
    folder: Annotated[str, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the files.")] = "evals",
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the files without writing them.")] = False,
) -> None:
    """Convert another tool's evals into eval files, and list every case that cannot be converted, with the reason.

      eval-gate import promptfoo promptfooconfig.yaml -o evals

    A case is converted with all of its assertions or not at all, so that no response passes that failed before. Code
    (JavaScript, Python, functions, Nunjucks beyond {{name}}) is never executed, and only files in the configuration's
    folder are read. Providers with a counterpart become targets.yaml; keys stay in the environment. Existing files are
    kept unless you pass --force. Nothing is called.

    Exit codes: 0 everything is converted, 1 something is not, and is listed, 2 nothing is written.
    """
    from pathlib import Path

    if tool != PROMPTFOO:
        near = format_suggestion(tool, [PROMPTFOO])
        raise GateError(
            "unknown-value",
            f"cannot import evals of {quote_value(tool)}{near}; allowed: {PROMPTFOO}",
            "to use the results of another tool, no import is necessary: see `eval-gate check --help`",
        )
    from eval_gate.importers.promptfoo.conversion import import_promptfoo

    place = Path(folder)
    made = import_promptfoo(Path(config), config, folder)
    _write_files(made, place, force=force, dry=dry_run)
    _print_summary(made, place, context.obj, dry=dry_run)
    raise typer.Exit(_get_exit_code(made))


def _get_exit_code(result: ImportResult) -> int:
    if not result.files:
        return 2
    return 0 if result.is_complete else 1


def _write_files(result: ImportResult, folder: Path, *, force: bool, dry: bool) -> None:
    """Write all files or none. Raises GateError `import-target-exists` if one exists and `force` is not set."""
    import os

    from eval_gate.cli.starter.file_writer import check_paths, write_new_files
    from eval_gate.errors import GateError, Problem
    from eval_gate.files.file_paths import OUTSIDE, resolve_path
    from eval_gate.files.writing import make_folder, write_atomically

    real = resolve_path(folder, anywhere=True)
    if real is None:
        raise GateError(
            "output-outside-working-directory", f"{folder} {OUTSIDE} by a link", "choose another folder with -o"
        )
    existing = [name for name in result.files if os.path.lexists(folder / name)]
    if existing and not force:
        problems = [Problem("this file exists", file=(folder / name).as_posix()) for name in existing]
        raise GateError(
            "import-target-exists", "files exist already; nothing was written", _FORCE_HINT, problems=problems
        )
    if dry or not result.files:
        return
    make_folder(folder)
    check_paths(real, result.files)
    if force:
        for name, text in result.files.items():
            write_atomically(folder / name, text)
    else:
        write_new_files(real, result.files)


def _print_summary(result: ImportResult, folder: Path, verbosity: Verbosity, *, dry: bool) -> None:
    """Print the summary of an import on standard output.

    Most of it is untrusted text, so invisible characters appear as marks. Quiet output is the first line only.
    With `dry`, the texts of the files follow.
    """
    from eval_gate.cli.repository.import_summary import iter_summary_lines
    from eval_gate.text.safe_output import reveal_all_invisible

    for line in iter_summary_lines(result, folder.as_posix(), dry=dry, every=verbosity is Verbosity.VERBOSE):
        print_output(reveal_all_invisible(line))
        if verbosity is Verbosity.QUIET:
            break
    if dry and verbosity is not Verbosity.QUIET:
        for name, text in result.files.items():
            print_output(f"\n--- {(folder / name).as_posix()}")
            for line in text.split("\n"):
                print_output(reveal_all_invisible(line))
