"""Keeps the result as an artifact of this run: the next baseline, and what a relay publishes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from runner.action.log import Log
from runner.action.step import Step
from runner.engine.store import RUN_NAME
from runner.github.failure import GitHubError, Kind
from runner.github.upload import Service, archive, upload
from runner.targets.recording import RECORDING_NAME

STEP_HINT = "an actions/upload-artifact step with `path: <result-path's folder>` does the same (docs/baselines.md)"


def store(step: Step, record: Path, log: Log) -> int | None:
    """Upload the run's folder; the artifact's id, or None. Never raises, never fails the gate: the log says why."""
    settings, environment = step.settings, step.environment
    if not settings.upload or not step.plan.stores:
        return None
    if not environment.on_github or environment.results_url is None or environment.runtime_token is None:
        log.commands.warning(f"The result was not stored: there is no artifact service here; {STEP_HINT}")
        log.trail.append("the result was not stored: there is no artifact service here")
        return None
    service = Service(environment.results_url, environment.runtime_token, environment.retention_days)
    try:
        with tempfile.TemporaryDirectory(dir=environment.temporary, prefix="eval-gate-") as folder:
            packed = Path(folder) / "result.zip"
            archive(_files(record), packed)
            number = upload(step.client, service, settings.artifact_name, packed, now=datetime.now(UTC))
    except OSError as error:
        log.commands.warning(f"The result was not stored: {error.strerror}; {STEP_HINT}")
        log.trail.append(f"the result was not stored: {error.strerror}")
        return None
    except GitHubError as error:
        hint = "give each leg of a matrix its own `artifact-name`" if error.kind is Kind.CONFLICT else STEP_HINT
        log.commands.warning(f"The result was not stored: {error}; {hint}")
        log.trail.append(f"the result was not stored: {error}")
        return None
    log.did(f"result stored as artifact {settings.artifact_name} ({number})")
    return number


def _files(record: Path) -> Iterator[tuple[Path, str]]:
    """The record, what people read, and recorded answers; not the journal, which only a run in progress needs."""
    yield record, RUN_NAME
    if (record.parent / RECORDING_NAME).is_file():
        yield record.parent / RECORDING_NAME, RECORDING_NAME
    for file in sorted(record.parent.iterdir()):
        if (
            file.is_file()
            and not file.is_symlink()
            and file != record
            and file.suffix in {".json", ".html", ".xml", ".md"}
        ):
            yield file, file.name
