"""The places that a configuration names, held against where may be written, and what may be read and sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from eval_gate.config.settings import RunConfig
from eval_gate.files.place import why_no_file, why_no_folder, why_not_read
from eval_gate.text.quoting import quoted_name

WRITTEN = frozenset({"outputDir", "reports", "exports"})
"""The keys whose values are places that a run writes to."""


SENT = frozenset({"systemPromptPath"})
"""Those whose values are files that a run reads and sends to a target."""


def wrong_places(config: RunConfig, key: str, *, anywhere: bool) -> Iterator[tuple[Sequence[int], str]]:
    """For each place of this key that may not be used: which of its values it is, and why not."""
    prompt = config.target.system_prompt
    if key == "systemPromptPath" and prompt and not anywhere and (why := why_not_read(prompt)):
        yield (), _sentence(prompt, why)
    if key == "outputDir" and (why := why_no_folder(config.output_dir, anywhere=anywhere)):
        yield (), _sentence(config.output_dir, why)
    for index, one in enumerate({"reports": config.reports, "exports": config.exports}.get(key, ())):
        if one.file and (why := wrong_file(one.file, anywhere=anywhere)):
            yield (index,), why


def wrong_file(path: str | Path, *, anywhere: bool) -> str | None:
    """The same for one file, as a sentence; None where nothing speaks against it."""
    why = why_no_file(path, anywhere=anywhere)
    return _sentence(path, why) if why else None


def _sentence(path: str | Path, why: str) -> str:
    return f"{quoted_name(str(path))} {why}"
