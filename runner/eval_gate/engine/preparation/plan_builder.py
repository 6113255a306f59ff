"""Builds the run plan from configuration, selection and context; reports every problem first."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from eval_gate.config.loader import describe_unread_configs
from eval_gate.config.measures import iter_idle_globs
from eval_gate.config.policy import DEFAULT_WAIVERS
from eval_gate.config.selection import Selection
from eval_gate.config.settings import DEFAULT_SEED_MANIFEST, RecordingMode, ResponseRetention, RubricMode, RunConfig
from eval_gate.engine.judge_targets import skip_ungradable
from eval_gate.engine.preparation.assignment import (
    Assignment,
    assign_targets,
    build_base_agent_target,
    check_target_count,
    describe_unused_base_agent,
)
from eval_gate.engine.preparation.case_filter import (
    describe_drafts,
    describe_missed_files,
    find_shard_cut,
    leave_out_drafts,
    select_cases,
)
from eval_gate.engine.preparation.case_texts import build_case_texts
from eval_gate.engine.preparation.evaluated_state import add_evaluated_state, list_target_measures
from eval_gate.engine.preparation.program_files import ProgramFiles
from eval_gate.engine.preparation.program_user import check_command_user, check_programs
from eval_gate.engine.preparation.project_tmp import build_home, digest_contents
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.engine.preparation.setup_fingerprints import (
    build_evaluation_setup,
    build_setup_fingerprints,
    list_target_folders,
)
from eval_gate.engine.preparation.snapshot import capture_snapshot, iter_missing_sources, load_seed
from eval_gate.engine.run_plan import CheckBaselineFiles, RunPlan
from eval_gate.errors import GateError, Problem
from eval_gate.files.file_paths import format_path
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import LeftOut, check_baseline_files, find_eval_files, has_evals, load_suites
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.model.conversation import ToolSpec
from eval_gate.model.result import ShardPlan
from eval_gate.model.specs.evaluator import (
    ToolParams,
    ToolsAcceptable,
    ToolsCalled,
    ToolsCalledAnyOrder,
    ToolTrajectory,
)
from eval_gate.process.environment import WithheldVariables, filter_environment, find_secrets
from eval_gate.results.run_reader import read_resumed_run
from eval_gate.results.run_setup import RunSetup
from eval_gate.staleness.mcp_servers import ProgramEnvironment
from eval_gate.staleness.registry_loader import find_server_file, load_registry
from eval_gate.staleness.staleness_checks import check_staleness
from eval_gate.staleness.tool_registry import ToolRegistry
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.base import Target
from eval_gate.targets.build_context import BuildContext, MissingRequirements
from eval_gate.targets.catalog import TargetCatalog
from eval_gate.targets.model.proxied_providers import EXECUTION_HEADER, restore_environment
from eval_gate.targets.model.recording import RECORDING_NAME, RecordedResponse, Recording, RecordingFile, read_recording
from eval_gate.targets.secret_masking import MaskedTarget
from eval_gate.text.escape import format_first_few
from eval_gate.text.globs import check_unmatched_patterns
from eval_gate.text.quoting import looks_like_key
from eval_gate.text.redaction import Redactor
from eval_gate.text.tokens import TokenData
from eval_gate.text.urls import iter_url_secrets, to_public_url

if TYPE_CHECKING:
    from eval_gate.engine.model_proxy import ModelProxy

TOKEN_VARIABLES = ("GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN")
"""Variables that hold a secret wherever they are set, whether a target uses them or not."""
_MAX_NAMED = 3
"""Cases that the same problem of a target names."""
_TOOL_EVALUATORS = (ToolsCalled, ToolsCalledAnyOrder, ToolsAcceptable, ToolParams, ToolTrajectory)
"""Evaluators that a model without tools can hardly pass."""


class RunInputs(FrozenStruct):
    """Eval files and the files they refer to. `suites` hold only the selected cases."""

    suites: tuple[EvalSuite, ...]
    registry: ToolRegistry | None
    seed: JsonValue
    warnings: tuple[str, ...]
    planned_cases: int = 0
    """Cases of all suites that can be run, the selected ones among them."""
    shard_cut: ShardPlan | None = None
    """Division of the cases into shards; None without shards."""
    eval_files: tuple[str, ...] = ()
    """Every file with evals, even if none of its cases is selected."""
    draft_notices: tuple[str, ...] = ()
    check_baseline_files: CheckBaselineFiles | None = None
    """Checks that the files of the baseline's cases are read. Raises GateError."""

    __repr__ = object.__repr__


