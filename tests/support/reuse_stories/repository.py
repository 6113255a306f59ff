"""A repository of three suites as data: what is on disk when its evals run, what suites measure, what agents do.

Nothing of the program is used here, not even for patterns, so that a mistake of the program's own globs is seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

LETTERS = "abc"
CASES = 3
CONFIG, GRADER, TARGETS, TOOLS = "eval-gate.yaml", "graders/check.py", "targets.yaml", "tools.json"
WORKFLOW, LOCK, BUILD = ".github/workflows/evals.yml", "package-lock.json", "tools/build.py"
IMAGE = "AGENT_IMAGE"
DOCUMENTS = (".md", ".rst", ".adoc", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")
FORGER = "forge"
"""Word in a file that makes the job store a result of its author's choice."""
BREAKS = re.compile(r"breaks ([abc]\d)")


Files = Mapping[str, str]


PATTERNS = (
    *(f"agents/{letter}/**" for letter in LETTERS),
    *("agents/**", "agents/*/agent.py", "prompts/*.md", "prompts/**", "shared/lib.py", "**/*.txt", LOCK),
    *("assets/*.svg", "docs/guide.md", WORKFLOW, "agents/missing/**", "Agents/a/**"),
)
"""Each pattern of the histories, but the one that leaves files out and that of a variable."""
LEAVES_OUT = "!agents/**/*.md"
MEASURED = ("shared/lib.py", "prompts/**", LOCK, f"env:{IMAGE}")
"""What the agents of all suites read besides their own folders."""


@dataclass(frozen=True)
class Tree:
    """The files of one commit."""

    files: Files

    @cached_property
    def key(self) -> frozenset[tuple[str, str]]:
        return frozenset(self.files.items())

    def replaced(self, changes: Mapping[str, str | None]) -> Tree:
        """The tree with these files in place of its own; None removes one."""
        merged = {**self.files, **changes}
        return Tree({path: file for path, file in merged.items() if file is not None})

    def differences(self, other: Tree) -> dict[str, str | None]:
        """What replaces these files by the other tree's."""
        paths = {path for path, _ in self.key ^ other.key}
        return {path: other.files.get(path) for path in sorted(paths)}

    @cached_property
    def config(self) -> dict[str, Any]:
        return json.loads(self.files[CONFIG])

    @cached_property
    def suites(self) -> dict[str, list[dict[str, Any]]]:
        """Cases by eval file, in file order."""
        return {path: json.loads(file) for path, file in sorted(self.files.items()) if path.startswith("evals/")}

    @property
    def forges(self) -> bool:
        """Whether its job stores what its author wants."""
        return any(FORGER in file for file in self.files.values())


@dataclass(frozen=True)
class Machine:
    """What a job has besides the commit: variables, and the version of the gate's own program."""

    image: str | None = "0"
    version: str = "1.0.0"


def case_ids(tree: Tree, suite: str) -> tuple[str, ...]:
    return tuple(one["id"] for one in tree.suites[suite])


def disk(tree: Tree) -> dict[str, str]:
    """The files of the commit, and what the job generates out of them before the evals."""
    generated = {"agents/a/built.txt": f"built by {tree.files[BUILD]}"} if BUILD in tree.files else {}
    return {**tree.files, **generated}


def patterns_of(tree: Tree, suite: str) -> tuple[str, ...]:
    """Patterns that a suite measures, by the configuration."""
    written = tree.config.get("measures", [])
    if isinstance(written, list):
        return tuple(sorted(set(written)))
    joined = [one for glob, some in written.items() if compile_glob(glob).fullmatch(suite) for one in some]
    return tuple(sorted(set(joined)))


@cache
def compile_glob(glob: str) -> re.Pattern[str]:
    """What a glob means, told without the program: `**` leads through folders, `*` ends at one."""
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    return re.compile("".join(words.get(one) or re.escape(one) for one in re.split(r"(\*\*/|\*\*|\*)", glob)))


