"""Names in the package: one class for one name, functions that say what they do, and the terms of the field."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks.names import is_one_word, iter_functions, iter_modules

PACKAGE = Path(__file__).resolve().parents[3] / "runner" / "eval_gate"
_WORDS = """
after again alike apart around asked before below beside brought called carried done ended found given gone heard here
hidden kept known later left made mended met missing named noted now others out over said seen shown so spared taken
then there told together wanted within without written
"""
NO_NAMES = frozenset(_WORDS.split())
"""Participles, adverbs and prepositions that say nothing by themselves: a function is a verb with an object."""
MOST_ONE_WORD = 0.15
"""Of functions. Comparable projects have 0.16 to 0.21."""
PUBLIC_KEYS = {("targets/http/settings.py", "done"), ("targets/response/settings.py", "done")}
"""Fields of settings files that are named by one of `NO_NAMES`, with the modules that declare them."""
TERMS = {
    "answer": "response",
    "alike": "a predicate that says what is equal",
    "asked": "a verb with its object",
    "beside": "a noun",
    "book": "target list",
    "brought": "external",
    "conclude": "decide",
    "control": "base agent",
    "crash": "agent error",
    "crashed": "agent error",
    "doorkeeper": "secret policy",
    "foreign": "external, or untrusted",
    "heard": "tool calls unknown",
    "judgement": "score",
    "keeping": "retention",
    "leavings": "workspace artifacts",
    "ledger": "history",
    "lessen": "truncate",
    "mend": "fix",
    "mended": "fixed",
    "nobody": "the condition",
    "pardon": "waive",
    "question": "prompt",
    "receiver": "secret policy",
    "settle": "decide",
    "silence": "tool calls unknown",
    "spare": "truncate, or not re-run",
    "spared": "not re-run, or suspected",
    "surroundings": "run context",
    "told": "a verb with its object",
    "unanswered": "circuit breaker",
    "unsettled": "inconclusive",
    "yardstick": "case fingerprint, or setup fingerprint",
}
"""Words that the glossary replaces, and the term to use in a name."""
TERMS_OF_THE_GATE = {"ledger": "history", "past": "history", "record": "history", "records": "histories"}
"""The same in `gate/`: elsewhere a record is one of a journal, and `record` a verb."""
EXCEPTIONS = {
    "find_control_character": "a control character is one of Unicode",
    "reference_answer": "a field of AgentV's specification",
    "format_reference_answer": "as that field",
    "question": "a field that AgentV's graders get",
    "linked_question": "as that field",
    "build_question": "as that field",
    "format_question": "as that field",
    "silence_s": "a connection without a byte is silent",
    "transfer_silence_s": "a connection without a byte is silent",
}
"""Names that have such a word for a reason."""
SAME_PART = {
    "agent_evals.py": "one tool's evals: the command, the model, the report",
    "agentv.py": "one tool's format: read, described, written",
    "base.py": "the classes that the package's others derive from",
    "build.py": "builds targets from their settings",
    "case_reader.py": "reads the cases of one version of a format",
    "chat.py": "the chat with a model: its shape, and how providers speak it",
    "check_run.py": "the check run: its text, its publication",
    "conversation.py": "a conversation: its messages, how it is scored",
    "dialect.py": "one format's dialect",
    "errors.py": "errors: the program's, and those of model providers",
    "file_model.py": "the shape of one format's files",
    "junit.py": "JUnit XML: read, written",
    "loader.py": "loads what people wrote: the configuration, external results",
    "measures.py": "what suites measure: the patterns, the command",
    "merge.py": "merging: the command, the operation",
    "policy.py": "the policy: its settings, its record in a run result",
    "power.py": "detection power: the command, its words",
    "reuse.py": "reused results: their record in a run result, the session, their words",
    "run.py": "a run: the command, the session, the engine; of a program in `process`",
    "selection.py": "selected cases: the settings, their record in a run result",
    "settings.py": "the settings of each target, and of the configuration",
    "setup.py": "the evaluation setup: its record in a run result, what of a target belongs to it",
    "suite_reader.py": "reads the suites of one format",
    "table.py": "the evaluators of one format by name",
    "target.py": "one kind of target",
    "wording.py": "the sentences of one package",
}
"""File names that several packages have, because the files play the same part there."""


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def teardown_module() -> None:
    """The trees of the whole package weigh 200 MB."""
    parse.cache_clear()


def test_classes__public_names__stand_in_one_module_only() -> None:
    places = defaultdict(list)
    for path in iter_modules(PACKAGE):
        for node in parse(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert not twice, "give each class a name of its own, by what it is about"


def test_functions__bare_participles_and_adverbs__are_no_names() -> None:
    """Methods and functions within functions too."""
    bare = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.name}"
        for path in iter_modules(PACKAGE)
        for node in iter_functions(parse(path))
        if node.name.strip("_") in NO_NAMES
    ]
    assert not bare, "name a function by a verb and its object, such as find_baseline or format_duration"


def test_parameters_and_locals__bare_participles_and_adverbs__are_no_names() -> None:
    bare = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in iter_modules(PACKAGE)
        for line, name in (*iter_names(path), *iter_locals(path))
        if name.strip("_") in NO_NAMES and (path.relative_to(PACKAGE).as_posix(), name) not in PUBLIC_KEYS
    ]
    assert not bare, "name a parameter or a local by what it is, such as baseline or shown_as"


def iter_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[ast.arg]:
    arguments = node.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (one for one in (arguments.vararg, arguments.kwarg) if one is not None)


def iter_names(path: Path) -> Iterator[tuple[int, str]]:
    """The module's name, and those of its classes, functions, parameters and fields, with their lines."""
    yield 1, path.stem
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
            yield from ((one.lineno, one.arg) for one in iter_parameters(node))
        elif isinstance(node, ast.ClassDef):
            yield node.lineno, node.name
            for field in node.body:
                targets = field.targets if isinstance(field, ast.Assign) else [getattr(field, "target", None)]
                yield from ((field.lineno, one.id) for one in targets if isinstance(one, ast.Name))