async def read_inputs(
    config: RunConfig, selection: Selection, context: RunContext, *, offline: bool = False, with_drafts: bool = False
) -> RunInputs:
    """Eval files, registry and seed manifest. Raises GateError with every problem of all eval files at once.

    A registry that is a program gets of the environment what all programs get. `offline` leaves one that is a server
    alone, and says so. Drafts are left out by name before anything is selected, unless `with_drafts` keeps them.
    """
    root, custom_target = context.root, context.custom_target
    registry, notices = await _read_registry(config, context, offline=offline)
    names = {tool.name for tool in registry.tools} if registry else set()
    instead = custom_target.identity.name if custom_target else _find_chosen_target(config)
    reading = ReadOptions(config.strict, names, instead, root / context.tmp.folder, context.tmp.in_place)
    left_out: list[LeftOut] = []
    all_suites = context.custom_suites or load_suites(find_eval_files(config.evals, root), root, reading, left_out)
    check: CheckBaselineFiles | None = None
    if not context.custom_suites:
        loaded = {suite.file for suite in all_suites}
        check = partial(check_baseline_files, loaded=loaded, left_out=left_out, patterns=config.evals, root=root)
        check(context.baseline_files)
    seed_path = Path(config.seed_manifest_path or DEFAULT_SEED_MANIFEST)
    seed = load_seed(root / seed_path, explicit=config.seed_manifest_path is not None)
    narrowed = replace(selection, paths=())  # which have led to these files
    suites = all_suites if with_drafts else leave_out_drafts(all_suites, narrowed)
    chosen = select_cases(suites, narrowed)
    every_case = [(case.id, case.tags) for suite in suites for case in suite.cases]
    idle: tuple[str, ...] = ()
    if not selection.paths:  # what other files hold is not known
        idle = check_unmatched_patterns(config.policy.must_pass, every_case, strict=config.strict)
        idle += tuple(iter_idle_globs(config.measures, [suite.file for suite in all_suites]))
    planned = sum(case.skip_reason is None for suite in suites for case in suite.cases)
    drafts = describe_drafts(all_suites, narrowed, is_planned=with_drafts)
    passed_over = (*describe_unread_configs(config, root), *(one.note for one in left_out if one.note))
    notices = (*notices, *passed_over, *idle, *drafts, *describe_missed_files(all_suites, chosen))
    evals = _list_eval_files(all_suites, root, narrowed=bool(selection.paths))
    return RunInputs(chosen, registry, seed, notices, planned, find_shard_cut(suites, narrowed), evals, drafts, check)


def _list_eval_files(suites: Sequence[EvalSuite], root: Path, *, narrowed: bool) -> tuple[str, ...]:
    """List the files with evals; with `narrowed` also those that the call leaves out of the folders of the others."""
    paths = {file for suite in suites for file in (suite.file, *(case.location.file for case in suite.cases))}
    if narrowed:
        folders = sorted({str(Path(suite.file).parent) for suite in suites})
        candidates = (file for file in find_eval_files(folders, root) if format_path(file.path, root) not in paths)
        paths |= {format_path(file.path, root) for file in candidates if has_evals(file, root)}
    return tuple(sorted(paths))


