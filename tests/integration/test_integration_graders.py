"""A grader, hook or judge is compared by all that it can load, and a case is graded by what was compared."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.git import commit_all
from tests.support.program import gate

AGENT = "import sys\nprint('{answer}')\n"
GRADER = (
    "import json, sys\nprint(json.dumps({'score': 1 if 'good' in json.load(sys.stdin)['candidate_answer'] else 0}))\n"
)
KIND = "print('{\"score\": 1}')\n"
TARGETS = "targets:\n  - {name: desk, provider: cli, command: 'python3 ../agent/agent.py {PROMPT}'}\n"
SUITE = """\
execution: {target: desk}
evalcases:
  - id: q1
    expected_outcome: Says good.
    input_messages: [{role: user, content: hello}]
    execution:
      evaluators: [{name: g, type: code_judge, script: SCRIPT}]
"""


@dataclass
class Repository:
    """A repository with an agent that is a command, and one case that a program grades."""

    folder: Path
    script: str = "python3 g.py"
    files: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        base = {
            ".gitignore": "results/\n",
            "agent/agent.py": AGENT.format(answer="good"),
            "evals/desk.eval.yaml": SUITE.replace("SCRIPT", self.script),
            "evals/targets.yaml": TARGETS,
            "evals/g.py": GRADER,
        }
        for name, text in {**base, **self.files}.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def break_agent(self, extra: str = "") -> None:
        self.write("agent/agent.py", extra + AGENT.format(answer="bad"))

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        return gate(self.folder, "run", "evals", *options)

    def compare(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.run("--baseline", "latest", "--fail-on", "regressions,changed", *options)

    def read_record(self) -> dict:
        results = self.folder / "evals" / "results"
        return json.loads((results / json.loads((results / "latest.json").read_text())["path"]).read_text())


@pytest.fixture
def make_repository(tmp_path) -> Callable[..., Repository]:
    """Make a repository whose first run passes, of a committed state."""

    def make(script: str = "python3 g.py", **files: str) -> Repository:
        repository = Repository(tmp_path, script, {name.replace("__", "/"): text for name, text in files.items()})
        commit_all(tmp_path)
        done = repository.run()
        assert done.returncode == 0, done.stdout + done.stderr
        return repository

    return make


def test_grader__nothing_changes__is_no_setup_change(make_repository) -> None:
    repository = make_repository()
    done = repository.compare()
    assert (done.returncode, "setup changed" in done.stdout) == (0, False), done.stdout + done.stderr
    assert not [one for one in repository.read_record()["warnings"] if "compared" in one]


def test_grader__agent_changes_and_nothing_else__is_no_setup_change(make_repository) -> None:
    repository = make_repository()
    repository.break_agent()
    done = repository.compare()
    assert (done.returncode, "setup changed" in done.stdout) == (1, False), done.stdout + done.stderr
    assert "1 regression" in done.stdout


TRUTH = """\
import json, sys
from pathlib import Path
here = Path(__file__).parent
said = json.load(sys.stdin)["candidate_answer"]
files = [here / "data" / "truth", *(here / "words").glob("*")]
words = [word for file in files for word in file.read_text().split()]
print(json.dumps({"score": float(any(word in said for word in words))}))
"""
SHADOWED = "import json\n" + GRADER
RE = "import sys\nprint('{\"score\": 1}')\nsys.stdout.flush()\nimport os\nos._exit(0)\n"
LOADED = {
    "a file without a suffix": ("evals/data/truth", "good bad", {"evals/g.py": TRUTH, "evals/data/truth": "good"}),
    "a file of a glob": (
        "evals/words/b",
        "bad",
        {"evals/g.py": TRUTH, "evals/data/truth": "good", "evals/words/a": "fine"},
    ),
    "a module that the library imports": ("evals/re.py", RE, {"evals/g.py": SHADOWED}),
    "a file behind 300 others": (
        "evals/zzz/truth",
        "good bad",
        {f"evals/m{number:03}.py": "" for number in range(300)}
        | {"evals/zzz/truth": "good", "evals/g.py": TRUTH.replace('"data"', '"zzz"')},
    ),
}


@pytest.mark.parametrize("what", LOADED)
def test_grader__file_that_it_loads_changes__is_named(tmp_path, what) -> None:
    name, text, files = LOADED[what]
    repository = Repository(tmp_path, files=files)
    commit_all(tmp_path)
    assert repository.run().returncode == 0
    repository.break_agent()
    repository.write(name, text)
    done = repository.compare()
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"grader of 1 case changed: `{name}`" in done.stdout


def test_grader__bytes_behind_four_million__are_compared(make_repository) -> None:
    repository = make_repository(evals__big="x" * 4_000_001 + "a")
    repository.write("evals/big", "x" * 4_000_001 + "b")
    done = repository.compare()
    assert (done.returncode, "grader of 1 case changed: `evals/big`" in done.stdout) == (1, True), done.stdout


PYTEST_GRADER = """\
import json, sys
def test_answer():
    assert "good" in json.load(sys.stdin)["candidate_answer"]
