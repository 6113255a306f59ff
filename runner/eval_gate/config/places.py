"""The places that a configuration names, held against where may be written, and what may be read and sent."""

from __future__ import annotations

from collections.abc import Iterator

from eval_gate.config.settings import RunConfig
from eval_gate.files.place import why_no_file, why_no_folder, why_not_read

WRITTEN = frozenset({"outputDir", "reports", "exports"})
"""The keys whose values are places that a run writes to."""


SENT = frozenset({"systemPromptPath"})
"""Those whose values are files that a run reads and sends to a target."""


def wrong_places(config: RunConfig, key: str, *, anywhere: bool) -> Iterator[tuple[str, str]]:
    """For each place of this key that may not be used: which of its values it is (`[1]`), and why not."""
    if key == "systemPromptPath" and config.system_prompt_path and not anywhere:
        why = why_not_read(config.system_prompt_path)
        if why:
            yield "", _sentence(config.system_prompt_path, why)
    if key == "outputDir":
        why = why_no_folder(config.output_dir, anywhere=anywhere)
        if why:
            yield "", _sentence(config.output_dir, why)
    for index, text in enumerate({"reports": config.reports, "exports": config.exports}.get(key, ())):
        file = text.partition("=")[2]
        why = why_no_file(file, anywhere=anywhere) if file else None
        if why:
            yield f"[{index}]", _sentence(file, why)


def wrong_file(path: str, *, anywhere: bool) -> str | None:
    """The same for one file, as a sentence; None where nothing speaks against it."""
    why = why_no_file(path, anywhere=anywhere)
    return _sentence(path, why) if why else None


def _sentence(path: str, why: str) -> str:
    return f'"{path[:200]}" {why}'