async def _read_registry(
    config: RunConfig, context: RunContext, *, offline: bool
) -> tuple[ToolRegistry | None, tuple[str, ...]]:
    """Read the tool registry, if it is configured and not `offline`, and return it with notices for people."""
    location, root, environment = config.tool_registry_path, context.root, context.environment
    if not location:
        return None, ()
    by_address = location.lower().startswith(("http://", "https://"))
    servers = None if by_address else find_server_file(location, root)
    if offline and (by_address or servers):
        return None, (
            f"{to_public_url(location) if by_address else location} was not contacted, so its tools are unknown",
        )
    who: tuple[str, ...] = ()
    if servers and any(one.command for one in servers[0].select_servers(servers[1])):
        who = check_command_user(environment)
    variables = filter_environment(environment, names=config.pass_env)
    secrets = _build_redactor(config, context)
    if by_address:
        secrets.add_secrets(iter_url_secrets(location))
    withheld = WithheldVariables.from_environment(environment, variables)
    programs = ProgramEnvironment(variables, withheld, secrets.mask_bytes)
    registry = await load_registry(location, root, programs)
    if servers or by_address:  # prompts and warnings quote what a server returns
        registry = secrets.mask_struct(registry)
    return registry, (*registry.notices, *who)


def _build_redactor(config: RunConfig, context: RunContext) -> Redactor:
    """Knows the secrets that are so whatever a target uses: an agent may have been given any key that is set here."""
    values = (context.environment[name] for name in (*TOKEN_VARIABLES, *config.pass_env) if name in context.environment)
    keys = (value for value in find_secrets(context.environment) if looks_like_key(value))
    return Redactor((*values, *keys, *(iter_url_secrets(config.snapshot_path) if config.snapshot_path else ())))


def _find_chosen_target(config: RunConfig) -> str | None:
    """Find the target that is chosen for the whole run, whatever eval files name; None without a choice."""
    chosen = config.target
    endpoint = "the agent's endpoint" if chosen.endpoint else None
    return endpoint or chosen.function or chosen.name or chosen.model or chosen.provider


async def build_run_plan(
    config: RunConfig, selection: Selection, context: RunContext, *, offline: bool = False
) -> RunPlan:
    """Everything decided. The snapshot is captured last, immediately before the run.

    With `offline`, nothing is contacted and no program starts: a server of tools, the snapshot and variables that are
    not set are left out.

    Raises GateError (usage) for everything that is wrong with files and settings, and GateError (incomplete) for a
    registry or snapshot that is configured and cannot be had. No target is open then.
    """
    inputs = await read_inputs(config, selection, context, offline=offline)
    if _find_chosen_target(config) is None and context.custom_target is None:
        check_target_count(inputs.suites)
    context = replace(context, environment=restore_environment(context.environment))
    async with AsyncExitStack() as opened:
        plan = await _build_plan(config, selection, context, inputs, opened, offline=offline)
        opened.pop_all()
    return plan