"""


def test_grader__pytest_gets_a_conftest__is_named(tmp_path) -> None:
    """The verdict of pytest's exit code is turned by a file that nothing names."""
    passes, fails = (f'echo "{{\\"score\\": {score}}}"' for score in (1, 0))
    script = f"python3 -m pytest -q -s graders/test_g.py >/dev/null && {passes} || {fails}"
    repository = Repository(tmp_path, json.dumps(script), {"evals/graders/test_g.py": PYTEST_GRADER})
    commit_all(tmp_path)
    first = repository.run()
    assert first.returncode == 0, first.stdout + first.stderr
    repository.break_agent()
    mark = "    for item in items: item.add_marker(pytest.mark.xfail)\n"
    hook = f"import pytest\ndef pytest_collection_modifyitems(items):\n{mark}"
    repository.write("evals/graders/conftest.py", hook)
    done = repository.compare()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "grader of 1 case changed: `evals/graders/conftest.py" in done.stdout


ROWS: dict[str, tuple[str, str, Mapping[str, str]]] = {
    "python": ("python3 graders/g.py", "evals/graders/lib/rules.txt", {}),
    "python, chosen by a version manager": ("python3 graders/g.py", "mise.toml", {}),
    "python module": ("python3 -m graders.g", "evals/graders/helper.py", {}),
    "pytest, from above": ("python3 -m pytest -q graders/test_g.py", "pyproject.toml", {}),
    "pytest, a plugin above": ("pytest -q graders", "evals/conftest.py", {}),
    "node": ("node graders/g.mjs", "package.json", {}),
    "node, a module": ("node graders/g.mjs", "evals/graders/rules.mjs", {}),
    "shell": ("sh graders/g.sh", "evals/graders/words.txt", {}),
    "a program by its first line": ("graders/grade", "evals/graders/words.txt", {"evals/graders/grade": "#!/bin/sh\n"}),
    "make": ("make -s grade", "evals/Makefile", {"evals/Makefile": "grade:\n\ttrue\n"}),
    "make in a folder": ("make -s -C graders grade", "evals/graders/Makefile", {"evals/graders/Makefile": "grade:\n"}),
    "npm": ("npm run --silent grade", "evals/package.json", {"evals/package.json": "{}"}),
    "uv": ("uv run graders/g.py", "uv.lock", {}),
    "docker": ("docker run -v $PWD/graders:/g img python /g/g.py", "evals/graders/g.py", {}),
    "a compiled file": ("graders/bin/grade", "evals/graders/bin/grade", {"evals/graders/bin/grade": "\x7fELF\x01"}),
}


@pytest.mark.parametrize("kind", ROWS)
def test_grader__one_file_of_each_kind_of_program_changes__is_named(tmp_path, kind) -> None:
    """No program has to run for this: what it would load is compared before the first request."""
    script, name, files = ROWS[kind]
    given = {
        "evals/graders/g.py": "1",
        "evals/graders/g.mjs": "1",
        "evals/graders/g.sh": "1",
        "evals/graders/test_g.py": "1",
    }
    repository = Repository(tmp_path, json.dumps(f"echo '{{\"score\": 1}}' || {script}"), given | dict(files))
    commit_all(tmp_path)
    repository.run()
    repository.write(name, "changed\n")
    done = repository.run("--baseline", str(tmp_path / "evals/results"), "--fail-on", "regressions,changed")
    assert f"grader of 1 case changed: `{name}`" in done.stdout, done.stdout + done.stderr


