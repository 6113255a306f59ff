"""Reads the observations of `eval-gate draft` from a log, traces, results of another tool or a recording proxy."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from eval_gate.cli.repository.draft_call import DraftCall, DraftMode
from eval_gate.cli.terminal.console import print_message
from eval_gate.config.settings import RunConfig
from eval_gate.drafts.observation import ObservationSet
from eval_gate.drafts.observation_masking import mask_observations
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.errors import GateError, Problem
from eval_gate.files.file_paths import DRAFT_RECORDING
from eval_gate.files.writing import remove_file
from eval_gate.session.case_observations import require_responses
from eval_gate.session.tool_reruns import build_redactor
from eval_gate.text.quoting import quote_value
from eval_gate.text.redaction import Redactor


def read_source(call: DraftCall, mode: DraftMode, config: RunConfig) -> ObservationSet:
    """Read what the source of this call holds, with secrets and the matches of `redact` masked. Raises GateError."""
    require_responses(config)
    redact = _build_redactor(config)
    try:
        found = _read_mode(call, mode, config, redact)
    except GateError as error:  # it may quote the source
        error.mask(redact.mask_message)
        raise
    return mask_observations(found, redact, config.redact)


def discard_recording(config: RunConfig) -> None:
    """Remove the journal of the proxy, after its drafts are written. Raises GateError."""
    journal = _get_journal(config)
    if journal.exists():
        remove_file(journal)


def _read_mode(call: DraftCall, mode: DraftMode, config: RunConfig, redact: Redactor) -> ObservationSet:
    match mode:
        case DraftMode.LOG if call.from_log is not None:
            from eval_gate.drafts.sources.json_log import read_log

            return read_log(call.from_log, parse_fields(call.fields))
        case DraftMode.TRACES if call.from_traces is not None:
            from eval_gate.drafts.sources.traces import read_traces

            return read_traces(call.from_traces)
        case DraftMode.RESULTS:
            from eval_gate.drafts.sources.results import read_results

            return read_results(call.from_results, config.results.format, config.results.encoding)
        case DraftMode.PROXY if call.port is not None:
            return _record(call.port, config, redact)
        case _:
            raise AssertionError(mode)


def _build_redactor(config: RunConfig) -> Redactor:
    """Build a redactor that masks the secrets in this environment, and every variable that programs are given."""
    redact = build_redactor(RunContext(Path.cwd(), os.environ))
    redact.add_secrets(os.environ[name] for name in config.pass_env if name in os.environ)
    return redact


def _record(port: int, config: RunConfig, redact: Redactor) -> ObservationSet:
    """Record the chosen HTTP target until a signal. Raises GateError."""
    from eval_gate.drafts.sources.proxy import ProxyRecording, record_proxy
    from eval_gate.process.signals import run_async
    from eval_gate.targets.build_context import BuildContext
    from eval_gate.targets.catalog import TargetCatalog
    from eval_gate.targets.http.settings import HttpSettings
    from eval_gate.text.urls import iter_url_secrets

    context = BuildContext(environment=os.environ, root=Path.cwd(), redact=redact)
    settings = TargetCatalog(config.target, context).resolve_target().settings
    if not isinstance(settings, HttpSettings):
        raise GateError(
            "invalid-proxy",
            f"the proxy records only agents over HTTP, and the target is of the kind {settings.provider}",
            "name the agent: --agent-endpoint http://127.0.0.1:8000/chat",
        )
    redact.add_secrets(iter_url_secrets(settings.url.open()))
    recording = ProxyRecording(_get_journal(config), redact, config.redact, print_message)
    found = run_async(record_proxy(port, settings, recording))
    if not found.observations:
        discard_recording(config)
    return found


def _get_journal(config: RunConfig) -> Path:
    return Path(config.output_dir) / DRAFT_RECORDING


def parse_fields(field_options: Sequence[str]) -> Mapping[str, str]:
    """Parse the values of `--field`, each NAME=PATH. Raises GateError `unknown-value` with every problem."""
    found: dict[str, str] = {}
    problems: list[Problem] = []
    for text in field_options:
        name, equals, path = text.partition("=")
        if not equals or not name.strip() or not path.strip():
            problems.append(Problem(f"{quote_value(text)} is not NAME=PATH", field="--field"))
        elif name.strip() in found:
            problems.append(Problem(f"{quote_value(name.strip())} is given twice", field="--field"))
        else:
            found[name.strip()] = path.strip()
    if problems:
        hint = "write such as --field question=request.text"
        raise GateError("unknown-value", "--field needs NAME=PATH", hint, problems=problems)
    return found