async def _build_plan(
    config: RunConfig,
    selection: Selection,
    context: RunContext,
    inputs: RunInputs,
    opened: AsyncExitStack,
    *,
    offline: bool,
) -> RunPlan:
    """Build the plan; `opened` closes its targets. Raises GateError."""
    home, home_notices = build_home(inputs.suites, context.root, context.tmp)
    shared = replace(
        _build_context(config, inputs, context),
        home=home,
        shards=selection.shard.count if selection.shard else 1,
        missing_requirements=MissingRequirements() if offline else None,
    )
    catalog = TargetCatalog(config.target, shared, context.custom_target)
    opened.push_async_callback(catalog.aclose)
    assigned = assign_targets(inputs.suites, catalog, config)
    catalog.learn_secrets(suite.file for suite in inputs.suites)
    check_cases(inputs.suites, assigned)
    target = assigned.main
    suites = skip_ungradable(inputs.suites, config.rubric, assigned.judges)
    base_agent = build_base_agent_target(config, shared, target, suites[0].file, opened)
    run_id, timestamp, resumed = _choose_run_identity(Path(config.output_dir), target, context.resume)
    warnings = check_programs(config, suites, catalog, context.environment)
    targets = assigned.targets
    files = _build_program_files(config, inputs, catalog, (target, *targets.values()), context.root)
    if config.snapshot_command is not None and config.snapshot_enabled is not False:
        files.measure(config.snapshot_command)  # before it runs
    tokens = TokenData(seed=inputs.seed, snapshot=await _read_snapshot(config, shared))
    fingerprints = build_setup_fingerprints(
        suites,
        assigned.judges,
        tokens,
        files,
        digest_contents(home),
        lambda case: targets.get((case.suite, case.target), target),
    )
    how = build_evaluation_setup(
        config,
        files,
        _find_recording_file(config, shared, context),
        base_agent=base_agent.name if base_agent else None,
        judges=assigned.judges,
        mask=shared.redact,
    )
    proxy = None
    if config.model_proxy is not None and not offline:
        from eval_gate.engine.model_proxy import ModelProxy  # loads aiohttp

        proxy = await ModelProxy.connect(config.model_proxy)
        opened.push_async_callback(proxy.aclose)
    calls = () if proxy is None else proxy.settings
    how = replace(how, settings=(*how.settings, *list_target_measures((target, *targets.values())), *calls))
    variables = filter_environment(context.environment, names=config.pass_env)
    notices = (
        *inputs.warnings,
        *shared.recording.warnings,
        *home_notices,
        *catalog.notices,
        *(base_agent.notices if base_agent else describe_unused_base_agent(config)),
        *filter(None, (catalog.describe_unread_list(),)),
        *(one for one in warnings if one not in inputs.warnings),
        *files.notices,
        *iter_missing_sources(suites, tokens),
        *_describe_disabled_recording(config),
        *_describe_sequence(config, proxy, (target, *targets.values())),
        *_describe_missing_tools(assigned, inputs),
    )
    plan = RunPlan(
        run_id=run_id,
        timestamp=timestamp,
        resumed_setup=resumed,
        suites=suites,
        target=target,
        base_agent=base_agent.target if base_agent else None,
        model_proxy=proxy,
        targets=targets,
        judges=assigned.judges,
        environment=variables,
        withheld=WithheldVariables.from_environment(context.environment, variables),
        redactor=shared.redact,
        tools=shared.tools,
        recording=shared.recording,
        keeps_artifacts=home.existing_folder is None,
        rubrics_wait=config.rubric is RubricMode.AFTER_PASS,
        check_baseline_files=inputs.check_baseline_files,
        limits=config.limits,
        concurrency=config.target.concurrency,
        tokens=tokens,
        patterns=config.redact,
        trace_url=config.trace_url,
        case_texts=build_case_texts(suites, tokens, config.redact),
        setup_fingerprints=fingerprints,
        program_files=files,
        agent_programs=_digest_agent_programs((target, *targets.values()), suites, files),
        evaluation_setup=shared.redact.mask_struct(how),
        staleness={suite.file: check_staleness(suite, inputs.registry) for suite in inputs.suites},
        git=context.git,
        shard=selection.shard,
        shard_cut=inputs.shard_cut,
        selections=selection.chosen_cases,
        planned_cases=inputs.planned_cases,
        warnings=tuple(map(shared.redact, notices)),
    )
    return add_evaluated_state(plan, config, context, inputs.registry)


def _describe_sequence(config: RunConfig, proxy: ModelProxy | None, targets: Sequence[Target]) -> tuple[str, ...]:
    """Say that cases run one at a time where a target says otherwise."""
    if proxy is None or config.target.concurrency or not any((target.workers or 1) > 1 for target in targets):
        return ()
    what = "cases run one at a time, because a model call that names no execution belongs to the only open one"
    return (f"{what}; set concurrency if the agent passes on {EXECUTION_HEADER}",)


def _build_context(config: RunConfig, inputs: RunInputs, context: RunContext) -> BuildContext:
    """Build the context in which targets are built, without the folders in which agents work."""
    shared = Path(config.output_dir) / RECORDING_NAME
    recorded = read_recording(shared) if config.recording in {RecordingMode.REPLAY, RecordingMode.AUTO} else None
    stores = ResponseRetention.NONE is not config.limits.keep_responses
    return BuildContext(
        environment=context.environment,
        root=context.root,
        tools=_build_tool_specs(inputs.registry),
        recording=Recording(
            config.recording, shared if stores else None, recorded, _read_baseline_responses(recorded, context)
        ),
        timeout_s=config.limits.timeout_ms / 1000,
        pass_env=config.pass_env,
        secret_policy=context.secret_policy,
        redact=_build_redactor(config, context),
    )


