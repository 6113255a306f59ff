"""Values of seed and snapshot tokens, and sources that are missing (tool-forge runner contract)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.config.settings import DEFAULT_SEED_MANIFEST
from eval_gate.errors import ExitCode, GateError, Problem
from eval_gate.files.certificates import build_async_client
from eval_gate.files.file_paths import format_path
from eval_gate.files.reading import read_limited
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.model.specs import evaluator as specs
from eval_gate.process.run import Command, FinishedProgram, ProcessError, run
from eval_gate.text.escape import format_count
from eval_gate.text.quoting import describe_name
from eval_gate.text.redaction import Redactor
from eval_gate.text.sources.json import parse_json
from eval_gate.text.sources.validation_errors import describe_value
from eval_gate.text.tokens import SOURCES, TokenData, find_tokens
from eval_gate.text.untrusted.http_response import DecompressionError, Decompressor
from eval_gate.text.urls import to_public_url

TIME_LIMIT_S: Final = limits.SNAPSHOT_S
MAX_BYTES: Final = limits.SNAPSHOT_BYTES
_MAX_REDIRECTS: Final = 5
_MAX_QUOTE: Final = 200
_MAX_STDERR: Final = 1_000
NO_SEED: Final = f"no seed manifest found ({DEFAULT_SEED_MANIFEST} or seedManifestPath)"
_NO_SOURCE: Final = {
    "seed": NO_SEED,
    "snapshot": "no snapshot source is set (snapshotPath or snapshotCommand)",
}


class _CaptureError(Exception):
    """Snapshot that could not be captured, with the reason."""


def load_seed(path: Path, *, explicit: bool) -> JsonValue:
    """Load the seed manifest, or return None if it does not exist.

    If `explicit`, the user named this file and it must exist (tool-forge behaviour A-16). Raises GateError if it
    does not, if the file cannot be read, or if it is not a JSON object.
    """
    name = describe_name(format_path(path))
    try:
        data = _read_file(path, name)
    except FileNotFoundError as error:
        if not explicit:
            return None
        hint = "create it, or remove --seed-manifest to skip assertions with {{seed:…}}"
        raise GateError("seed-manifest-not-found", f"the seed manifest {name} does not exist", hint) from error
    except OSError as error:
        why = error.strerror
        raise GateError("seed-manifest-unreadable", f"the seed manifest {name} cannot be read: {why}") from error
    except _CaptureError as error:
        raise GateError("seed-manifest-unreadable", f"the seed manifest cannot be read: {error}") from error
    return _parse_object(data, name)


async def capture_snapshot(
    *,
    path: str | None = None,
    command: str | None = None,
    root: Path,
    environment: Mapping[str, str],
    redact: Redactor | None = None,
    time_limit_s: float = TIME_LIMIT_S,
) -> JsonValue:
    """Capture the current values from a file or URL (`path`), or from the output of a command.

    Return None if neither is given. Call this immediately before the run. The shell runs the command in `root`: it
    must come from trusted configuration (tool-forge behaviour A-18). `time_limit_s` is in seconds. Raises GateError
    `conflicting-snapshot-sources` (usage) if both sources are given, and `snapshot-failed` (exit code 3) if no snapshot
    can be captured, because the run cannot be trusted without it.
    """
    if path is not None and command is not None:
        raise GateError(
            "conflicting-snapshot-sources",
            "snapshotPath and snapshotCommand are both set",
            "remove one of them",
        )
    if path is None and command is None:
        return None
    redact = redact or Redactor()
    try:
        if command is not None:
            source = "the output of the snapshot command"
            data = await _run_command(
                Command(
                    command,
                    root,
                    environment,
                    timeout_s=time_limit_s,
                    max_output=MAX_BYTES,
                    end_when_cut=True,
                    mask=redact.mask_bytes,
                )
            )
        else:
            source, data = await _read_source(str(path), root, time_limit_s, redact)
        return redact.mask_json(_parse_object(data, source))
    except _CaptureError as error:
        raise _build_snapshot_error(str(error), ()) from error
    except OSError as error:
        raise _build_snapshot_error(f"{describe_name(path) if path else 'the shell'}: {error.strerror}", ()) from error
    except GateError as error:
        raise _build_snapshot_error(redact(error.message), error.problems) from error


def _build_snapshot_error(what: str, problems: tuple[Problem, ...]) -> GateError:
    return GateError(
        "snapshot-failed",
        f"the snapshot could not be captured: {what}",
        "fix its source, or set snapshotEnabled to false to skip assertions with {{snapshot:…}}",
        problems=problems,
        exit_code=ExitCode.INCOMPLETE,
    )


def _parse_object(data: bytes, source: str) -> JsonValue:
    """Parse `data` as a JSON object. Raises GateError with the source and line of a mistake."""
    value, _ = parse_json(data, source)
    if isinstance(value, dict):
        return value
    raise GateError(
        "invalid-json",
        f"{source} is not a JSON object",
        problems=[Problem(f"expected a mapping, got {describe_value(value)}", file=source, line=1)],
    )


async def _run_command(command: Command) -> bytes:
    """Run the command within its limits of time and output, and return what it prints to stdout."""
    try:
        finished = await run(command)
    except ProcessError as error:
        raise _CaptureError(error.message) from error
    if finished.timed_out:
        raise _CaptureError(f"the command did not finish within {command.timeout_s:g} s{_format_stderr_end(finished)}")
    if finished.stdout.is_truncated:
        raise _CaptureError(f"the command printed more than {command.max_output:,} bytes")
    if finished.code:
        raise _CaptureError(f"the command {finished.ending}{_format_stderr_end(finished)}")
    return finished.stdout.data


def _format_stderr_end(finished: FinishedProgram) -> str:
    """Format the last line of stderr as the end of a sentence, or return an empty text."""
    words = finished.stderr.format_last_line(_MAX_STDERR)
    return f": {words}" if words else ""


async def _read_source(location: str, root: Path, time_limit_s: float, redact: Redactor) -> tuple[str, bytes]:
    """Read a file or URL, and return its name for people and its content."""
    if not location.lower().startswith(("http://", "https://")):
        name = describe_name(location)
        return name, _read_file(root / location, name)
    address = to_public_url(location)
    try:
        async with asyncio.timeout(time_limit_s):
            return address, await _download_source(location, address, time_limit_s, redact)
    except TimeoutError as error:
        raise _CaptureError(f"{address} did not respond within {time_limit_s:g} s") from error


def _read_file(path: Path, name: str) -> bytes:
    if path.exists() and not path.is_file():
        raise _CaptureError(f"{name} is not a file")
    data = read_limited(path, MAX_BYTES, is_generated=True)
    if len(data) > MAX_BYTES:
        raise _build_size_error(name)
    return data


async def _download_source(url: str, address: str, time_limit_s: float, redact: Redactor) -> bytes:
    import httpx

    data = bytearray()
    try:
        async with (
            build_async_client(url, time_limit_s, max_redirects=_MAX_REDIRECTS) as client,
            client.stream("GET", url, headers={"Accept": "application/json"}) as response,
        ):
            unpacker = Decompressor(response.headers.get_list("content-encoding"))
            async for chunk in response.aiter_raw():
                for piece in unpacker.iter_pieces(chunk):
                    data += piece
                    if len(data) > MAX_BYTES:
                        raise _build_size_error(address)
    except DecompressionError as error:
        raise _CaptureError(f"the response of {address} {error}") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _CaptureError(f"{address}: {redact(str(error)) or type(error).__name__}") from error
    if not response.is_success:
        words = " ".join(redact.mask_bytes(bytes(data)).decode("utf-8", "replace").split())[:_MAX_QUOTE]
        raise _CaptureError(f"{address} responded with {response.status_code}: {words}")
    return bytes(data)


def _build_size_error(name: str) -> _CaptureError:
    return _CaptureError(f"{name} is larger than {MAX_BYTES:,} bytes")


def iter_missing_sources(suites: Sequence[EvalSuite], data: TokenData) -> Iterator[str]:
    """Yield a notice for each missing source of values that tokens of these cases need."""
    for source in SOURCES:
        if data.get_source(source) is None:
            needing = sum(_has_token(case, f"{{{{{source}:") for suite in suites for case in suite.cases)
            if needing:
                tokens = f"{format_count(needing, 'case has', 'cases have')} {{{{{source}:…}}}} tokens"
                yield f"{_NO_SOURCE[source]}, and {tokens}: assertions with them are skipped"


def iter_token_texts(spec: specs.EvaluatorSpec) -> Iterator[str]:
    """Yield the texts of an assertion that may contain tokens."""
    match spec:
        case specs.ResponseContains() | specs.ResponseNotContains():
            values: Sequence[JsonValue] = spec.values
        case specs.ResponseContainsAny():
            values = [member for group in spec.groups for member in group]
        case specs.ToolParams() | specs.ResponseFields():
            values = [
                value
                for check in spec.checks
                for value in (check.value if isinstance(check.value, list) else [check.value])
            ]
        case _:
            return
    yield from (value for value in values if isinstance(value, str) and "{{" in value)


def _has_token(case: EvalCase, beginning: str) -> bool:
    return any(
        token.startswith(beginning)
        for spec in case.all_evaluators
        for text in iter_token_texts(spec)
        for token in find_tokens(text)
    )