def iter_locals(path: Path) -> Iterator[tuple[int, str]]:
    """The names that functions of a module assign, and those that patterns, `except` and lambdas bind."""
    for node in ast.walk(parse(path)):
        match node:
            case ast.Name(id=str(name), ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield node.lineno, name
            case ast.Lambda():
                yield from ((one.lineno, one.arg) for one in iter_parameters(node))


def split_name(name: str) -> set[str]:
    """`LlmJudge` and `llm_judge` are the same words."""
    return {word.lower() for word in re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def test_names__words_that_the_glossary_replaces__are_in_none() -> None:
    """Bare participles are another test's."""
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}: write {TERMS[word]} for {word}"
        for path in iter_modules(PACKAGE)
        for line, name in (*iter_names(path), *iter_locals(path))
        if name.strip("_") not in EXCEPTIONS and name.strip("_") not in NO_NAMES
        for word in split_name(name) & TERMS.keys()
    ]
    found += [
        f"{path.relative_to(PACKAGE)}:{line}: {name}: write {TERMS_OF_THE_GATE[word]} for {word}"
        for path in iter_modules(PACKAGE / "gate")
        for line, name in (*iter_names(path), *iter_locals(path))
        for word in split_name(name) & TERMS_OF_THE_GATE.keys()
    ]
    assert not found, "use the terms of the glossary in docs/architecture.md"


def test_exceptions__of_terms__are_all_in_use() -> None:
    names = {name.strip("_") for path in iter_modules(PACKAGE) for _, name in iter_names(path)}
    assert not EXCEPTIONS.keys() - names


def test_modules__of_the_same_name__play_the_same_part() -> None:
    places = defaultdict(list)
    for path in iter_modules(PACKAGE):
        places[path.name].append(str(path.relative_to(PACKAGE)))
    twice = {name for name, paths in places.items() if len(paths) > 1 and not name.startswith("__")}
    assert twice == SAME_PART.keys(), "give each file a name of its own, or say here which part all of them play"


def test_modules__bare_participles_and_adverbs__are_no_names() -> None:
    bare = [str(path.relative_to(PACKAGE)) for path in iter_modules(PACKAGE) if path.stem in NO_NAMES]
    assert not bare, "name a module by the noun that it is about, such as case_history"


def test_functions__of_one_word__are_few() -> None:
    names = [node.name for path in iter_modules(PACKAGE) for node in iter_functions(parse(path))]
    assert len(names) > 4000
    assert sum(map(is_one_word, names)) <= MOST_ONE_WORD * len(names)
