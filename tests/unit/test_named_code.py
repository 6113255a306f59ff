"""Files, modules and what is in them, named in documentation, docstrings and comments: they are still there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import eval_gate

PACKAGE, ROOT = Path(eval_gate.__file__).parent, Path(__file__).parents[2]
ROOMS = {one.stem for one in PACKAGE.iterdir() if one.stem[0] != "_" and (one.suffix == ".py" or one.is_dir())}
FILE = re.compile(r"`((?:[\w-]+/)+\w+\.py)`")
DOTTED = re.compile(rf"`(?:eval_gate\.)?((?:{'|'.join(sorted(ROOMS))})(?:\.\w+)+)(?:\(\))?`")
FILE_NAME = re.compile(r"\.(?:py|jsonl?|ya?ml|md)$")
OTHERS = {"process.execve", "session.open_session", "sandbox.Sandbox"}  # of Node; entrances, named from their room on
PAGES = {*(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "contract" / "security.md"}

NAME = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)*)(?:\(\))?`")
COMMENT = re.compile(r"(?:^| )# ")
NOT_OURS = {
    "of AgentV": "aggregateTrials batchSize evalFileHash executeWorkspaceScript evaluatorProviderRequest maxTurns"
    " runEvalCaseWithTrials totalDurationMs wallMs desk.eval.yaml",
    "of result files": "KEY_result f1_result num_repetitions promptId subTest to_pandas",
    "of protocols and systems": "AnyValue JSON.stringify __owner_action __owner_action_2 author_association"
    " content_filter mem neutral setsid toolkit",
    "of our JSON, where a camel's hump stands for an underscore": "maxScoreDrop newPasses scoreDrop",
    "examples of a text": "Kim Lisbon Z_AI escalate issue_refund openingHours v2.1.3",
    "a variable of a setting": "EVAL_GATE_TIMEOUT_MS",
}
"""Names in backticks that nothing of the package is called."""


def iter_modules() -> Iterator[tuple[Path, ast.Module, str, set[str]]]:
    """Yield each module of the package, its tree, its docstrings and comments, and the words of its code."""
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
        strings = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ]
        lines = text.splitlines()
        for one in strings:
            lines[one.lineno - 1 : one.end_lineno] = [""] * (one.end_lineno - one.lineno + 1)
        parts = [COMMENT.split(line, maxsplit=1) for line in lines]
        names = {
            *file.relative_to(PACKAGE).with_suffix("").parts,
            *re.findall(r"\w+", "\n".join(one[0] for one in parts)),
        }
        yield file, tree, "\n".join([*(one.value for one in strings), *(one[1] for one in parts if one[1:])]), names


def find_members(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """Find what each class has, with what it inherits from another of them."""
    classes = {node.name: node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}

    def list_members(node: ast.ClassDef) -> set[str]:
        members = {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
        for one in ast.walk(node):
            members.update([one.id] if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) else [])
            members.update([one.attr] if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) else [])
        bases = (classes.get(ast.unparse(base).rpartition(".")[2]) for base in node.bases)
        return members.union(*(list_members(base) for base in bases if base is not None and base is not node))

    return {name: list_members(node) for name, node in classes.items()}


def named(pattern: re.Pattern[str]) -> Iterator[tuple[str, Path]]:
    """What is named so, each with where."""
    sources = [file for folder in (PACKAGE, ROOT / "benchmarks") for file in folder.rglob("*.py")]
    for file in (*PAGES, *sources, *(ROOT / "tests").rglob("test_*.py")):
        yield from ((found, file) for found in pattern.findall(file.read_text(encoding="utf-8")))


def is_there(dotted: str) -> bool:
    """Whether these are a room, a module in it, or what that module defines; of a class any member."""
    place, names = PACKAGE, dotted.split(".")
    while names and (place / names[0]).is_dir():
        place /= names.pop(0)
    if not names:
        return True
    module = (place / names.pop(0)).with_suffix(".py")
    if not module.is_file():
        return False
    text = module.read_text(encoding="utf-8")
    return all(re.search(rf"^ *(?:(?:async )?def |class )?{name}\b[(:\[ ]", text, re.MULTILINE) for name in names)


def test_files__named_with_their_folder__are_there() -> None:
    paths = {
        path.relative_to(ROOT).as_posix()
        for top in ("runner", "tests", "benchmarks", "requirements")
        for path in (ROOT / top).rglob("*.py")
    }
    found = [(one, file) for one, file in named(FILE) if "/targets/echo/" not in one]  # a worked example adds it
    assert len(found) > 100
    assert [(one, file) for one, file in found if not any(f"/{path}".endswith(f"/{one}") for path in paths)] == []


def test_modules__named_with_their_room__are_there_with_what_is_named_of_them() -> None:
    found = [(one, file) for one, file in named(DOTTED) if not FILE_NAME.search(one) and one not in OTHERS]
    assert len(found) > 3
    assert [(one, file) for one, file in found if not is_there(one)] == []


def test_is_there__of_what_was_renamed__says_no() -> None:
    assert is_there("engine.case_result.join_trials")
    assert is_there("engine.case_result")
    assert not is_there("engine.silence")
    assert not is_there("engine.trials.join_trials")
    assert not is_there("model.base.made")


def test_names__in_backticks_of_docstrings_and_comments__are_those_of_something() -> None:
    modules = list(iter_modules())
    known = set[str]().union(*(names for _, _, _, names in modules))
    for template in PACKAGE.rglob("*.j2"):
        known.update(re.findall(r"\w+", template.read_text(encoding="utf-8")))
    known.update(word for words in NOT_OURS.values() for name in words.split() for word in name.split("."))
    members = find_members(tree for _, tree, _, _ in modules)
    found = [(name.split("."), file) for file, _, prose, _ in modules for name in NAME.findall(prose)]
    assert len(found) > 1000
    assert [(words, file) for words, file in found if not known.issuperset(words)] == []
    of_classes = [(words, file) for words, file in found if len(words) > 1 and words[0] in members]
    assert len(of_classes) > 5
    assert [(words, file) for words, file in of_classes if words[1] not in members[words[0]]] == []
