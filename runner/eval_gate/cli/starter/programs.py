"""Finds programs and packages that eval commands need and the action's image does not have.

Files are looked at and nothing is run. What cannot be told is taken to be there: the container is the better place, and
a command that fails in it says so.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import JsonValue

from eval_gate.model.case import EvalSuite
from eval_gate.model.specs.evaluator import CodeAggregator, CodeJudge, Composite, EvaluatorSpec
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import to_console_line


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_FILES: Final = 200
MAX_BYTES: Final = 1_000_000
_MAX_SHOWN: Final = 160
_PYTHON: Final = re.compile(r"python(3(\.\d+)?)?")
_SHELLS: Final = frozenset({"sh", "bash", "dash"})
IN_IMAGE: Final = _SHELLS | _split_words(
    "awk base64 basename cat chmod cmp cp cut date diff dirname echo env expr false find grep gzip head id ln ls mkdir"
    " mktemp mv printf pwd readlink realpath rm rmdir sed seq sha256sum sleep sort stat tail tar tee test timeout touch"
    " tr true uname uniq wc xargs"
)
"""Programs of the image, beside Python."""
_IN_SHELL: Final = _split_words(
    "[ [[ . : alias break case cd command continue do done elif else esac eval exec exit export fi for function if in"
    " local read return set shift source then time trap ulimit umask unset wait while { } !"
)
_PREFIX_WORDS: Final = frozenset(
    {"env", "exec", "command", "time", "timeout", "nice", "nohup", "!", "if", "then", "do", "while", "else"}
)
"""Words in front of the program that is meant."""
_MISSING_PROGRAMS: Final = (
    "node npm npx pnpm yarn bun deno tsx uv uvx pipx poetry git curl wget jq ruby go java docker make gcc"
)
_MISSING_IN_SCRIPT: Final = re.compile(rf"(?m)(?:^|[;&|(`])[ \t]*({_MISSING_PROGRAMS.replace(' ', '|')})(?=[ \t])")
_SHEBANG: Final = re.compile(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(\S+)")


class ProgramUse(FrozenStruct):
    """One command: a shell line or words, where it is written, and its possible folders."""

    command: str | tuple[str, ...]
    source: str
    folders: tuple[Path, ...]


def iter_suite_commands(suite: EvalSuite) -> Iterator[ProgramUse]:
    """Yield the commands that the evaluators of a suite run, and the hooks of its workspaces."""
    for case in suite.cases:
        for _, hook in () if case.workspace is None else case.workspace.hooks.list_hooks():
            yield ProgramUse(hook.command, suite.file, (Path(hook.cwd),))
        for spec in case.evaluators:
            yield from _iter_evaluator_commands(spec, suite.file)


def _iter_evaluator_commands(spec: EvaluatorSpec, where: str) -> Iterator[ProgramUse]:
    if isinstance(spec, CodeJudge):
        yield ProgramUse(spec.command, where, (Path(spec.cwd),))
    elif isinstance(spec, Composite):
        for member in spec.members:
            yield from _iter_evaluator_commands(member, where)
        if isinstance(spec.aggregator, CodeAggregator):
            yield ProgramUse(spec.aggregator.command, where, (Path(spec.aggregator.cwd),))


def iter_target_commands(
    entries: Iterable[Mapping[str, JsonValue]], where: str, folders: tuple[Path, ...]
) -> Iterator[ProgramUse]:
    """Yield the commands of targets and of their health checks.

    Each may run in one of these folders, or below it in the target's own `cwd`.
    """
    for entry in entries:
        own = entry.get("cwd")
        places = (*(folder / own for folder in folders), *folders) if isinstance(own, str) else folders
        checks = entry.get("healthcheck")
        for part in (entry, checks if isinstance(checks, dict) else {}):
            line = part.get("commandTemplate") or part.get("command_template") or part.get("command")
            if isinstance(line, str):
                yield ProgramUse(line, where, places)
        if str(entry.get("provider", "")).lower().startswith("codex"):
            yield ProgramUse(("codex",), where, folders)


def find_missing_in_image(calls: Iterable[ProgramUse], repository: Path) -> tuple[str, ...]:
    """Find the programs and packages that the image lacks for these commands.

    Each is the beginning of a sentence: `evals/check.py imports requests`.
    """
    found: dict[str, None] = {}
    for call in calls:
        found |= dict.fromkeys(to_console_line(one)[:_MAX_SHOWN] for one in _iter_missing(call, repository))
    return tuple(found)


def _iter_missing(call: ProgramUse, repository: Path) -> Iterator[str]:
    for words in _iter_programs(call.command):
        name = PurePosixPath(words[0]).name
        if _PYTHON.fullmatch(name):
            yield from _iter_python_gaps(words[1:], call, repository)
        elif "/" in words[0] or _find_script(words[0], call) is not None:
            script = _find_script(words[0], call)
            if script is not None:
                yield from _iter_script_gaps(script, call, repository)
        elif name in _SHELLS:
            for script in filter(None, (_find_script(word, call) for word in words[1:] if not word.startswith("-"))):
                yield from _iter_script_gaps(script, call, repository)
        elif name not in IN_IMAGE and not re.search(r"[{}$*?=]", name):
            yield f"{call.source} runs {name}"


def _iter_programs(command: str | tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the programs of a command with their words, without the parts that only a shell interprets."""
    if not isinstance(command, str):
        if command[:1] and PurePosixPath(command[0]).name in _SHELLS and "-c" in command[1:-1]:
            yield from _iter_programs(command[command.index("-c") + 1])
        elif command:
            yield list(command)
        return
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return
    part: list[str] = []
    for word in [*words, ";"]:
        if set(word) <= set("();&|<>\n"):
            if "<" not in word and ">" not in word:
                yield from _iter_named_program(part)
                part = []
        else:
            part.append(word)


