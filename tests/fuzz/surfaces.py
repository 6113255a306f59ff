"""Everything that reads what strangers wrote, as functions of bytes: what the fuzzer calls, and what must hold.

A surface returns, or raises one of the errors that are sentences for people. Anything else is a finding, and so is an
output that is not bounded, a text that UTF-8 cannot hold, or an escape that lets through what it exists for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType

import msgspec

from eval_gate.action.relay import recompute_result
from eval_gate.config.loader import load_config
from eval_gate.config.policy import Policy
from eval_gate.config.settings import ResultsFormat, RunConfig
from eval_gate.drafts.observation import ObservationSet, mask_observations
from eval_gate.drafts.sources.json_log import read_log
from eval_gate.drafts.sources.request_mapping import RequestContent, RequestMapping
from eval_gate.drafts.sources.source_messages import PromptError
from eval_gate.drafts.sources.traces import read_traces
from eval_gate.engine.journal import read_lines
from eval_gate.errors import GateError
from eval_gate.evaluators.judge.reply import read_verdict
from eval_gate.external_results.loader import load_external_results
from eval_gate.external_results.score_rules import ScoreRules
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import find_eval_files, load_suites
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.gate.waivers.waive_command import parse_commands
from eval_gate.gate.waivers.waiver_file import parse_waivers
from eval_gate.github.check_runs import CheckOutput, CheckRun
from eval_gate.github.event import read_event
from eval_gate.github.failure import ErrorResponse, build_refusal_error
from eval_gate.model.result import CaseResult, GitFacts
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import render
from eval_gate.reports.wording.problems import render_error
from eval_gate.results.archive import extract_top_entry, find_top_entry
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import HISTORY_NAME, parse_history
from eval_gate.results.run_reader import read_archived_run, read_history, read_run
from eval_gate.session.external_cases import build_case_result
from eval_gate.staleness.registry_loader import load_registry
from eval_gate.targets.base import RetryPolicy, TargetError
from eval_gate.targets.command.programs import ProgramName, find_failure, read_stream
from eval_gate.targets.command.response import parse_response
from eval_gate.targets.http.protocols import PRESETS, STREAMED_PRESETS
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.model.providers.chat import parse_arguments
from eval_gate.targets.model.recording import read_recording
from eval_gate.targets.response.reader import ResponseReader
from eval_gate.targets.response.stream import StreamCollector
from eval_gate.targets.target_list import read_targets
from eval_gate.text import escape, safe_output
from eval_gate.text.command_template import CommandTemplate
from eval_gate.text.dotted_path import PathError, get_by_path
from eval_gate.text.judge_template import find_template_problem, find_unknown_variables, list_variables
from eval_gate.text.redaction import Redactor
from eval_gate.text.retry_after import parse_retry_after
from eval_gate.text.safe_output import TextFormat
from eval_gate.text.shell import format_shell_line
from eval_gate.text.tokens import TokenData, find_tokens, find_unknown_tokens, resolve_members, resolve_tokens
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.untrusted.http_response import DecompressionError, Decompressor

TODAY = date(2026, 11, 22)
SECRET = 'k/3+y "\\=abcdefgh'
DRAFT_TARGETS = tuple(
    HttpSettings.model_validate({"name": "a", "url": "http://127.0.0.1/chat", **settings})
    for settings in (
        {},
        {"agentProtocol": "openai-chat"},
        {"agentProtocol": "vercel-ai"},
        {"requestTemplate": ["Case {{caseId}} asks: {{message}}.", {"thread": "{{session}}"}]},
        {"form": {"q": "{{message}}"}},
    )
)
MOST_LINES = 60
MOST_CHARACTERS = 5_000
_PLACES = {"root": Path(tempfile.gettempdir())}


def in_folder(folder: Path) -> None:
    """Where surfaces leave the one file that they read."""
    _PLACES["root"] = folder
    os.chdir(folder)


def _file(name: str, data: bytes) -> Path:
    file = _PLACES["root"] / name
    file.write_bytes(data)
    return file


def _said(error: GateError) -> None:
    """What a person would see of it is bounded, and is text."""
    lines = list(render_error(error))
    assert len(lines) <= MOST_LINES, f"{len(lines)} lines"
    for line in lines:
        assert len(line) <= MOST_CHARACTERS, f"a line of {len(line)} characters"
        assert "\n" not in line


@contextlib.contextmanager
def _sentences():
    try:
        yield
    except GateError as error:
        _said(error)
    except TargetError as error:
        assert len(str(error)) <= MOST_CHARACTERS


def _config(name: str) -> Callable[[bytes], None]:
    def surface(data: bytes) -> None:
        with _sentences():
            repr(load_config({}, {}, _file(name, data))).encode()

    return surface


def _targets(data: bytes) -> None:
    _file("targets.yaml", data)
    with _sentences():
        found = read_targets("targets.yaml", _PLACES["root"])
        for name in [None, *found._names[:3]]:
            with contextlib.suppress(GateError):
                found.resolve_target(name, {"A": "b"})


def _evals(name: str) -> Callable[[bytes], None]:
    def surface(data: bytes) -> None:
        _file(name, data)
        for strict in (False, True):
            with _sentences():
                for suite in load_suites(
                    find_eval_files([name], _PLACES["root"]), _PLACES["root"], ReadOptions(strict=strict)
                ):
                    msgspec.json.encode(suite).decode()
                    assert len(suite.warnings) <= 1_000

    return surface


def _registry(name: str) -> Callable[[bytes], None]:
    def surface(data: bytes) -> None:
        _file(name, data)
        with _sentences():
            asyncio.run(load_registry(name, _PLACES["root"]))

    return surface


def _stored(data: bytes) -> None:
    _file("run.json", data)
    with _sentences():
        run = read_run("run.json", _PLACES["root"])
        claimed = recompute_result(run, GitFacts(sha="a" * 40, repository="o/r"))
        for one in (run, decide_verdict(claimed, GateInputs(Baseline(run, "main"), Policy()))):
            msgspec.json.encode(one).decode()
            for form in ("md", "html", "junit", "console"):
                render(form, one, ReportContext()).encode()


def _archive(data: bytes) -> None:
    """As an artifact is read: the run, what lies beside it, and the history by itself."""
    file = _file("artifact.zip", data)
    with _sentences():
        run = read_archived_run(file, "artifact 1")
        msgspec.json.encode(run).decode()
    with _sentences():
        read_history(str(file))
    kept = find_top_entry(file, HISTORY_NAME, 10_000)
    assert kept is None or len(kept) <= 10_000
    taken = _PLACES["root"] / "taken"
    taken.unlink(missing_ok=True)
    assert bool(extract_top_entry(file, HISTORY_NAME, taken, 10_000)) == (kept is not None) == taken.exists()


def _headers(data: bytes) -> None:
    """The head of an answer: how it is packed, how long to wait, and GitHub's clock. The first line is the status."""
    first, *lines = data.decode("latin-1").split("\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    status = int(first) if first.isascii() and first.isdecimal() and len(first) <= 3 else 429
    with contextlib.suppress(DecompressionError):
        list(Decompressor([headers.get("content-encoding", "")]).iter_pieces(b"x"))
    assert 0 <= RetryPolicy().compute_delay_s(1, parse_retry_after(headers.get("retry-after", ""))) <= 60
    error = build_refusal_error(ErrorResponse(status, headers, headers.get("message", "")), "reading a run")
    assert error.wait_s is None or math.isfinite(error.wait_s)
    assert len(str(error)) <= MOST_CHARACTERS


def _ledger(data: bytes) -> None:
    with _sentences():
        ledger = parse_history(data, "ledger")
        for key in list(ledger.iter_keys())[:50]:
            ledger.get_case(key).decode_entries()


def _waivers(data: bytes) -> None:
    with _sentences():
        parse_waivers(data, TODAY, shown_as="waivers.yaml")


def _lines(read: Callable[[Path], object], name: str) -> Callable[[bytes], None]:
    def surface(data: bytes) -> None:
        with _sentences():
            found = read(_file(name, data))
            list(found)  # type: ignore[call-overload]

    return surface


def _brought(data: bytes) -> None:
    """As another tool's results are read. What is made of them without a look is what a look would have made."""
    _file("results", data)
    with _sentences():
        found = load_external_results(["results"], ResultsFormat.AUTO, ScoreRules((), 0.7))
        for rows in list(found.cases.values())[:50]:
            case = build_case_result(rows, (), None, RunConfig(), max_reruns=6)
            assert msgspec.json.decode(msgspec.json.encode(case).decode(), type=CaseResult) == case
        assert all(len(note) <= MOST_CHARACTERS for note in found.notes)


def _draft_source(read: Callable[[Path], ObservationSet], name: str) -> Callable[[bytes], None]:
    """As the sources of drafts are read: what is kept can be stored, and is masked."""

    def surface(data: bytes) -> None:
        with _sentences():
            found = read(_file(name, data))
            mask_observations(found, Redactor([SECRET]))
            assert all(len(note) <= MOST_CHARACTERS for note in found.notes)
            for one in found.observations:
                assert one.question.encode().strip()
                msgspec.json.encode((one.earlier_messages, one.responses, one.errors)).decode()

    return surface


def _draft_request(data: bytes) -> None:
    """As the recording proxy reads the body of a client's request."""
    for described in DRAFT_TARGETS:
        with contextlib.suppress(PromptError):
            RequestMapping(described).parse_prompt(RequestContent("POST", "/chat", data)).text.encode()


def _event(data: bytes) -> None:
    with _sentences():
        read_event("pull_request", _file("event.json", data))


_WIRES = [
    *(
        ResponseReader(HttpSettings.model_validate({"name": "a", "url": "http://a", "agentProtocol": name}))
        for name in PRESETS
    ),
    ResponseReader(
        HttpSettings.model_validate({"name": "a", "url": "http://a", "responsePath": "a.0.b", "toolCallsPath": "c"})
    ),
]


_STREAMS = [
    HttpSettings.model_validate({"name": "a", "url": "http://a", "agentProtocol": name, "responseFormat": kind})
    for name, kind in (
        *STREAMED_PRESETS,
        ("eval-gate", "sse"),
        ("eval-gate", "ndjson"),
        ("ag-ui", "sse"),
        ("vercel-ai", "sse"),
    )
]


def _wire(data: bytes) -> None:
    for wire in _WIRES:
        with _sentences():
            msgspec.json.encode(wire.read(data, 1.0)).decode()
    for settings in _STREAMS:
        with _sentences():
            collector = StreamCollector(settings, ResponseReader(settings), lambda event: event)
            _ = collector.feed(data[: len(data) // 2]) or collector.feed(data[len(data) // 2 :])
            msgspec.json.encode(collector.build_response(1.0)).decode()


def _outputs(data: bytes) -> None:
    text = data.decode("utf-8", "replace")  # as a program's output is
    with _sentences():
        msgspec.json.encode(parse_response(text)).decode()
    for name in ProgramName:
        with _sentences():
            msgspec.json.encode(read_stream(name, text)).decode()
        find_failure(name, text)
    read_verdict(text)
    with _sentences():
        json.dumps(parse_arguments(text), ensure_ascii=False).encode()


def _json(data: bytes) -> None:
    try:
        value = parse_untrusted_json(data)
    except UntrustedJsonError as error:
        assert len(str(error)) <= MOST_CHARACTERS
        return
    json.dumps(value, ensure_ascii=False).encode()
    with contextlib.suppress(PathError):
        get_by_path(value, "a.0.b")


def _packed(data: bytes) -> None:
    kind, _, rest = data.partition(b"\n")
    with contextlib.suppress(DecompressionError):
        unpacker = Decompressor([kind.decode("latin-1")])
        size = 0
        for piece in unpacker.iter_pieces(rest):
            size += len(piece)
            assert len(piece) <= max(len(rest), 65_536)
            if size > 1_000_000:
                break


_DATA = TokenData(seed={"a": [1, {"b": None}], "c": "d"}, snapshot={"e": {"f": True}})


def _tokens(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    find_tokens(text)
    find_unknown_tokens(text)
    resolve_tokens(text, _DATA)
    resolve_members(text, _DATA)
    list_variables(text)
    find_template_problem(text)
    find_unknown_variables(text)
    with contextlib.suppress(ValueError):
        CommandTemplate.from_command(text)
    with contextlib.suppress(PathError):
        get_by_path({"a": [1, {"b": None}]}, text)
    for command in parse_commands(text):
        assert len(repr(command)) < 100_000
    state = CheckRun(id=1, output=CheckOutput(summary=text)).state
    assert state is None or len(repr(state)) < 10_000


def _escapes(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    for shown in (
        escape.to_one_line(text),
        escape.to_console_line(text),
        escape.format_code_span(text),
        escape.format_code_cell(text),
    ):
        assert "\n" not in shown
        assert "\x1b" not in shown
        assert len(shown) <= MOST_CHARACTERS
    assert "<" not in escape.escape_html(text)
    assert "<" not in escape.escape_markdown(text).replace("\\<", "")
    escape.format_code_block(text)
    escape.to_comment_key(text)
    format_shell_line([text])
    assert "##[" not in safe_output.neutralize_text(text)
    assert json.loads(safe_output.neutralize_json(json.dumps(text))) == text
    safe_output.neutralize_markup(text)
    safe_output.reveal_all_invisible(text)
    masked = Redactor([SECRET])(text)
    assert SECRET not in masked
    assert TextFormat.TEXT


SURFACES: Mapping[str, Callable[[bytes], None]] = MappingProxyType(
    {
        "config-json": _config("eval-gate.json"),
        "config-yaml": _config("eval-gate.yaml"),
        "targets": _targets,
        "evals-json": _evals("a.golden.json"),
        "evals-yaml": _evals("a.yaml"),
        "evals-jsonl": _evals("a.jsonl"),
        "registry-json": _registry("tools.json"),
        "registry-typescript": _registry("a.tool.ts"),
        "stored": _stored,
        "archive": _archive,
        "headers": _headers,
        "ledger": _ledger,
        "waivers": _waivers,
        "draft-log": _draft_source(read_log, "agent.log"),
        "draft-request": _draft_request,
        "draft-traces": _draft_source(read_traces, "traces.json"),
        "journal": _lines(read_lines, "cases.jsonl"),
        "recording": _lines(lambda file: read_recording(file).entries, "recording.jsonl"),
        "event": _event,
        "results-archive": _brought,
        "results-csv": _brought,
        "results-json": _brought,
        "results-junit": _brought,
        "results-lines": _brought,
        "wire": _wire,
        "outputs": _outputs,
        "foreign-json": _json,
        "packed": _packed,
        "tokens": _tokens,
        "escapes": _escapes,
    }
)
