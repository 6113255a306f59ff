"""Reads and checks everything a run needs, so that whatever is wrong is said before anything is asked."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from eval_gate.config.selection import Selection
from eval_gate.config.settings import DEFAULT_SEED_MANIFEST, CacheMode, RubricMode, RunConfig, Store
from eval_gate.engine.judging import gradable
from eval_gate.engine.plan import RunPlan
from eval_gate.engine.preparing.assign import Assignment, assign
from eval_gate.engine.preparing.context import RunContext
from eval_gate.engine.preparing.control import control_for, unused_control
from eval_gate.engine.preparing.programs import as_whom, who_runs
from eval_gate.engine.preparing.project_tmp import contents, home_for
from eval_gate.engine.preparing.question import asked_words_of
from eval_gate.engine.preparing.select import cut_by, missed_files, select
from eval_gate.engine.preparing.snapshot import capture_snapshot, load_seed, missing_sources
from eval_gate.engine.preparing.yardstick import MAX_COMMAND, measuring, yardsticks
from eval_gate.errors import GateError, Problem
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import discover, load_suites
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalSuite
from eval_gate.model.conversation import ToolSpec
from eval_gate.model.result import ShardCut
from eval_gate.model.specs.evaluator import (
    ToolParams,
    ToolsAcceptable,
    ToolsCalled,
    ToolsCalledAnyOrder,
    ToolTrajectory,
)
from eval_gate.process.environment import Withheld, allowed, secrets_in
from eval_gate.registry.base import Registry
from eval_gate.registry.load import load_registry, servers_at
from eval_gate.registry.mcp import ProgramSurroundings
from eval_gate.registry.staleness import check
from eval_gate.results.read import read_record
from eval_gate.results.run_setup import RunSetup
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.base import Target
from eval_gate.targets.build import BuildContext
from eval_gate.targets.lookup import TargetBook
from eval_gate.targets.model.recording import RECORDING_NAME, RecordedAnswer, Recording, RecordingFile, read_recording
from eval_gate.targets.program_files import ProgramFiles
from eval_gate.text.escape import one_line
from eval_gate.text.globs import idle_patterns
from eval_gate.text.quoting import looks_like_key
from eval_gate.text.redact import Redactor
from eval_gate.text.tokens import TokenData
from eval_gate.text.urls import public_url, secrets_of

TOKENS = ("GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN")
"""Variables that hold a secret wherever they are set, whether a target uses them or not."""
_ABOUT_TOOLS = (ToolsCalled, ToolsCalledAnyOrder, ToolsAcceptable, ToolParams, ToolTrajectory)
"""What a model that is told of no tools can hardly pass."""


class RunInputs(FrozenStruct):
    """The eval files and what they refer to, read and checked. `suites` hold only the selected cases."""

    suites: tuple[EvalSuite, ...]
    registry: Registry | None
    seed: JsonValue
    warnings: tuple[str, ...]
    planned: int = 0
    """Cases of all suites that can be run, the selected ones among them."""
    cut: ShardCut | None = None
    """How they were cut into shards; None where they were not."""

    __repr__ = object.__repr__


async def read_inputs(
    config: RunConfig, selection: Selection, context: RunContext, *, offline: bool = False
) -> RunInputs:
    """Eval files, registry and seed manifest. Raises GateError with every problem of all eval files at once.

    A registry that is a program gets of the environment what all programs get. `offline` leaves one that is a server
    alone, and says so.
    """
    root, answerer = context.root, context.answerer
    registry, said = await _registry(config, context, offline=offline)
    names = {tool.name for tool in registry.tools} if registry else set()
    instead = answerer.identity.name if answerer else _answers_instead(config)
    reading = ReadOptions(config.strict, names, instead, root / context.tmp.folder, context.tmp.in_place)
    others: list[str] = []
    suites = load_suites(discover(config.evals, root), root, reading, others)
    seed_path = Path(config.seed_manifest_path or DEFAULT_SEED_MANIFEST)
    seed = load_seed(root / seed_path, explicit=config.seed_manifest_path is not None)
    narrowed = replace(selection, paths=())  # which have led to these files
    chosen = select(suites, narrowed)
    every_case = [(case.id, case.tags) for suite in suites for case in suite.cases]
    # what other files hold is not known
    idle = () if selection.paths else idle_patterns(config.policy.must_pass, every_case, strict=config.strict)
    planned = sum(case.skip_reason is None for suite in suites for case in suite.cases)
    said = (*said, *others, *idle, *missed_files(suites, chosen))
    return RunInputs(chosen, registry, seed, said, planned, cut_by(suites, narrowed))


async def _registry(
    config: RunConfig, context: RunContext, *, offline: bool
) -> tuple[Registry | None, tuple[str, ...]]:
    """The tool definitions, and what is worth a line about them."""
    location, root, environment = config.tool_registry_path, context.root, context.environment
    if not location:
        return None, ()
    by_address = location.lower().startswith(("http://", "https://"))
    servers = None if by_address else servers_at(location, root)
    if offline and (by_address or servers):
        return None, (f"{public_url(location) if by_address else location} was not asked for its tools",)
    who: tuple[str, ...] = ()
    if servers and any(one.command for one in servers[0].only(servers[1])):
        who = as_whom(environment)
    given = allowed(environment, names=config.pass_env)
    secrets = _redactor(config, context)
    if by_address:
        secrets.learn(secrets_of(location))
    programs = ProgramSurroundings(given, Withheld.of(environment, given), secrets.data)
    registry = await load_registry(location, root, programs)
    if servers or by_address:  # models are told of what a server says, and warnings quote it
        registry = secrets.model(registry)
    return registry, (*registry.notices, *who)


def _redactor(config: RunConfig, context: RunContext) -> Redactor:
    """Knows the secrets that are so whatever a target uses: an agent may have been given any key that is set here."""
    given = (context.environment[name] for name in (*TOKENS, *config.pass_env) if name in context.environment)
    keys = (value for value in secrets_in(context.environment) if looks_like_key(value))
    return Redactor((*given, *keys, *(secrets_of(config.snapshot_path) if config.snapshot_path else ())))


def _answers_instead(config: RunConfig) -> str | None:
    """Who was chosen for the run, whatever eval files ask for; None when nobody was."""
    chosen = config.target
    return "the agent's endpoint" if chosen.endpoint else chosen.name or chosen.model or chosen.provider


async def prepare(config: RunConfig, selection: Selection, context: RunContext) -> RunPlan:
    """Everything decided. The snapshot is captured last, immediately before the run.

    Raises GateError (usage) for everything that is wrong with files and settings, and GateError (incomplete) for a
    registry or snapshot that is configured and cannot be had.
    """
    inputs = await read_inputs(config, selection, context)
    home, home_notices = home_for(inputs.suites, context.root, context.tmp)
    files = ProgramFiles(context.root)
    shared = replace(
        _build_context(config, inputs, context),
        files=files,
        home=home,
        shards=selection.shard.count if selection.shard else 1,
    )
    book = TargetBook(config.target, shared, context.answerer)
    assigned = assign(inputs.suites, book, config)
    book.learn_secrets(suite.file for suite in inputs.suites)
    _refuse_stubs(inputs.suites, assigned)
    target = assigned.main
    suites = gradable(inputs.suites, config.rubric, assigned.judges)
    control = control_for(config, shared, target, suites[0].file)
    run_id, timestamp, resumed = _identity(Path(config.output_dir), target, context.resume)
    who = tuple(one for one in who_runs(config, suites, book, context.environment) if one not in inputs.warnings)
    tokens = TokenData(seed=inputs.seed, snapshot=await _snapshot(config, shared))
    targets = assigned.targets
    yardstick_of = yardsticks(
        suites,
        assigned.judges,
        tokens,
        files,
        contents(home),
        lambda case: targets.get((case.suite, case.target), target),
    )
    how = measuring(
        config,
        files,
        _recorded(config, shared, context),
        control=control.name if control else None,
        judges=assigned.judges,
        mask=shared.redact,
    )
    given = allowed(context.environment, names=config.pass_env)
    return RunPlan(
        run_id=run_id,
        timestamp=timestamp,
        resumed=resumed,
        suites=suites,
        target=target,
        control=control.target if control else None,
        targets=targets,
        judges=assigned.judges,
        environment=given,
        withheld=Withheld.of(context.environment, given),
        redact=shared.redact,
        recording=shared.recording,
        keeps_files=home.in_place is None,
        rubrics_wait=config.rubric is RubricMode.AFTER_PASS,
        limits=config.limits,
        concurrency=config.target.concurrency,
        tokens=tokens,
        patterns=config.redact,
        asked_words=asked_words_of(suites, tokens, config.redact),
        yardsticks=yardstick_of,
        measuring=shared.redact.model(how),
        staleness={suite.file: check(suite, inputs.registry) for suite in inputs.suites},
        git=context.git,
        shard=selection.shard,
        cut=inputs.cut,
        selections=selection.chosen_cases,
        planned=inputs.planned,
        warnings=inputs.warnings
        + shared.recording.warnings
        + home_notices
        + book.notices
        + (control.notices if control else unused_control(config))
        + tuple(filter(None, (book.unread(),)))
        + who
        + _unknown_files(files)
        + tuple(missing_sources(suites, tokens))
        + _unrecorded(config)
        + _without_tools(assigned, inputs),
    )


def _build_context(config: RunConfig, inputs: RunInputs, context: RunContext) -> BuildContext:
    """What targets are made with, but for where agents work: tools, recorded answers, time, secrets."""
    shared = Path(config.output_dir) / RECORDING_NAME
    known = read_recording(shared) if config.cache in {CacheMode.REPLAY, CacheMode.AUTO} else None
    kept = Store.NONE is not config.limits.store
    return BuildContext(
        environment=context.environment,
        root=context.root,
        tools=_tools(inputs.registry),
        recording=Recording(config.cache, shared if kept else None, known, _of_baseline(known, context)),
        timeout_s=config.limits.timeout_ms / 1000,
        pass_env=config.pass_env,
        doorkeeper=context.doorkeeper,
        redact=_redactor(config, context),
    )


def _of_baseline(known: RecordingFile | None, context: RunContext) -> Sequence[RecordedAnswer]:
    """The responses that the baseline itself was given, as its own folder has them."""
    if known is None or not known.entries or context.baseline_folder is None:
        return ()
    try:
        return read_recording(context.baseline_folder / RECORDING_NAME).entries
    except GateError:  # then nobody knows, and the report says that they may be anybody's
        return ()


def _recorded(config: RunConfig, shared: BuildContext, context: RunContext) -> str | None:
    """The file of answers that were there before this run, and that it may take; None for those of the baseline.

    A program that runs before they are read, such as a registry's, could write others in their place.
    """
    recording = shared.recording
    if not recording.begins or recording.digest == context.recorded_by_baseline:
        return None
    return (Path(config.output_dir) / RECORDING_NAME).as_posix()


def _unrecorded(config: RunConfig) -> tuple[str, ...]:
    """That nothing is recorded, where that was wished for and nothing of responses may be kept."""
    if config.limits.store is not Store.NONE or config.cache not in {CacheMode.RECORD, CacheMode.AUTO}:
        return ()
    return (f"cache: {config.cache} records nothing, because `store: none` keeps no response: the next run asks anew",)


def _tools(registry: Registry | None) -> tuple[ToolSpec, ...]:
    """The registry's tools as a model is told of them; what was removed is not there any more."""
    return tuple(
        ToolSpec(name=tool.name, description=tool.description or "", parameters=tool.parameters)
        for tool in (registry.tools if registry else ())
        if tool.status != "removed"
    )