def _iter_named_program(words: list[str]) -> Iterator[list[str]]:
    while words and (words[0] in _PREFIX_WORDS or re.match(r"[A-Za-z_]\w*=|\d+[smh]?$", words[0])):
        words = words[1:]
    if words and words[0] not in _IN_SHELL and not words[0].startswith("-"):
        yield words


def _find_script(word: str, call: ProgramUse) -> Path | None:
    """Find the file that a word means in the folders of the command.

    Return None if it is not a readable script.
    """
    return next((place for folder in call.folders if _read_script(place := folder / word) is not None), None)


def _read_script(file: Path) -> str | None:
    """Read the text of a script.

    Return None if the file does not exist, is too large, or cannot be read.
    """
    try:
        if file.is_file() and file.stat().st_size <= MAX_BYTES:
            return file.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        pass
    return None


def _iter_script_gaps(script: Path, call: ProgramUse, repository: Path) -> Iterator[str]:
    text = _read_script(script) or ""
    first = _SHEBANG.match(text)
    program = PurePosixPath(first[1]).name if first else ""
    if _PYTHON.fullmatch(program) or (not program and script.suffix == ".py"):
        yield from _iter_import_gaps(text, script, repository)
    elif program and program not in IN_IMAGE and program not in _SHELLS:
        yield f"{_format_path(script, repository)} runs {program}"
    else:
        yield from (
            f"{_format_path(script, repository)} runs {match[1]}" for match in _MISSING_IN_SCRIPT.finditer(text)
        )


def _iter_python_gaps(words: list[str], call: ProgramUse, repository: Path) -> Iterator[str]:
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        if word == "-m":
            module = following.partition(".")[0]
            if _is_third_party(module, call.folders, repository):
                yield f"{call.source} runs python -m {following}"
            return
        if word == "-c":
            for name in _list_third_party(following, call.folders, repository):
                yield f"{call.source} imports {name}"
            return
        if not word.startswith("-"):
            script = _find_script(word, call)
            if script is not None:
                yield from _iter_import_gaps(_read_script(script) or "", script, repository)
            return


def _iter_import_gaps(text: str, script: Path, repository: Path) -> Iterator[str]:
    """Yield the imports of a script that are neither Python's nor its own, each as a sentence.

    The modules of the repository that it imports are searched as well.
    """
    waiting, seen = [(script, text)], {script}
    while waiting and len(seen) < MAX_FILES:
        file, source = waiting.pop()
        places = (script.parent, file.parent)
        for name in _list_third_party(source, places, repository):
            yield f"{_format_path(file, repository)} imports {name}"
        for name in _list_imports(source):
            for own in (place / f"{name}.py" for place in (*places, repository)):
                if own not in seen and (content := _read_script(own)) is not None:
                    seen.add(own)
                    waiting.append((own, content))


def _list_third_party(source: str, folders: Iterable[Path], repository: Path) -> list[str]:
    return [name for name in _list_imports(source) if _is_third_party(name, folders, repository)]


def _list_imports(source: str) -> list[str]:
    """List the top-level packages that a source imports, without optional imports.

    An import is optional if it stands in a `try` that catches an import error. Return an empty list if the
    source cannot be parsed.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    tried = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        and any("Import" in ast.dump(handler.type) for handler in node.handlers if handler.type)
        for part in node.body
        for inner in ast.walk(part)
    }
    names: dict[str, None] = {}
    for node in ast.walk(tree):
        if id(node) in tried:
            continue
        if isinstance(node, ast.Import):
            names |= dict.fromkeys(one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names[node.module.partition(".")[0]] = None
    return list(names)


def _is_third_party(module: str, folders: Iterable[Path], repository: Path) -> bool:
    if not module or module in sys.stdlib_module_names:
        return False
    places = (*folders, repository, repository / "src")
    return not any(os.path.exists(place / name) for place in places for name in (f"{module}.py", module))  # noqa: PTH110


def _format_path(file: Path, repository: Path) -> str:
    return file.relative_to(repository).as_posix() if file.is_relative_to(repository) else file.name
