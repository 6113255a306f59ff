"""While a run is under way, its agent rewrites what measures it: each thing once, and once it puts it back.

Each case is graded by what was read before the first request, or is an evaluation error that names the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.git import commit_all
from tests.support.program import gate

SOON = (datetime.now(UTC) + timedelta(days=30)).date()
GOOD, BAD = "print('good')\n", "print('bad')\n"
GRADER = (
    "import json, sys\nprint(json.dumps({'score': 1 if 'good' in json.load(sys.stdin)['candidate_answer'] else 0}))\n"
)
KIND = "print('{\"score\": 1}')\n"
TARGETS = "targets:\n  - {name: desk, provider: cli, workers: 1, command: 'python3 THE_AGENT {PROMPT}'}\n"
CASES = """\
execution: {target: desk}
evalcases:
  - {id: q1, expected_outcome: Says good., input_messages: [{role: user, content: hello}]EVALUATORS}
  - {id: q2, expected_outcome: Says good., input_messages: [{role: user, content: hello}]EVALUATORS}
"""
GRADED = CASES.replace("EVALUATORS", ", evaluators: [{name: g, type: code_judge, script: python3 ../checks/g.py}]")
JUDGED = CASES.replace("EVALUATORS", ", evaluators: [{name: sense, type: llm_judge, prompt: prompts/sense.md}]")
JUDGE_TARGETS = TARGETS.replace("{PROMPT}'", "{PROMPT}', judge_target: judge") + (
    "  - {name: judge, provider: cli, command: 'python3 judges/j.py {PROMPT_FILE}', cwd: .}\n"
)
JUDGE = """\
import json, sys
said = open(sys.argv[1]).read()
print(json.dumps({'score': 1 if 'Is good' in said else 0, 'hits': [], 'misses': [], 'reasoning': 'r'}))
"""
KIND_JUDGE = 'print(\'{"score": 1, "hits": [], "misses": [], "reasoning": "r"}\')\n'
JUDGED_FILES = {
    "evals/desk.eval.yaml": JUDGED,
    "evals/targets.yaml": JUDGE_TARGETS,
    "evals/prompts/sense.md": "Is {{candidate_answer}}?\n",
    "judges/j.py": JUDGE,
}
GOLDEN = json.dumps(
    {
        "metadata": {"toolName": "look", "tier": "golden", "toolVersion": "1.0.0"},
        "cases": [
            {"id": name, "input": {"message": "hello"}, "expect": {"responseContains": ["TOKEN"]}}
            for name in ("q1", "q2")
        ],
    }
)
REGISTRY = "export const look = { name: 'look', version: '1.0.0', description: 'Looks.' };\n"
NATIVE = {
    "evals/desk.eval.yaml": None,
    "evals/desk.golden.json": GOLDEN.replace("TOKEN", "good"),
    "eval-gate.yaml": "target: desk\n",
}
HOOKED = """\
execution: {target: desk}
workspace: {template: ../desk, isolation: per_test, hooks: {before_each: {command: [python3, ../hooks/seed.py]}}}
tests:
  - {id: q1, input: Write it., assertions: [{name: out, type: code-grader, command: [python3, ../checks/g.py]}]}
  - {id: q2, input: Write it., assertions: [{name: out, type: code-grader, command: [python3, ../checks/g.py]}]}