WORKSPACE_SUITE = """\
execution: {target: desk}
workspace: {template: ../desk, isolation: per_test, hooks: {before_each: {command: HOOK}}}
tests:
  - {id: q1, input: Write it., assertions: [{name: out, type: code-grader, command: [python3, ../checks/check.py]}]}
"""
CHECK = """\
import json, os, sys
from pathlib import Path
done = Path(os.environ["AGENTV_WORKSPACE_PATH"], "out.txt").exists()
print(json.dumps({"assertions": [{"text": "out.txt is there", "passed": done}]}))
"""


@pytest.mark.parametrize("hook", ['[python3, ../hooks/seed.py, "{{workspace_path}}"]', "[python3, ../hooks/seed.py]"])
def test_hook__does_what_the_agent_has_to_do__is_named(tmp_path, hook) -> None:
    files = {
        "evals/desk.eval.yaml": WORKSPACE_SUITE.replace("HOOK", hook),
        "evals/targets.yaml": TARGETS.replace("..", str(tmp_path)),
        "agent/agent.py": "open('out.txt', 'w').close()\nprint('done')\n",
        "checks/check.py": CHECK,
        "desk/readme.txt": "A desk.",
        "hooks/seed.py": "import json, sys\ntold = json.load(sys.stdin)\n",
    }
    repository = Repository(tmp_path, files=files)
    commit_all(tmp_path)
    first = repository.run()
    assert first.returncode == 0, first.stdout + first.stderr
    same = repository.compare()
    assert (same.returncode, "setup changed" in same.stdout) == (0, False), same.stdout
    repository.write("agent/agent.py", "print('done')\n")
    cheat = files["hooks/seed.py"] + "open(told['workspace_path'] + '/out.txt', 'w').close()\n"
    repository.write("hooks/seed.py", cheat)
    done = repository.compare()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "hook or health check of 1 case changed: `hooks/seed.py" in done.stdout


def test_hook__comes_new__is_a_setup_change(tmp_path) -> None:
    suite = WORKSPACE_SUITE.replace(", hooks: {before_each: {command: HOOK}}", "")
    files = {
        "evals/desk.eval.yaml": suite,
        "evals/targets.yaml": TARGETS.replace("..", str(tmp_path)),
        "agent/agent.py": "open('out.txt', 'w').close()\nprint('done')\n",
        "checks/check.py": CHECK,
        "desk/readme.txt": "A desk.",
    }
    repository = Repository(tmp_path, files=files)
    commit_all(tmp_path)
    assert repository.run().returncode == 0
    repository.write("evals/desk.eval.yaml", WORKSPACE_SUITE.replace("HOOK", "['true']"))
    done = repository.compare()
    assert "hook or health check of 1 case changed (command): `q1`" in done.stdout, done.stdout
    assert done.returncode == 1


JUDGED = """\
execution: {target: desk}
evalcases:
  - id: q1
    expected_outcome: Says good.
    input_messages: [{role: user, content: hello}]
    execution: {evaluators: [{name: sense, type: llm_judge}]}
"""
SCORED = "print(json.dumps({'score': SCORE, 'hits': [], 'misses': [], 'reasoning': 'r'}))\n"
VERDICT = f"import json\nfrom words import SCORE\n{SCORED}"


