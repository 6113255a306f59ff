"""Stores the page as an artifact of its own, not packed: GitHub shows such a file in the browser, by one click.

The page is also in the archive with the result. So where it cannot be stored by itself nothing is lost but the click.
"""

from __future__ import annotations

import base64
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from eval_gate.action.log import Log
from eval_gate.action.precedence import TakenError
from eval_gate.action.publishing.artifacts import ArtifactKind, OutgoingArtifact, Stored, put_first, service_of
from eval_gate.action.publishing.store import Storing
from eval_gate.action.step import Step
from eval_gate.github.artifacts.service import OwnArtifact
from eval_gate.github.failure import GitHubError
from eval_gate.model.result import MadeBy

_SIGNED: Final = re.compile(rb"<!-- eval-gate:page ([A-Za-z0-9+/=]{1,4000}) -->\s*\Z")
_TAIL: Final = 5_000
"""Bytes at the end of a page in which its signature is."""


def page_name(artifact_name: str) -> str:
    """What the page is called beside the result of this name. A relay takes `<name>.…` for another gate's result."""
    return f"{artifact_name}-report.html"


def store_page(step: Step, page: Callable[[], bytes], storing: Storing | None, log: Log) -> Stored | None:
    """Store the page beside the result, or by itself where none is stored; None where it cannot be, which is said.

    It follows the result by one call, when that has its name; a result that gets none has been tried for long enough.
    What is in the way is left as it is, another leg's page too: whether that matters, the other publications say.
    """
    service = service_of(step) if step.settings.upload else None
    if service is None:
        return None
    if step.environment.emulated:
        _missed(log, "act keeps archives only", storing)
        return None
    names = step.artifact_names
    if storing is not None:
        name = storing.name()
        if name is None:
            return None
        names = names[names.index(name) :]
    try:
        with tempfile.TemporaryDirectory(dir=step.environment.temporary, prefix="eval-gate-") as folder:
            file = Path(folder) / "report.html"
            file.write_bytes(_signed(page(), step.made_by))
            return put_first(step, service, _PAGE, [page_name(name) for name in names], OutgoingArtifact(file), log)
    except OSError as error:
        _missed(log, str(error.strerror), storing)
    except (GitHubError, TakenError) as error:
        _missed(log, str(error), storing)
    return None


def _missed(log: Log, why: str, storing: Storing | None) -> None:
    """Say it, and where the page is all the same; where the result could not be stored either, that is said already."""
    result = storing.peek() if storing is not None else None
    if storing is None or result is not None:
        otherwise = f"; it is in the artifact {result.name}" if result is not None else ""
        log.did(f"the page was not stored by itself: {why}{otherwise}")


def _signed(page: bytes, maker: MadeBy) -> bytes:
    """The page, and who made it, in a form that no text can end early: a re-run may only replace its own."""
    packed = base64.b64encode(maker.model_dump_json(by_alias=True).encode())
    return page.rstrip() + b"\n<!-- eval-gate:page " + packed + b" -->\n"


def _maker(file: Path, _artifact: OwnArtifact) -> MadeBy | None:
    """Whose signature is below this page; None where there is none that could be ours."""
    with file.open("rb") as stream:
        stream.seek(max(file.stat().st_size - _TAIL, 0))
        match = _SIGNED.search(stream.read())
    if match is None:
        return None
    try:
        return MadeBy.model_validate(json.loads(base64.b64decode(match[1], validate=True)))
    except (ValueError, RecursionError):
        return None


_PAGE = ArtifactKind("page", "text/html", _maker)
