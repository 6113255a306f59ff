"""What `eval-gate accept` does: check the names, write the file, and say what is covered now."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from eval_gate.cli.terminal.console import Verbosity, out, say
from eval_gate.config.load import find_config, load_config, wrong_file
from eval_gate.errors import GateError, did_you_mean
from eval_gate.files.writing import write_atomically
from eval_gate.gate.must_pass import must_pass_keys
from eval_gate.gate.pass_score import judged_as
from eval_gate.gate.waivers.apply import standings, waive, without_must_pass
from eval_gate.gate.waivers.file import DEFAULT_PATH, waivers_data
from eval_gate.gate.waivers.names import CaseNames
from eval_gate.gate.waivers.words import MAX_NAMED, terms
from eval_gate.gate.waivers.writing import WaiverWish, WrittenWaivers, with_entries
from eval_gate.model.result import RunResult
from eval_gate.model.waiver import CaseStanding, WaiverEntry, WaiverStanding, WaiverState
from eval_gate.reports.words.numbers import count
from eval_gate.results.read import runs_in
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import console_line, cut, first_few
from eval_gate.text.quoting import quoted_name

_SHOWN = 80
_STANDING = {
    WaiverStanding.REGRESSED: "regressed",
    WaiverStanding.FAILS: "failing",
    WaiverStanding.WAVERS: "passing only in part",
    WaiverStanding.PASSES: "passing: there is nothing to accept",
    WaiverStanding.UNJUDGED: "not measured: nothing can accept what nobody has seen",
}


class WaivingPlaces(FrozenStruct):
    """The file that is written, and the folder of results."""

    file: str
    results: Path
    read_by_run: str
    """The file that a run reads."""

    @classmethod
    def of(cls, file: str | None, config_file: str | None, output_dir: str | None) -> WaivingPlaces:
        """What was given, else what the configuration says, else the usual. Raises GateError."""
        given = Path(config_file) if config_file else find_config(Path.cwd())
        flags = {"outputDir": output_dir} if output_dir else {}
        config = load_config(flags, os.environ, given)
        read_by_run = config.policy.accepted or DEFAULT_PATH
        wrong = wrong_file(file or read_by_run, anywhere=file is not None)
        if wrong is not None:
            setting = "--file" if file is not None else "acceptedPath"
            where = f"{given}: " if given is not None and file is None else ""
            raise GateError("output-outside", f"{where}{setting}: {wrong}", "name another file with --file")
        return cls(file or read_by_run, Path(config.output_dir), read_by_run)


def write_wish(wish: WaiverWish, places: WaivingPlaces, verbosity: Verbosity) -> None:
    """Write the entries and say what became of it. Raises GateError, and then nothing is written."""
    today = datetime.now(UTC).date()
    data = waivers_data(Path(places.file), shown_as=places.file)
    written = with_entries(data, wish, today, shown_as=places.file)
    _write(places, written.text)
    for line in _entry_lines(written, today):
        out(console_line(line))
    if verbosity is Verbosity.QUIET:
        return
    try:
        runs = runs_in(places.results)
    except GateError as error:
        say(f"warning: the names are not checked: {console_line(error.message)}")
        runs = ()
    for line in _unknown(wish, runs, places.results):
        say(f"warning: {console_line(line)}")
    for line in _covered(written, runs, today):
        out(console_line(line))
    say(console_line(_next_step(places)))


def _write(places: WaivingPlaces, text: str) -> None:
    try:
        write_atomically(Path(places.file), text)
    except GateError as error:
        error.hint = "name another file with --file"
        raise


def _entry_lines(written: WrittenWaivers, today: date) -> Iterator[str]:
    for waiver in written.entries:
        entry = WaiverEntry(waiver=waiver, state=WaiverState.IDLE, days_left=(waiver.until - today).days)
        again = "renewed: " if waiver.case in written.renewed else ""
        yield f"{cut(waiver.case, _SHOWN)}: {again}{terms(entry)}"


def _unknown(wish: WaiverWish, runs: Sequence[RunResult], results: Path) -> Iterator[str]:
    """A sentence for each name that is none in any of the runs: a typo is not told from a case to come."""
    if not runs:
        yield f"no results in {results} to look the names up in"
        return
    known = [CaseNames(_cases(run)) for run in runs]
    ids = list(dict.fromkeys(case.case_id for run in runs for case in _cases(run)))
    for name in wish.cases:
        if not any(names.find(name, wish.suite) for names in known):
            where = f" of {wish.suite[:_SHOWN]}" if wish.suite else ""
            yield f"{quoted_name(name)} names no case{where} in {results}{did_you_mean(name, ids)}"


def _covered(written: WrittenWaivers, runs: Sequence[RunResult], today: date) -> Iterator[str]:
    """How the named cases stand in the newest run, and which regressions of it are left."""
    if not runs:
        return
    cases = _cases(runs[0])
    names = CaseNames(cases)
    mine = dict.fromkeys(case for one in written.entries for case in names.find(one.case, one.suite))
    when = f"in the newest run ({runs[0].timestamp})"
    for standing, words in _STANDING.items():
        if found := [case.case_id for case in mine if case.standing is standing]:
            yield f"{when} {words}: {_listed(found)}"
    policy = runs[0].policy
    must = must_pass_keys(runs[0], policy.must_pass if policy else ())
    if denied := [case.case_id for case in mine if case.key in must]:
        yield f"must pass, so that this changes nothing: {_listed(denied)}"
    waived = without_must_pass(waive(written.entries, cases, today), must).keys
    covered = waived | runs[0].waived
    left = [case.case_id for case in cases if case.standing is WaiverStanding.REGRESSED and case.key not in covered]
    if left:
        yield f"{count(len(left), 'regression')} of it not accepted: {_listed(left)}"


def _next_step(places: WaivingPlaces) -> str:
    if places.file != places.read_by_run:
        return f"{places.read_by_run} is what a run reads: give it --accepted {places.file}"
    return f"commit {places.file}: a gate reads the file of its checkout"


def _cases(run: RunResult) -> tuple[CaseStanding, ...]:
    return standings(judged_as(run), run.comparison)


def _listed(ids: Sequence[str]) -> str:
    return first_few(ids, MAX_NAMED, lambda one: cut(one, _SHOWN))