def test_judge__file_of_its_program_changes__is_named(tmp_path) -> None:
    targets = TARGETS.replace("{PROMPT}'", "{PROMPT}', judge_target: judge")
    targets += "  - {name: judge, provider: cli, command: 'python3 judges/j.py {PROMPT_FILE}', cwd: .}\n"
    files = {
        "evals/desk.eval.yaml": JUDGED,
        "evals/targets.yaml": targets,
        "judges/j.py": VERDICT,
        "judges/words.py": "SCORE = 1\n",
    }
    repository = Repository(tmp_path, files=files)
    commit_all(tmp_path)
    first = repository.run()
    assert first.returncode == 0, first.stdout + first.stderr
    same = repository.compare()
    assert (same.returncode, "setup changed" in same.stdout) == (0, False), same.stdout
    repository.write("judges/words.py", "SCORE = 1.0\n")
    done = repository.compare()
    assert "grader of 1 case changed: `judges/words.py" in done.stdout, done.stdout
    assert done.returncode == 1


def test_health_check__its_program_changes__is_named_and_the_agent_beside_it_is_not(tmp_path) -> None:
    check = ", healthcheck: {type: command, commandTemplate: 'python3 ../agent/check.py'}}"
    files = {"evals/targets.yaml": TARGETS.replace("'}", "'" + check), "agent/check.py": "import ready\n"}
    files |= {"agent/ready.py": "", "agent/tools.py": ""}
    repository = Repository(tmp_path, files=files)
    commit_all(tmp_path)
    first = repository.run()
    assert first.returncode == 0, first.stdout + first.stderr
    repository.write("agent/tools.py", "changed = True\n")
    assert "setup changed" not in repository.compare().stdout
    repository.write("agent/ready.py", "changed = True\n")
    done = repository.compare()
    assert (done.returncode, "hook or health check of 1 case changed: `agent/ready.py" in done.stdout) == (1, True)


EVIL = """\
import pathlib, time
grader = pathlib.Path("g.py")
honest = grader.read_text()
"""
WAYS = {
    "overwrites it": EVIL + f"grader.write_text({KIND!r})\n",
    "puts it back in place": EVIL
    + "grader.write_text('x')\ngrader.write_text(honest)\nimport os\nos.utime(grader, ns=(1, 1))\n",
    "puts it back with its time": EVIL
    + "import os\ntimes = os.stat(grader)\ngrader.write_text('x')\ngrader.write_text(honest)\n"
    + "os.utime(grader, ns=(times.st_atime_ns, times.st_mtime_ns))\n",
    "moves it away and back": EVIL + "grader.rename('g.bak')\npathlib.Path('g.bak').rename(grader)\n",
    "replaces it by a link": EVIL + "grader.rename('/tmp/g.bak')\ngrader.symlink_to('/tmp/g.bak')\n",
}


@pytest.mark.parametrize("way", WAYS)
def test_grader__agent_rewrites_it_during_the_run__is_an_evaluation_error_that_names_it(tmp_path, way) -> None:
    repository = Repository(tmp_path)
    commit_all(tmp_path)
    assert repository.run().returncode == 0
    repository.break_agent(WAYS[way].replace("/tmp/g.bak", f"{tmp_path}/g.bak"))
    done = repository.compare()
    assert done.returncode == 3, done.stdout + done.stderr
    assert "evals/g.py changed while the run was under way, so the case is not scored" in done.stdout


def test_grader__agent_puts_a_module_beside_it__is_an_evaluation_error_that_names_it(tmp_path) -> None:
    repository = Repository(tmp_path, files={"evals/g.py": "import json\n" + GRADER})
    commit_all(tmp_path)
    assert repository.run().returncode == 0
    repository.break_agent(f"import pathlib\npathlib.Path('re.py').write_text({RE!r})\n")
    done = repository.compare()
    assert done.returncode == 3, done.stdout + done.stderr
    assert "evals/re.py changed while the run was under way" in done.stdout


def test_grader__agent_writes_what_git_ignores__is_scored(tmp_path) -> None:
    repository = Repository(tmp_path, files={".gitignore": "results/\n*.log\n/evals/cache/\n!/evals/cache/keep\n"})
    commit_all(tmp_path)
    assert repository.run().returncode == 0
    repository.write(
        "agent/agent.py",
        "import pathlib\npathlib.Path('cache').mkdir(exist_ok=True)\npathlib.Path('cache/a').write_text('x')\n"
        "pathlib.Path('a.log').open('a').write('x')\n" + AGENT.format(answer="good"),
    )
    done = repository.compare()
    assert (done.returncode, "setup changed" in done.stdout) == (0, False), done.stdout + done.stderr


