"""Write waiver entries for `eval-gate waive`, report what they cover, and find waivers that name no case."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

from eval_gate.cli.terminal.console import Verbosity, print_message, print_output
from eval_gate.config.loader import find_config, find_file_problem, load_config
from eval_gate.config.settings import ResultsChoice
from eval_gate.errors import GateError, Problem, format_suggestion
from eval_gate.files.writing import write_atomically
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import find_eval_files, load_suites
from eval_gate.gate.must_pass import find_must_pass_cases
from eval_gate.gate.pass_score import apply_recorded_pass_score
from eval_gate.gate.waivers.application import apply_waivers, exclude_must_pass, list_standings
from eval_gate.gate.waivers.case_names import CaseNameIndex
from eval_gate.gate.waivers.waiver_edit import EditedWaivers, WaiverRequest, add_entries
from eval_gate.gate.waivers.waiver_file import DEFAULT_PATH, read_waiver_bytes
from eval_gate.gate.waivers.wording import MAX_NAMED, format_terms
from eval_gate.model.case import CaseKey
from eval_gate.model.result import RunResult
from eval_gate.model.waiver import CaseStanding, Waiver, WaiverEntry, WaiverStanding, WaiverState
from eval_gate.results.run_reader import read_runs
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import format_count, format_first_few, to_console_line, truncate_text
from eval_gate.text.quoting import quote_name

_MAX_NAME = 80
_STANDING_TEXTS = {
    WaiverStanding.REGRESSED: "regressed",
    WaiverStanding.FAILS: "failing",
    WaiverStanding.UNSTABLE: "passing sometimes",
    WaiverStanding.PASSES: "passing, so there is nothing to waive",
    WaiverStanding.NO_RESULT: "without a score, so there is nothing to waive",
}


class WaiverPaths(FrozenStruct):
    """The waiver file to write, and the results folder."""

    file: str
    results: Path
    read_by_run: str
    evals: tuple[str, ...]
    has_external: bool
    """Whether the configuration has settings for results of another tool."""

    @classmethod
    def from_options(cls, file: str | None, config_file: str | None, output_dir: str | None) -> WaiverPaths:
        """Build the paths from the options, else from the configuration, else from the defaults.

        Raises GateError, such as `output-outside-working-directory` for a waiver file that may not be written.
        """
        config_path = Path(config_file) if config_file else find_config(Path.cwd())
        flags = {"outputDir": output_dir} if output_dir else {}
        config = load_config(flags, os.environ, config_path)
        read_by_run = config.policy.waivers or DEFAULT_PATH
        wrong = find_file_problem(file or read_by_run, anywhere=file is not None)
        if wrong is not None:
            setting = "--file" if file is not None else "waiversPath"
            where = f"{config_path}: " if config_path is not None and file is None else ""
            raise GateError(
                "output-outside-working-directory", f"{where}{setting}: {wrong}", "name another file with --file"
            )
        return cls(
            file or read_by_run, Path(config.output_dir), read_by_run, config.evals, config.results != ResultsChoice()
        )


def write_waivers(wish: WaiverRequest, places: WaiverPaths, verbosity: Verbosity) -> None:
    """Write the entries, and report what they cover. Raises GateError, and then nothing is written."""
    today = datetime.now(UTC).date()
    data = read_waiver_bytes(Path(places.file), shown_as=places.file)
    edit = add_entries(data, wish, today, shown_as=places.file)
    unchecked = _check_cases(edit.entries, places)
    _write_file(places, edit.text)
    for line in _iter_entry_lines(edit, today):
        print_output(to_console_line(line))
    if verbosity is Verbosity.QUIET:
        return
    if unchecked is not None:
        print_message(f"warning: case names not checked: {to_console_line(unchecked)}")
    for line in _iter_covered_lines(edit, _read_newest_run(places.results), today):
        print_output(to_console_line(line))
    print_message(to_console_line(_describe_next_step(places)))


def _write_file(places: WaiverPaths, text: str) -> None:
    try:
        write_atomically(Path(places.file), text)
    except GateError as error:
        error.hint = "name another file with --file"
        raise


def _iter_entry_lines(edit: EditedWaivers, today: date) -> Iterator[str]:
    for waiver in edit.entries:
        entry = WaiverEntry(waiver=waiver, state=WaiverState.IDLE, days_left=(waiver.until - today).days)
        prefix = "renewed: " if waiver.case in edit.renewed_cases else ""
        yield f"{truncate_text(waiver.case, _MAX_NAME)}: {prefix}{format_terms(entry)}"


def _check_cases(waivers: Sequence[Waiver], places: WaiverPaths) -> str | None:
    try:
        unknown = find_unknown_waivers(
            waivers, places.evals, Path.cwd(), places.results, has_external=places.has_external
        )
    except GateError as error:
        return error.message
    if unknown is None:
        return f"no eval files and no results in {places.results}"
    if refused := [one for one in unknown if not one.may_be_external]:
        problems = [Problem(one.message, field=f'"{one.waiver.case[:_MAX_NAME]}"') for one in refused]
        hint = "name a case of an eval file; to waive a case of another tool, run `eval-gate check` first"
        raise GateError("waive-failed", "there is nothing to waive", hint, problems=problems)
    return "; ".join(one.message for one in unknown) or None


def _read_newest_run(results: Path) -> RunResult | None:
    """Read the newest run; None without one that can be read, which keeps no waiver from being written."""
    try:
        return next(iter(read_runs(results)), None)
    except GateError:
        return None


def _iter_covered_lines(edit: EditedWaivers, run: RunResult | None, today: date) -> Iterator[str]:
    """Yield the results of the named cases in the newest run, and its regressions that are not waived."""
    if run is None:
        return
    cases = list_standings(apply_recorded_pass_score(run), run.comparison)
    names = CaseNameIndex(cases)
    mine = dict.fromkeys(case for one in edit.entries for case in names.find_cases(one.case, one.suite))
    when = f"newest run ({run.timestamp})"
    for standing, words in _STANDING_TEXTS.items():
        if ids := [case.case_id for case in mine if case.standing is standing]:
            yield f"{when}: {words}: {_format_ids(ids)}"
    policy = run.policy
    must = find_must_pass_cases(run, policy.must_pass if policy else ())
    if denied := [case.case_id for case in mine if case.key in must]:
        yield f"no effect, because the case must pass: {_format_ids(denied)}"
    waived = exclude_must_pass(apply_waivers(edit.entries, cases, today), must).keys
    covered = waived | run.waived_keys
    unwaived = [case.case_id for case in cases if case.standing is WaiverStanding.REGRESSED and case.key not in covered]
    if unwaived:
        yield f"{format_count(len(unwaived), 'regression')} not waived: {_format_ids(unwaived)}"


def _describe_next_step(places: WaiverPaths) -> str:
    if places.file != places.read_by_run:
        return f"Next: add --waivers {places.file} to `eval-gate run`, which reads {places.read_by_run} otherwise"
    return f"Next: commit {places.file}, because a gate reads the file of its checkout"


def _format_ids(ids: Sequence[str]) -> str:
    return format_first_few(ids, MAX_NAMED, lambda one: truncate_text(one, _MAX_NAME))


class UnknownWaiver(NamedTuple):
    """A waiver that names no case, and a sentence about it."""

    waiver: Waiver
    message: str
    is_suite: bool
    """Whether no eval file has the name of its suite, which results of another tool may have."""
    may_be_external: bool
    """Whether it may be for a case of another tool: results of one are configured, and none are stored."""


def find_unknown_waivers(
    waivers: Sequence[Waiver], evals: Sequence[str], root: Path, results: Path, *, has_external: bool
) -> tuple[UnknownWaiver, ...] | None:
    """Find the waivers that name no case of these eval files, which are all of the configuration.

    External results have no eval file, and a run may have other paths than the configuration: the runs in the folder
    `results` have their cases. `has_external` says whether external results are configured. Return None if there is
    neither an eval file nor such a run. Raises GateError for an invalid eval file or stored run.
    """
    if not waivers:
        return ()
    keys = _load_case_keys(evals, root)
    unknown = _select_unmatched(waivers, keys)
    if unknown:
        runs = list(read_runs(results))
        has_external = has_external and not any(run.is_external for run in runs)
        keys += _list_other_case_keys(runs, root, {key.suite for key in keys})
        unknown = _select_unmatched(unknown, keys)
    return tuple(_describe_unknown(one, keys, may_be_external=has_external) for one in unknown) if keys else None


def _load_case_keys(evals: Sequence[str], root: Path) -> list[CaseKey]:
    try:
        suites = load_suites(find_eval_files(evals, root), root, ReadOptions())
    except GateError as error:
        if error.code != "eval-files-not-found":
            raise
        return []
    return [case.key for suite in suites for case in suite.cases]


def _list_other_case_keys(runs: Iterable[RunResult], root: Path, files: set[str]) -> Iterator[CaseKey]:
    for run in runs:
        for key, _ in run.iter_cases():
            if key.suite not in files and (run.is_external or (root / key.suite).is_file()):
                yield key


def _select_unmatched(waivers: Iterable[Waiver], keys: Iterable[CaseKey]) -> list[Waiver]:
    index = _index_cases(keys)
    return [one for one in waivers if not index.find_cases(one.case, one.suite)]


def _index_cases(keys: Iterable[CaseKey]) -> CaseNameIndex:
    fails = WaiverStanding.FAILS
    return CaseNameIndex(CaseStanding(suite=key.suite, case_id=key.case_id, standing=fails) for key in keys)


def _describe_unknown(waiver: Waiver, keys: Sequence[CaseKey], *, may_be_external: bool) -> UnknownWaiver:
    other = "; results of another tool may have it" if may_be_external else ""
    if waiver.suite is not None and not _index_cases(keys).find_cases("*", waiver.suite):
        files = dict.fromkeys(key.suite for key in keys)
        message = f"no eval file matches {quote_name(waiver.suite)}{format_suggestion(waiver.suite, files)}{other}"
        return UnknownWaiver(waiver, message, is_suite=True, may_be_external=may_be_external)
    ids = dict.fromkeys(key.case_id for key in keys)
    message = f"no eval file has a case {quote_name(waiver.case)}{format_suggestion(waiver.case, ids)}{other}"
    return UnknownWaiver(waiver, message, is_suite=False, may_be_external=may_be_external)