def _read_baseline_responses(recorded: RecordingFile | None, context: RunContext) -> Sequence[RecordedResponse]:
    """Read the responses that the baseline received; without them, the report calls their origin unknown."""
    if recorded is None or not recorded.entries or context.baseline_folder is None:
        return ()
    try:
        return read_recording(context.baseline_folder / RECORDING_NAME).entries
    except GateError:  # the source is unknown then, and the report says so
        return ()


def _find_recording_file(config: RunConfig, shared: BuildContext, context: RunContext) -> str | None:
    """Find the recording, unless it is the baseline's: a program that runs before it is read could replace it."""
    recording = shared.recording
    if not recording.has_earlier_responses or recording.digest == context.baseline_recording_digest:
        return None
    return (Path(config.output_dir) / RECORDING_NAME).as_posix()


def _describe_disabled_recording(config: RunConfig) -> tuple[str, ...]:
    """Return a notice if a recording is configured but responses may not be kept."""
    if config.limits.keep_responses is not ResponseRetention.NONE or config.recording not in {
        RecordingMode.RECORD,
        RecordingMode.AUTO,
    }:
        return ()
    return (f"recording: {config.recording} records nothing, because `keepResponses` is none",)


def _build_tool_specs(registry: ToolRegistry | None) -> tuple[ToolSpec, ...]:
    """Build the tool specifications for a model from the registry, without removed tools."""
    return tuple(
        ToolSpec(name=tool.name, description=tool.description or "", parameters=tool.parameters)
        for tool in (registry.tools if registry else ())
        if tool.status != "removed"
    )


def _describe_missing_tools(assigned: Assignment, inputs: RunInputs) -> tuple[str, ...]:
    """Describe that a model without a tool registry knows no tools, to explain failures in advance."""
    needs_tools = any(
        assigned.get_target(case).takes_stubs
        for suite in inputs.suites
        for case in suite.cases
        if case.skip_reason is None and any(isinstance(spec, _TOOL_EVALUATORS) for spec in case.all_evaluators)
    )
    if inputs.registry is not None or not needs_tools:
        return ()
    return ("no tool registry is configured: the model gets only the tools that cases stub",)


def _build_program_files(
    config: RunConfig, inputs: RunInputs, catalog: TargetCatalog, targets: Sequence[Target], root: Path
) -> ProgramFiles:
    """Build the files of programs that grade or prepare, without those that are compared elsewhere or evaluated."""
    files = ProgramFiles(root, config.grader_files)
    files.set_evals(inputs.eval_files)
    configured = (one.file for one in config.target.sources.values.values() if one.file)
    files.leave_out((config.output_dir, config.policy.waivers or DEFAULT_WAIVERS, *configured, *catalog.list_files()))
    folders = [suite.file for suite in inputs.suites]
    for one in targets:
        programs = one.programs if isinstance(one, MaskedTarget) else None
        if programs is not None:
            files.leave_out_agent(programs.command, list_target_folders(programs, root, folders))
    return files


def _digest_agent_programs(
    targets: Sequence[Target], suites: Sequence[EvalSuite], graders: ProgramFiles
) -> dict[int, JsonValue]:
    """Describe the files of each target's program by their content, for `--resume`."""
    root = graders.root
    files, digests = ProgramFiles(root, repository=graders.repository), dict[int, JsonValue]()
    for target in targets:
        programs = target.programs if isinstance(target, MaskedTarget) else None
        if programs is not None and id(target) not in digests:
            folders = list_target_folders(programs, root, [suite.file for suite in suites])
            digests[id(target)] = files.digest_content([files.measure(programs.command, *folders, by_name=True)])
    return digests


def _choose_run_identity(output_dir: Path, target: Target, resume: str | None) -> tuple[str, str, RunSetup | None]:
    """Choose run id and timestamp, new or of the resumed run, and return them with the setup of that run."""
    if resume is None:
        return str(uuid.uuid4()), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), None
    earlier = read_resumed_run(output_dir, resume)
    if earlier.target.identity != target.identity.identity:
        raise GateError(
            "resume-target-mismatch",
            f"run {resume} evaluated {earlier.target.identity}, not {target.identity.identity}",
            "resume with the same target, or start a new run",
        )
    return earlier.run_id, earlier.timestamp, RunSetup.from_run(earlier)