def test_grader__file_that_a_rule_ignores_but_git_tracks__is_compared(tmp_path) -> None:
    """`git add --force` puts a file into the change that a rule alone would hide."""
    repository = Repository(tmp_path, files={".gitignore": "results/\nconftest.py\n", "evals/g.py": GRADER})
    commit_all(tmp_path)
    assert repository.run().returncode == 0
    repository.write("evals/conftest.py", "x = 1\n")
    assert "setup changed" not in repository.compare().stdout
    commit_all(tmp_path)
    assert "grader of 1 case changed: `evals/conftest.py" in repository.compare().stdout


def test_grader__other_eval_files_beside_it__are_none_of_its_files(tmp_path) -> None:
    other, new, newer = (SUITE.replace("SCRIPT", "python3 g.py").replace("q1", name) for name in ("o1", "n1", "n2"))
    repository = Repository(tmp_path, files={"evals/other.eval.yaml": other})
    commit_all(tmp_path)
    assert repository.run().returncode == 0
    repository.write("evals/new.eval.yaml", new)
    (tmp_path / "evals/other.eval.yaml").unlink()
    assert "grader of" not in repository.compare().stdout
    repository.write("evals/new.eval.yaml", newer)
    done = gate(tmp_path, "run", "evals/desk.eval.yaml", "--baseline", "latest", "--fail-on", "regressions,changed")
    assert (done.returncode, "grader of" in done.stdout) == (0, False), done.stdout + done.stderr


IN_ROOT = SUITE.replace("SCRIPT", "python3 ../g.py")


def test_grader__in_the_root__is_compared_by_name_and_the_report_says_so(tmp_path) -> None:
    files = {
        "evals/desk.eval.yaml": IN_ROOT,
        "g.py": "import json, sys\nfrom rules import WORDS\nopen('../extra.txt')\n" + GRADER,
        "rules.py": "import agent.deep\nWORDS = 1\n",
        "extra.txt": "1",
        "readme.md": "1",
        "agent/deep.py": "1",
        "agent/other.py": "1",
        "more/words.txt": "1",
        "eval-gate.yaml": "graderFiles: ['more/**']\n",
    }
    repository = Repository(tmp_path, files=files)
    commit_all(tmp_path)
    first = repository.run()
    assert first.returncode == 0, first.stdout + first.stderr
    assert "the root of the repository is not compared as a whole: for `python3 ../g.py`" in first.stdout
    for name in ("readme.md", "agent/other.py", "agent/agent.py"):
        with (tmp_path / name).open("a") as stream:
            stream.write("\n")
    assert "setup changed" not in repository.compare().stdout
    for name in ("rules.py", "extra.txt", "more/words.txt", "g.py"):
        with (tmp_path / name).open("a") as stream:
            stream.write("\n# changed")
        assert f"`{name}`" in (done := repository.compare()).stdout, done.stdout
        assert done.returncode == 1


def test_grader__agent_beside_it__is_no_file_of_the_grader(tmp_path) -> None:
    targets = "targets:\n  - {name: desk, provider: cli, command: 'python3 agent.py {PROMPT}'}\n"
    files = {"evals/targets.yaml": targets, "evals/agent.py": AGENT.format(answer="good"), "evals/data": "1"}
    repository = Repository(tmp_path, files=files)
    commit_all(tmp_path)
    assert repository.run().returncode == 0
    repository.write("evals/agent.py", AGENT.format(answer="good day"))
    assert "setup changed" not in repository.compare().stdout
    repository.write("evals/targets.yaml", targets.replace("agent.py", "agent.py g.py data"))
    repository.write("evals/g.py", KIND)
    repository.write("evals/agent.py", AGENT.format(answer="bad"))
    done = repository.compare()
    assert done.returncode == 1, done.stdout
    assert "grader of 1 case changed: `evals/data`, `evals/g.py" in done.stdout  # the agent's command hides no file