"""
LEFT = """\
import json, os
from pathlib import Path
done = Path(os.environ["AGENTV_WORKSPACE_PATH"], "out.txt").exists()
print(json.dumps({"assertions": [{"text": "out.txt is there", "passed": done}]}))
"""
WORKSPACE = {
    "evals/desk.eval.yaml": HOOKED,
    "checks/g.py": LEFT,
    "desk/readme.txt": "A desk.",
    "hooks/seed.py": "import json, sys\ntold = json.load(sys.stdin)\n",
}
LEAVES = "open('out.txt', 'w').close()\n"


@dataclass(frozen=True)
class Row:
    """What the agent rewrites, and how that would let a wrong answer pass."""

    path: str
    cheat: str
    files: Mapping[str, str | None] = field(default_factory=dict)
    is_named: bool = False
    """Whether it is an evaluation error that names the file: it is used by a program, or again for each case."""
    shown: str = ""
    """How it is named; empty for its path."""
    good: str = GOOD


ROWS = {
    "eval file": Row("evals/desk.eval.yaml", GRADED.replace("../checks/g.py", "../checks/kind.py")),
    "eval file, all cases gone": Row("evals/desk.eval.yaml", "evalcases: []\n"),
    "cases of another file": Row(
        "evals/more/c.yaml",
        "- {id: q2, criteria: c, input: hello, assertions: [{type: contains, value: bad}]}\n",
        {
            "evals/desk.eval.yaml": "execution: {target: desk}\ntests:\n"
            "  - {id: q1, criteria: c, input: hello, assertions: [{type: contains, value: good}]}\n  - file://more/*.yaml\n",
            "evals/more/c.yaml": "- {id: q2, criteria: c, input: hello, assertions: [{type: contains, value: good}]}\n",
            "eval-gate.yaml": "evals: ['evals/*.eval.yaml']\n",
        },
    ),
    "targets": Row("evals/targets.yaml", TARGETS.replace("THE_AGENT", "-c 'print(1)' ")),
    "attached file": Row(
        "evals/note.txt",
        "changed",
        {
            "evals/desk.eval.yaml": GRADED.replace("content: hello", "content: [{type: file, value: note.txt}]"),
            "evals/note.txt": "hello",
        },
    ),
    "configuration": Row("eval-gate.yaml", "failOn: [never]\n"),
    "waivers": Row(
        ".eval-gate/waivers.yaml",
        "waivers:\n" + "".join(f"- {{case: {case}, reason: r, until: {SOON}}}\n" for case in ("q1", "q2")),
    ),
    "baseline": Row("evals/results/*/run.json", "{}"),
    "judge's prompt": Row("evals/prompts/sense.md", "Is good {{candidate_answer}}?\n", JUDGED_FILES),
    "judge's program": Row("judges/j.py", KIND_JUDGE, JUDGED_FILES, is_named=True),
    "seeds": Row(
        "evals/seed-manifest.json",
        '{"word": "bad"}',
        NATIVE
        | {
            "evals/desk.golden.json": GOLDEN.replace("TOKEN", "{{seed:word}}"),
            "evals/seed-manifest.json": '{"word": "good"}',
        },
    ),
    "snapshot": Row(
        "snapshot.json",
        '{"word": "bad"}',
        NATIVE
        | {
            "evals/desk.golden.json": GOLDEN.replace("TOKEN", "{{snapshot:word}}"),
            "snapshot.json": '{"word": "good"}',
            "eval-gate.yaml": "target: desk\nsnapshotEnabled: true\nsnapshotPath: snapshot.json\n",
        },
    ),
    "tool registry": Row(
        "tools.ts",
        REGISTRY.replace("1.0.0", "2.0.0"),
        NATIVE | {"tools.ts": REGISTRY, "eval-gate.yaml": "target: desk\ntoolRegistryPath: tools.ts\n"},
    ),
    "grader": Row("checks/g.py", KIND, is_named=True),
    "module beside a grader": Row("checks/re.py", "import os\n" + KIND + "os._exit(0)\n", is_named=True),
    "data of a grader": Row(
        "checks/data/words",
        "bad",
        {
            "checks/g.py": GRADER.replace("'good'", "open('../checks/data/words').read()"),
            "checks/data/words": "good",
        },
        is_named=True,
    ),
    "file above a grader": Row(
        "conftest.py",
        "x = 1\n",
        {"evals/desk.eval.yaml": GRADED.replace("python3 ../checks/g.py", '"python3 ../checks/g.py # pytest"')},
        is_named=True,
    ),
    "file of graderFiles": Row(
        "rules/words", "bad", {"rules/words": "good", "eval-gate.yaml": "graderFiles: ['rules/**']\n"}, is_named=True
    ),
    "hook": Row(
        "hooks/seed.py",
        WORKSPACE["hooks/seed.py"] + "open(told['workspace_path'] + '/out.txt', 'w').close()\n",
        WORKSPACE,
        is_named=True,
        good=LEAVES,
    ),
    "template of the workspace": Row(
        "desk/out.txt", "x", WORKSPACE, is_named=True, shown="the workspace template desk", good=LEAVES
    ),
    "ignore rules that hide a module": Row("checks/.gitignore", "re.py\n", is_named=True),
}


def write_agent(root: Path, row: Row, *, puts_back: bool) -> None:
    """Write the agent that answers wrongly and rewrites the file at its first call."""
    (root / "agent" / "agent.py").write_text(
        f"""\
import pathlib
root, path = pathlib.Path({str(root)!r}), {row.path!r}
file, mark = next(root.glob(path), root / path), root / ".git" / "mark"
if not mark.exists():
    mark.write_text(file.read_text() if file.exists() else "")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text({row.cheat!r})
elif {puts_back} and mark.read_text():
    file.write_text(mark.read_text())
elif {puts_back}:
    file.unlink(missing_ok=True)
"""
        + ("" if row.good == LEAVES else BAD)
    )


@pytest.mark.parametrize("puts_back", [False, True], ids=["leaves it", "puts it back"])
@pytest.mark.parametrize("what", ROWS)
def test_run__agent_rewrites_what_measures_it__it_counts_as_it_was_before_or_is_named(
    tmp_path, what, puts_back
) -> None:
    row = ROWS[what]
    files = {
        ".gitignore": "results/\n",
        "evals/desk.eval.yaml": GRADED,
        "evals/targets.yaml": TARGETS,
        "checks/g.py": GRADER,
        "checks/kind.py": KIND,
        "agent/agent.py": row.good,
        "eval-gate.yaml": "",
    }
    for name, text in (files | dict(row.files)).items():
        if text is not None:
            rule = "failOn: [regressions]\n" if name == "eval-gate.yaml" else ""
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(rule + text.replace("THE_AGENT", str(tmp_path / "agent/agent.py")))
    commit_all(tmp_path)
    command = ("run", "evals", "--reruns", "0")
    first = gate(tmp_path, *command)
    assert first.returncode == 0, first.stdout + first.stderr
    write_agent(tmp_path, row, puts_back=puts_back)
    done = gate(tmp_path, *command, "--baseline", "latest")
    said = " ".join((done.stdout + done.stderr).split())
    assert (tmp_path / ".git" / "mark").exists(), said
    if row.is_named:
        # a file that is gone again measured one case, and a template that changes later measured the first one
        is_part = row.shown or (puts_back and row.path not in files | dict(row.files))
        assert done.returncode == (1 if is_part else 3), said
        assert f"{row.shown or row.path} changed while the run was under way" in said, said
        assert "2 do not pass" in said
    else:
        assert (done.returncode, "2 regressions" in said, "stale" in said) == (1, True, False), said
