"""What the commands of evals and targets need that the action's image does not have: another program, or a package.

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
from eval_gate.text.escape import console_line


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_FILES: Final = 200
MAX_BYTES: Final = 1_000_000
_LONGEST: Final = 160
_PYTHON: Final = re.compile(r"python(3(\.\d+)?)?")
_SHELLS: Final = frozenset({"sh", "bash", "dash"})
IN_IMAGE: Final = _SHELLS | _words(
    "awk base64 basename cat chmod cmp cp cut date diff dirname echo env expr false find grep gzip head id ln ls mkdir"
    " mktemp mv printf pwd readlink realpath rm rmdir sed seq sha256sum sleep sort stat tail tar tee test timeout touch"
    " tr true uname uniq wc xargs"
)
"""Programs of the image, beside Python."""
_IN_SHELL: Final = _words(
    "[ [[ . : alias break case cd command continue do done elif else esac eval exec exit export fi for function if in"
    " local read return set shift source then time trap ulimit umask unset wait while { } !"
)
_BEFORE: Final = frozenset(
    {"env", "exec", "command", "time", "timeout", "nice", "nohup", "!", "if", "then", "do", "while", "else"}
)
"""Words in front of the program that is meant."""
_MISSED: Final = "node npm npx pnpm yarn bun deno tsx uv uvx pipx poetry git curl wget jq ruby go java docker make gcc"
_MISSED_IN_SCRIPT: Final = re.compile(rf"(?m)(?:^|[;&|(`])[ \t]*({_MISSED.replace(' ', '|')})(?=[ \t])")
_SHEBANG: Final = re.compile(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(\S+)")


class ProgramUse(FrozenStruct):
    """One command: a line for the shell or words, where it is written, and the folders it may run in."""

    command: str | tuple[str, ...]
    where: str
    folders: tuple[Path, ...]


def calls_of_suite(suite: EvalSuite) -> Iterator[ProgramUse]:
    """The commands that grade."""
    for case in suite.cases:
        for spec in case.evaluators:
            yield from _calls_of(spec, suite.file)


def _calls_of(spec: EvaluatorSpec, where: str) -> Iterator[ProgramUse]:
    if isinstance(spec, CodeJudge):
        yield ProgramUse(spec.command, where, (Path(spec.cwd),))
    elif isinstance(spec, Composite):
        for member in spec.members:
            yield from _calls_of(member, where)
        if isinstance(spec.aggregator, CodeAggregator):
            yield ProgramUse(spec.aggregator.command, where, (Path(spec.aggregator.cwd),))


def calls_of_targets(
    entries: Iterable[Mapping[str, JsonValue]], where: str, folders: tuple[Path, ...]
) -> Iterator[ProgramUse]:
    """The commands that answer, and those that ask whether they can, which may run in one of these folders."""
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


def missing_in_image(calls: Iterable[ProgramUse], repository: Path) -> tuple[str, ...]:
    """What the image lacks, each as the beginning of a sentence: `evals/check.py imports requests`."""
    found: dict[str, None] = {}
    for call in calls:
        found |= dict.fromkeys(console_line(one)[:_LONGEST] for one in _missing(call, repository))
    return tuple(found)


def _missing(call: ProgramUse, repository: Path) -> Iterator[str]:
    for words in _programs(call.command):
        name = PurePosixPath(words[0]).name
        if _PYTHON.fullmatch(name):
            yield from _of_python(words[1:], call, repository)
        elif "/" in words[0] or _script(words[0], call) is not None:
            script = _script(words[0], call)
            if script is not None:
                yield from _of_script(script, call, repository)
        elif name in _SHELLS:
            for script in filter(None, (_script(word, call) for word in words[1:] if not word.startswith("-"))):
                yield from _of_script(script, call, repository)
        elif name not in IN_IMAGE and not re.search(r"[{}$*?=]", name):
            yield f"{call.where} runs {name}"


def _programs(command: str | tuple[str, ...]) -> Iterator[list[str]]:
    """The programs of a command with their words; what a shell reads otherwise is left out."""
    if not isinstance(command, str):
        if command[:1] and PurePosixPath(command[0]).name in _SHELLS and "-c" in command[1:-1]:
            yield from _programs(command[command.index("-c") + 1])
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
                yield from _named(part)
                part = []
        else:
            part.append(word)


def _named(words: list[str]) -> Iterator[list[str]]:
    while words and (words[0] in _BEFORE or re.match(r"[A-Za-z_]\w*=|\d+[smh]?$", words[0])):
        words = words[1:]
    if words and words[0] not in _IN_SHELL and not words[0].startswith("-"):
        yield words


def _script(word: str, call: ProgramUse) -> Path | None:
    """The file that is meant, where it is there."""
    return next((place for folder in call.folders if _text(place := folder / word) is not None), None)


def _text(file: Path) -> str | None:
    """What a file says; None where it is not there, or no script."""
    try:
        if file.is_file() and file.stat().st_size <= MAX_BYTES:
            return file.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        pass
    return None


def _of_script(script: Path, call: ProgramUse, repository: Path) -> Iterator[str]:
    text = _text(script) or ""
    first = _SHEBANG.match(text)
    program = PurePosixPath(first[1]).name if first else ""
    if _PYTHON.fullmatch(program) or (not program and script.suffix == ".py"):
        yield from _imports(text, script, repository)
    elif program and program not in IN_IMAGE and program not in _SHELLS:
        yield f"{_shown(script, repository)} runs {program}"
    else:
        yield from (f"{_shown(script, repository)} runs {match[1]}" for match in _MISSED_IN_SCRIPT.finditer(text))


def _of_python(words: list[str], call: ProgramUse, repository: Path) -> Iterator[str]:
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        if word == "-m":
            module = following.partition(".")[0]
            if _is_foreign(module, call.folders, repository):
                yield f"{call.where} runs python -m {following}"
            return
        if word == "-c":
            for name in _foreign(following, call.folders, repository):
                yield f"{call.where} imports {name}"
            return
        if not word.startswith("-"):
            script = _script(word, call)
            if script is not None:
                yield from _imports(_text(script) or "", script, repository)
            return


def _imports(text: str, script: Path, repository: Path) -> Iterator[str]:
    """What a script imports that is neither Python's nor its own, and what its own modules do."""
    waiting, seen = [(script, text)], {script}
    while waiting and len(seen) < MAX_FILES:
        file, source = waiting.pop()
        places = (script.parent, file.parent)
        for name in _foreign(source, places, repository):
            yield f"{_shown(file, repository)} imports {name}"
        for name in _imported(source):
            for own in (place / f"{name}.py" for place in (*places, repository)):
                if own not in seen and (content := _text(own)) is not None:
                    seen.add(own)
                    waiting.append((own, content))


def _foreign(source: str, folders: Iterable[Path], repository: Path) -> list[str]:
    return [name for name in _imported(source) if _is_foreign(name, folders, repository)]


def _imported(source: str) -> list[str]:
    """The top-level packages that a source imports, those that it can do without left out."""
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


def _is_foreign(module: str, folders: Iterable[Path], repository: Path) -> bool:
    if not module or module in sys.stdlib_module_names:
        return False
    places = (*folders, repository, repository / "src")
    return not any(os.path.exists(place / name) for place in places for name in (f"{module}.py", module))  # noqa: PTH110


def _shown(file: Path, repository: Path) -> str:
    return file.relative_to(repository).as_posix() if file.is_relative_to(repository) else file.name
