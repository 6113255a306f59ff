"""What a commit of the random histories changes, and how an attack hides what forged a result."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random

from tests.support.reuse_stories.repository import (
    BREAKS,
    BUILD,
    CONFIG,
    FORGER,
    GRADER,
    LETTERS,
    LOCK,
    MEASURED,
    PATTERNS,
    TARGETS,
    TOOLS,
    WORKFLOW,
    Tree,
    suite_text,
)

Changes = Mapping[str, str | None]
DOCUMENTS = ("README.md", "docs/guide.md", "docs/intro.rst", "docs/screen.png", "agents/a/README.md", "NEWS.adoc")
SHARED = ("shared/lib.py", "prompts/common.md", "prompts/tone.md", LOCK)
OTHERS = (BUILD, "src/web.ts", "assets/logo.svg", WORKFLOW)
FORGE = f"{FORGER} a result"
MANY = {f"docs/many/{number:03}.md": "page" for number in range(300)}
FORGERS: dict[str, tuple[Changes, Changes]] = {
    "removed": ({"tools/hook.py": FORGE}, {"tools/hook.py": None}),
    "renamed to a document": ({"tools/hook.py": FORGE}, {"tools/hook.py": None, "docs/hook.md": FORGE}),
    "behind 300 documents": ({"tools/hook.py": FORGE}, {"tools/hook.py": None, **MANY}),
    "left there": ({"tools/hook.py": FORGE}, {"tools/hook.py": FORGE, "README.md": "left there"}),
    "in the workflow": ({WORKFLOW: FORGE}, {WORKFLOW: "uses: eval-gate"}),
    "in a measured file": ({"agents/a/prompt.txt": FORGE}, {"agents/a/prompt.txt": "prompt.txt of a"}),
}
"""How a job is made to store a forged result, and how the next commit hides that."""


def draw_change(draw: Random, tree: Tree) -> tuple[str, Changes]:
    """A change of some files, mostly of one, and what it is in a few words."""
    ways: dict[Callable[[Random, Tree], Changes], float] = {
        change_one_of(DOCUMENTS): 20,
        change_agent: 12,
        break_file: 7,
        lambda _, tree: fixed(tree): 4,
        change_one_of(SHARED): 5,
        change_one_of(OTHERS): 4,
        change_one_of((GRADER, TARGETS, TOOLS)): 4,
        change_evals: 4,
        change_setting: 1,
        change_measures: 4,
    }
    changes: dict[str, str | None] = {}
    for _ in range(draw.choice([1, 1, 1, 2])):
        way = draw.choices(list(ways), list(ways.values()))[0]
        changes |= way(draw, tree.replaced(changes))
    return ", ".join(sorted(changes)) or "nothing", changes


def version(draw: Random, name: str) -> str:
    """One of a few contents, so that earlier ones come back."""
    return f"{name} {draw.randint(1, 3)}"


def change_one_of(paths: Sequence[str]) -> Callable[[Random, Tree], Changes]:
    def change(draw: Random, tree: Tree) -> Changes:
        del tree
        path = draw.choice(paths)
        return {path: version(draw, path)}

    return change


def change_agent(draw: Random, tree: Tree) -> Changes:
    letter, name = draw.choice(LETTERS), draw.choice(["agent.py", "prompt.txt", "notes.md", "tool.py", "deep/er/x.txt"])
    path = f"agents/{letter}/{name}"
    removed = name in {"notes.md", "tool.py"} and path in tree.files and draw.random() < 0.3
    return {path: None if removed else version(draw, name)}


def break_file(draw: Random, tree: Tree) -> Changes:
    """Break a case by a file that agents read."""
    case = f"{draw.choice(LETTERS)}{draw.randrange(3)}"
    path = draw.choice([f"agents/{case[0]}/agent.py", f"agents/{case[0]}/prompt.txt", *SHARED])
    return {path: f"{draw.choice('xyz')} breaks {case}"}


def fixed(tree: Tree) -> Changes:
    """Every file without what breaks a case."""
    broken = {path: file for path, file in tree.files.items() if BREAKS.search(file)}
    return {path: BREAKS.sub("fixed", file) for path, file in broken.items()}


def change_evals(draw: Random, tree: Tree) -> Changes:
    suite = draw.choice(list(tree.suites))
    letter = suite[len("evals/")]
    skip = draw.choice([None, None, 1])
    return {suite: suite_text(letter, draw.randint(1, 2), draw.choice([2, 3, 3]), skip)}


def change_setting(draw: Random, tree: Tree) -> Changes:
    change = draw.choice([{"timeoutMs": draw.randint(2000, 2001)}, {"agentEndpoint": f"http://h{draw.randint(1, 2)}/"}])
    return {CONFIG: json.dumps(tree.config | change)}


def change_measures(draw: Random, tree: Tree) -> Changes:
    """Widen, narrow, misspell or leave out what suites measure, or turn reuse off."""
    by_suite = {f"evals/{letter}*.golden.json": [f"agents/{letter}/**"] for letter in LETTERS}
    changes: list[dict[str, object]] = [
        {"measures": by_suite | {"**": list(MEASURED)}},
        {"measures": by_suite | {"**": draw.sample(MEASURED, 2)}},
        {"measures": ["agents/**", *MEASURED, "!agents/**/*.md"]},
        {"measures": draw.sample([*PATTERNS, *MEASURED], 3)},
        {"measures": by_suite | {"evals/a.golden.json": ["docs/guide.md", "assets/*.svg"]}},
        {"measures": {"evals/b*.golden.json": ["agents/**", "!agents/**/*.md", WORKFLOW, *MEASURED]}},
        {"measures": []},
        {"reuse": not tree.config.get("reuse", True)},
    ]
    return {CONFIG: json.dumps(tree.config | draw.choice(changes))}