def check_cases(suites: tuple[EvalSuite, ...], assigned: Assignment) -> None:
    """Check that targets take their cases' stubs, and can run their workspaces, hooks and turns. Raises GateError."""
    cases = [case for suite in suites for case in suite.cases if case.skip_reason is None]
    stub_cases = [case for case in cases if case.stubs is not None and not assigned.get_target(case).takes_stubs]
    if stub_cases:
        raise GateError(
            "unsupported-stubs",
            "cases with stubs need a model: an agent endpoint cannot use stubs",
            "leave these cases out with --case, or move them to a suite that runs against a model",
            problems=[_build_problem(case, f"case {case.id} has stubs", "stubs") for case in stub_cases],
        )
    problems = [
        _build_problem(case, f"case {case.id} has a workspace, and the target {target.identity.name} {why}")
        for case in cases
        if case.workspace is not None
        for target in (assigned.get_target(case),)
        if (why := target.workspace_problem) is not None
    ]
    if problems:
        raise GateError(
            "unsupported-workspace",
            "cases with a workspace need a target that runs one case at a time in a given folder",
            "use a target of provider cli without batches, or leave these cases out with --case",
            problems=problems,
        )
    relative_hooks = {
        id(hook): _build_problem(case, f"{hook.place} is for the target's host, and {target.identity.name} has none")
        for case in cases
        for target in (assigned.get_target(case),)
        for _, hook in case.hooks.list_hooks()
        if hook.is_for_target and target.origin is None
    }
    if relative_hooks:
        raise GateError(
            "unsupported-hook",
            "requests before and after cases with a path alone need a target of provider http",
            "write the whole URL, or run these cases with an HTTP agent",
            problems=[*relative_hooks.values()],
        )
    talks: dict[tuple[str, str], list[EvalCase]] = defaultdict(list)
    for case in cases:
        target = assigned.get_target(case)
        if case.conversation is not None and target.conversation_problem is not None:
            talks[target.identity.name, target.conversation_problem].append(case)
    if talks:
        raise GateError(
            "unsupported-conversation",
            "cases with several turns need a target that can hold a conversation",
            "change the target as said above, or let a target that can hold one run these cases",
            problems=[
                _build_problem(
                    group[0], f"{_name_conversations(group)} several turns, and the target {name} cannot: {why}"
                )
                for (name, why), group in talks.items()
            ],
        )


def _name_conversations(cases: Sequence[EvalCase]) -> str:
    names = format_first_few([case.id for case in cases], _MAX_NAMED)
    return f"case {names} has" if len(cases) == 1 else f"cases {names} have"


def _build_problem(case: EvalCase, what: str, field: str | None = None) -> Problem:
    return Problem(what, case.location.file, case.location.line, field)


async def _read_snapshot(config: RunConfig, shared: BuildContext) -> JsonValue:
    """Capture the snapshot if one is configured and enabled; without it, assertions that need it are skipped."""
    configured = config.snapshot_path is not None or config.snapshot_command is not None
    if config.snapshot_enabled and not configured:
        raise GateError(
            "missing-snapshot-source",
            "snapshotEnabled is true, but no source of the snapshot is set",
            "set snapshotPath (a file or URL) or snapshotCommand",
        )
    is_offline = shared.missing_requirements is not None
    if not configured or config.snapshot_enabled is False or is_offline:
        return None
    variables = filter_environment(shared.environment, names=config.pass_env)
    path, command = config.snapshot_path, config.snapshot_command
    try:
        return await capture_snapshot(
            path=path, command=command, root=shared.root, environment=variables, redact=shared.redact
        )
    except GateError as error:
        hint = (
            WithheldVariables.from_environment(shared.environment, variables).find_hint(command, error.message)
            if command
            else None
        )
        error.hint = hint or error.hint
        raise
