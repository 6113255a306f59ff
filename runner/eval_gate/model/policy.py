"""Policy of a run and its evaluation setup, as stored in the run result."""

from collections.abc import Collection, Iterable

from eval_gate.model.base import JsonValue, Record, as_json
from eval_gate.model.setup import SettingValue, TargetIdentity


class ComparedFile(Record, kw_only=True):
    """One file, relative to the folder of the run, and the first 16 hex digits of a hash of its content.

    A path that ends with `/…` stands for all files below a folder.
    """

    path: str
    digest: str


class ComparedProgram(Record, kw_only=True):
    """One command, by a hash of its text and folder, and where it loads files from.

    A place that ends with `/` is a folder with all that is below it; any other is one file.
    """

    key: str
    places: tuple[str, ...] = ()


class ComparedPrograms(Record, kw_only=True):
    """All programs of a run and all files that these can load, each file once."""

    files: tuple[ComparedFile, ...] = ()
    programs: tuple[ComparedProgram, ...] = ()

    def get_files(self, keys: Iterable[str], left_out: Collection[str] = ()) -> dict[str, str]:
        """Return the digests, by path, of the files that these programs can load."""
        wanted_keys = set(keys)
        places = {place for one in self.programs if one.key in wanted_keys for place in one.places}
        folders = tuple(place for place in places if place.endswith("/"))
        return {
            file.path: file.digest
            for file in self.files
            if (file.path in places or file.path.startswith(folders)) and file.path not in left_out
        }


def merge_compared_programs(parts: Iterable[ComparedPrograms]) -> ComparedPrograms:
    """Merge what the parts of one run compared."""
    compared = tuple(parts)
    files = {file.path: file for part in compared for file in part.files}
    programs = {one.key: one for part in compared for one in part.programs}
    return ComparedPrograms(
        files=tuple(files[path] for path in sorted(files)), programs=tuple(programs[key] for key in sorted(programs))
    )


class RunPolicy(Record, kw_only=True):
    """Effective policy from options, variables, file and defaults. None: no such rule, or unknown."""

    fail_on: tuple[str, ...] = ()
    fail_on_default: bool = False
    """`fail_on` is the default of the command line or action; the user did not set it."""
    min_pass_rate: float | None = None
    max_errors: int | None = None
    """None: no limit for agent errors beyond the test of the run, and none allowed of other errors."""
    pass_score: float = 1.0
    score_tolerance: float | None = None
    max_score_drop: float | None = None
    reruns: int | None = None
    """Configured maximum of re-runs for each case, also without a baseline."""
    false_alarm_rate: float | None = None
    must_pass: tuple[str, ...] = ()
    allowed_regressions: int = 0
    min_coverage: float | None = None
    max_latency_increase: float | None = None
    max_cost_increase: float | None = None
    max_token_increase: float | None = None
    trials: int | None = None
    passes: int | None = None
    """Trials of each case that have to pass; None for more than half."""
    scores: tuple[str, ...] = ()
    """Rules for scorers of another tool, such as `policy>=0.7`."""
    base_agent: str | None = None
    """Base agent that runs if the gate would fail; None if none is configured."""
    report_only: str | None = None
    """Until when a gate that fails only because of regressions exits with 0, such as `until 10 runs`."""
    waivers: str | None = None
    """Waiver file that the configuration names; None for the default path, if that file exists."""
    typed_settings: tuple[str, ...] | None = None
    """Settings that a person typed in a terminal. None in CI, in the action, from a program, or if unknown."""

    def as_settings(self) -> dict[str, JsonValue]:
        """Return the rules that are set as configuration keys, so that they can be applied again."""
        run_fields = {"failOnDefault", "trials", "passes", "scores", "baseAgent", "waivers", "typedSettings"}
        settings: dict[str, JsonValue] = {
            name: value for name, value in as_json(self).items() if value is not None and name not in run_fields
        }
        return settings | ({"waiversPath": self.waivers} if self.waivers else {})


class EvaluationSetup(Record, kw_only=True):
    """Evaluation setup that applies to every case. The setup of one case is in its `fingerprints`."""

    trials: int | None = None
    passes: int | None = None
    reruns: int | None = None
    """Configured maximum of re-runs, although cases are not re-run without a baseline."""
    scores: tuple[str, ...] = ()
    """Rules by which scores of another tool pass or fail."""
    base_agent: str | None = None
    """Base agent that runs if the gate would fail: its address, or the name and identity of its target. None if none is
    configured."""
    snapshot: str | None = None
    """Source of snapshot tokens: a path, an address without credentials, or a command."""
    snapshot_is_file: bool = False
    """The snapshot is a file, which changes only when someone edits it."""
    snapshot_program: str | None = None
    """Key of the snapshot command in `programs`."""
    programs: ComparedPrograms | None = None
    """What programs of the run can load; None in a result of another tool."""
    recording: str | None = None
    """File of recorded responses that replaced models or judges; None for none, or for the baseline's own recording."""
    settings: tuple[SettingValue, ...] = ()
    """Run settings that differ from their defaults and can change a result."""
    judges: tuple[TargetIdentity, ...] = ()
    """Judges of the run with their setup."""
    users: tuple[TargetIdentity, ...] = ()
    """Models that play simulated users, with their setup."""
