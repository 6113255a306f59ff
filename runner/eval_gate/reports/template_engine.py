"""Jinja environment of the reports: strict names, HTML escaping and a cache of compiled templates.

A template is compiled once on a machine and stored with the compiled modules of Python: to compile the templates of a
job takes longer than its verdict.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Final

from eval_gate.reports.wording import numbers
from eval_gate.text import escape
from eval_gate.text.escape import format_count
from eval_gate.text.safe_output import reveal_all_invisible

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment

CACHE_FOLDER: Final = Path(__file__).parent / "__pycache__"
"""Folder of compiled templates, which differ between versions of Python."""


def build_environment(
    filters: Mapping[str, Callable[..., object]], *, html: bool, folder: str = "templates"
) -> Environment:
    """Build the template environment for HTML, which escapes itself, or for Markdown.

    In Markdown templates, filters escape all untrusted text; a test checks that they do. Both kinds have the
    filters for numbers; `filters` adds those that only some templates need. `folder` is the folder of the
    templates.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("eval_gate.reports", folder),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not html,
        finalize=_make_visible if html else None,
        autoescape=html,  # noqa: S701 (Markdown is escaped by filters of its own)
        bytecode_cache=_build_bytecode_cache(html=html),
    )
    of_numbers = (
        numbers.format_percent,
        numbers.format_signed,
        numbers.format_seconds,
        numbers.format_money,
        numbers.format_score,
    )
    environment.filters.update({one.__name__: one for one in of_numbers})
    if html:
        environment.filters["line"] = escape.to_one_line
    else:
        environment.filters |= {
            "code": escape.format_code_span,
            "code_cell": escape.format_code_cell,
            "text": escape.escape_markdown,
        }
    environment.filters.update(filters)
    environment.globals["count"] = format_count
    return environment


def _build_bytecode_cache(*, html: bool) -> BytecodeCache:
    """Build the cache of compiled templates, which belong to one version of the engine."""
    import jinja2

    class TemplateCache(jinja2.FileSystemBytecodeCache):
        def get_source_checksum(self, source: str) -> str:
            return super().get_source_checksum("\0".join((jinja2.__version__, str(html), source)))

        def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
            try:
                super().load_bytecode(bucket)
            except (OSError, EOFError, ValueError, UnpicklingError):  # a disk was full, or there are no folders here
                bucket.reset()

        def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
            if sys.dont_write_bytecode:
                return
            with suppress(OSError):  # a folder without write access is no error, as with the cache of Python itself
                CACHE_FOLDER.mkdir(exist_ok=True)
                super().dump_bytecode(bucket)

    return TemplateCache(str(CACHE_FOLDER), f"template-%s.{sys.implementation.cache_tag}")


def _make_visible(value: object) -> object:
    """Replace invisible characters in a text, so that none reverses or hides the text next to it."""
    return reveal_all_invisible(value) if type(value) is str else value


def tidy_markdown(text: str) -> str:
    """Reduce blank lines of Markdown to one, outside of fences, and end it with one line break."""
    lines: list[str] = []
    fence: str | None = None
    for line in text.splitlines():
        if fence is None and line.startswith("~~~"):
            fence = line[: len(line) - len(line.lstrip("~"))]
        elif fence is not None and line == fence:
            fence = None
        if line.strip() or fence or (lines and lines[-1]):
            lines.append(line if fence else line.rstrip())
    return "\n".join(lines).strip() + "\n"