def find_named(glob: str, paths: Iterable[str]) -> set[str]:
    return {path for path in paths if compile_glob(glob).fullmatch(path)}


Measured = frozenset[tuple[str, str]]


def measure(tree: Tree, machine: Machine, suite: str) -> Measured | None:
    """What a suite measures. None: it cannot be told, so the suite has to run."""
    patterns, files = patterns_of(tree, suite), disk(tree)
    wanted = [one for one in patterns if one in PATTERNS]
    if not patterns or not wanted:
        return None
    named = [find_named(one, files) for one in wanted]
    if not all(named):
        return None
    left_out = find_named(LEAVES_OUT[1:], files) if LEAVES_OUT in patterns else set()
    found = set().union(*named) - left_out
    is_image_measured = f"env:{IMAGE}" in patterns
    if is_image_measured and machine.image is None:
        return None
    variables = [("env", str(machine.image))] if is_image_measured else []
    return frozenset([*((path, files[path]) for path in found), *variables])


def describe_setup(tree: Tree, machine: Machine) -> dict[str, object]:
    """What all suites have in common, by the name of the part of the evaluated state that has to tell it."""
    config = {name: value for name, value in tree.config.items() if name not in {"measures", "agentEndpoint"}}
    return {
        "evals": [(path, file) for path, file in sorted(tree.files.items()) if path.startswith("evals/")],
        "graders": tree.files.get(GRADER),
        "targets": (tree.files.get(TARGETS), tree.config.get("agentEndpoint")),
        "tools": tree.files.get(TOOLS),
        "configuration": sorted(config.items()),
        "measures": sorted((suite, patterns_of(tree, suite)) for suite in tree.suites),
        "program": machine.version,
    }


def broken_cases(tree: Tree, machine: Machine, world: frozenset[str], suite: str) -> frozenset[str]:
    """The cases of a suite that fail each time; `world` are those that the outside breaks."""
    files, broken = disk(tree), set(world)
    for letter in {one["id"][0] for one in tree.suites[suite]}:
        places = (f"agents/{letter}/", "shared/lib.py", "prompts/", LOCK)
        read = {path for path in files if path.startswith(places)}
        texts = [files[path] for path in read]
        broken |= {one for text in (*texts, machine.image or "") for one in BREAKS.findall(text) if one[0] == letter}
    return frozenset(broken & set(case_ids(tree, suite)))


def first_tree() -> Tree:
    """The repository as it begins."""
    agents = {
        f"agents/{letter}/{name}": f"{name} of {letter}"
        for letter in LETTERS
        for name in ("agent.py", "prompt.txt", "README.md")
    }
    suites = {f"evals/{letter}.golden.json": suite_text(letter) for letter in LETTERS}
    measures = {f"evals/{letter}*.golden.json": [f"agents/{letter}/**"] for letter in LETTERS} | {"**": list(MEASURED)}
    others = {
        CONFIG: json.dumps({"agentEndpoint": "http://localhost:3000/", "measures": measures}),
        GRADER: "grades 1",
        TARGETS: "targets 1",
        TOOLS: "tools 1",
        WORKFLOW: "uses: eval-gate",
        LOCK: "lock 1",
        BUILD: "build 1",
        "shared/lib.py": "lib 1",
        "prompts/common.md": "Be kind.",
        "assets/logo.svg": "<svg/>",
        "docs/guide.md": "Guide",
        "README.md": "Read me",
        "src/web.ts": "web 1",
    }
    return Tree({**agents, **suites, **others})


def suite_text(letter: str, version: int = 1, cases: int = CASES, skip: int | None = None) -> str:
    """An eval file of these cases."""
    made = [
        {
            "id": f"{letter}{number}",
            "input": {"message": f"ask {letter}{number}"},
            "expect": {"responseContains": [f"ok{'' if version == 1 else version}"]},
            **({"skip": "not today"} if number == skip else {}),
        }
        for number in range(cases)
    ]
    return json.dumps(made)