def _without_tools(assigned: Assignment, inputs: RunInputs) -> tuple[str, ...]:
    """A model that knows no tool cannot choose one: worth saying before somebody wonders about a failed choice."""
    asked = any(
        assigned.targets[case.suite, case.target].takes_stubs
        for suite in inputs.suites
        for case in suite.cases
        if case.skip_reason is None and any(isinstance(spec, _ABOUT_TOOLS) for spec in case.evaluators)
    )
    if inputs.registry is not None or not asked:
        return ()
    return ("no tool registry is configured: the model is told of no tools but those that cases stub",)


def _unknown_files(files: ProgramFiles) -> tuple[str, ...]:
    """Which commands that grade nobody can compare with those of the baseline."""
    return tuple(
        f"no file of the repository was found in the command `{one_line(command, MAX_COMMAND)}`: a change of the files "
        "that it runs is not noticed"
        for command in files.unknown
    )


def _identity(output_dir: Path, target: Target, resume: str | None) -> tuple[str, str, RunSetup | None]:
    """Run id and timestamp: new, or those of the run that is resumed; and what that was set up with."""
    if resume is None:
        return str(uuid.uuid4()), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), None
    earlier = read_record(output_dir, resume)
    if earlier.target.identity != target.identity.identity:
        raise GateError(
            "another-target",
            f"run {resume} evaluated {earlier.target.identity}, not {target.identity.identity}",
            "resume with the same target, or start a new run",
        )
    return earlier.run_id, earlier.timestamp, RunSetup.of(earlier)


def _refuse_stubs(suites: tuple[EvalSuite, ...], assigned: Assignment) -> None:
    """A case with stubs is a conversation with a model: never run against an endpoint as if stubs were absent."""
    problems = [
        Problem(f"case {case.id} has stubs", file=case.location.file, line=case.location.line, field="stubs")
        for suite in suites
        for case in suite.cases
        if case.stubs is not None and case.skip_reason is None
        if not assigned.targets[case.suite, case.target].takes_stubs
    ]
    if problems:
        raise GateError(
            "stubs-need-a-model",
            "cases with stubs need a model, and an agent endpoint cannot take stubs",
            "leave these cases out with --case, or move them to a suite that is run against a model",
            problems=problems,
        )


async def _snapshot(config: RunConfig, shared: BuildContext) -> JsonValue:
    """The snapshot. Not configured is None: assertions that need it are skipped."""
    configured = config.snapshot_path is not None or config.snapshot_command is not None
    if config.snapshot_enabled and not configured:
        raise GateError(
            "no-snapshot-source",
            "snapshotEnabled is true, but there is nothing to capture it from",
            "give snapshotPath (a file or URL) or snapshotCommand",
        )
    if not configured or config.snapshot_enabled is False:
        return None
    given = allowed(shared.environment, names=config.pass_env)
    path, command = config.snapshot_path, config.snapshot_command
    try:
        return await capture_snapshot(
            path=path, command=command, root=shared.root, environment=given, redact=shared.redact
        )
    except GateError as error:
        missing = Withheld.of(shared.environment, given).needed(command, error.message) if command else None
        error.hint = missing or error.hint
        raise
