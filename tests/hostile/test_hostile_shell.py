"""Command templates against real shells: whatever a value holds, it arrives as it is, and nothing else is executed.

Templates are put together from every kind of quotes and from loose signs; any of them may be refused. One that
it takes is run twice, with a harmless value and with a hostile one. Both times the same commands must run with the same
arguments, but for the value itself; and there is a program of the harmless value's name, which must not be run.

`EVAL_GATE_FUZZ=20000 pytest tests/hostile/test_hostile_shell.py` looks longer.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from eval_gate.text.command_template import CommandTemplate, quote_for_shell

EXAMPLES: Final = int(os.environ.get("EVAL_GATE_FUZZ", "150"))
PLAIN: Final = "of no\tinterest"
"""It needs quotes as well: what needs none may be a keyword or an assignment where a template begins with it."""
SHELLS: Final = {
    "sh": ("/bin/sh", "-c"),
    "bash": ("/bin/bash", "--posix", "-c"),  # what is called sh on other systems
}
RECORD: Final = """#!/bin/sh
{ printf '%s\\0' "$#"; for one; do printf '%s\\0' "$one"; done; } >> "$RECORDS/$$"
"""


class Shells:
    """A PATH with nothing on it but `rec`, which notes its arguments, and two programs that no template calls.

    `owned` is called by hostile values, and the other one has the name of the harmless value.
    """

    def __init__(self, folder: Path) -> None:
        self._bin, self._here, self._records = (folder / name for name in ("bin", "here", "records"))
        self._bin.mkdir()
        note = '#!/bin/sh\n: > "$RECORDS/{}"\n'
        for name, text in (("rec", RECORD), ("owned", note.format("owned")), (PLAIN, note.format("named"))):
            (self._bin / name).write_text(text)
            (self._bin / name).chmod(0o755)

    def run(self, shell: str, line: str) -> tuple[list[list[bytes]], list[str]]:
        """The arguments of every call of `rec`, in any order, and what was left behind or called beside it."""
        for place in (self._here, self._records):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        environment = {"PATH": str(self._bin), "RECORDS": str(self._records)}
        subprocess.run(
            [*SHELLS[shell], line], cwd=self._here, env=environment, capture_output=True, timeout=20, check=False
        )
        left = [file.name for file in (*self._here.iterdir(), *self._records.glob("[on]*"))]
        return sorted(call for file in self._records.glob("[0-9]*") for call in _calls(file.read_bytes())), left


def _calls(data: bytes) -> Iterator[list[bytes]]:
    words = iter(data.split(b"\0")[:-1])
    for count in words:
        yield [next(words) for _ in range(int(count))]


@pytest.fixture(scope="module")
def shells() -> Iterator[Shells]:
    with tempfile.TemporaryDirectory() as name:
        yield Shells(Path(name))


_CODE = (
    "$(owned)",
    "`owned`",
    "; owned ;",
    "\nowned\n",
    "' ; owned ; '",
    '" ; owned ; "',
    "| owned",
    "&& owned &",
    "$(( x[$(owned)] ))",
)
_PARTS = (
    *_CODE,
    "'",
    '"',
    "\\",
    "`",
    "$",
    "$(",
    "${",
    "(",
    ")",
    "}",
    "#",
    "\n",
    "\r",
    "EOF\n",
    "EOF",
    "*",
    "~",
    "!",
    "=",
    "-n",
    "{PROMPT}",
    "ü🙂",
    "\x01",
    " ",
    "$RECORDS",
)
VALUES = st.lists(
    st.sampled_from(_PARTS) | st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=4),
    max_size=6,
).map(
    lambda parts: "".join((*parts, "."))  # a line break at the end is lost in $( ), as every shell has it
)
NAMES = st.sampled_from(("{PROMPT}", "{EVAL_ID}"))
WORDS = NAMES.flatmap(
    lambda name: st.sampled_from(
        (
            *(name, f"'{name}'", f'"{name}"', f"--x={name}", f"{name}{name}", f"a'b'{name}\"c\"", f'"$x"{name}'),
            *(
                f'"$(printf %s {name})"',
                f'"$(printf %s "{name}")"',
                f'"`printf %s {name}`"',
                f"$(rec {name})",
                f"`rec {name}`",
            ),
            *(
                f'"said {name}"',
                f"'said {name}'",
                f"\\{name}",
                f"\\'{name}\\'",
                f'\\"{name}\\"',
                f"$'{name}'",
                f'$"{name}"',
            ),
            *(
                f"${{x:-{name}}}",
                f'"${{x:-{name}}}"',
                f"\"${{x:-'{name}'}}\"",
                f"$(({name}))",
                f"a#{name}",
                f"$[{name}]",
                f'"${{x:-"{name}"}}"',
                f'${{x:-"{name}"}}',
                f'"$(case x in x) rec "{name}";; esac)"',
                f'"$(case x in x) rec "it {name}";; esac)"',
                f"${{x:-small}} {name}",
                f'"\\"{name}\\""',
            ),
            *(
                f'"$(rec "it\'s" {name})"',
                f"$(rec ')' {name})",
                f'"$(rec {name}; rec ")")"',
                f'"a"\'{name}\'"b"',
                f"''{name}''",
                *(
                    f"$x{name}",
                    f"{name}>/dev/null",
                    f"{name}</dev/null",
                    f"{name}#x",
                    f"~{name}",
                    f"[{name}]",
                    f"x[{name}]",
                ),
                *(f"x[ {name} ]=1", f"out/{name}.json", f"{name}[0]"),
            ),
        )
    )
)
LINES = WORDS.flatmap(
    lambda word: st.sampled_from(
        (
            *(
                f"rec {word}",
                f"(rec {word})",
                f"{{ rec {word}; }}",
                f"rec a && rec {word}",
                f"x=1 rec {word}",
                f'x={word}; rec "$x"',
            ),
            *(
                f"# don't\nrec {word}",
                f"rec b # {word}",
                f"rec b # it's\nrec {word}",
                f"rec b#'\nrec {word}'",
                f"rec <<EOF\nit's {word}\nEOF\nrec c",
            ),
            *(
                f"case x in x) rec {word};; esac",
                f"x=$(case x in x) rec {word};; esac)",
                f"x=$(case x in (x) rec {word};; esac)",
            ),
            *(
                f"if true; then rec {word}; fi",
                f'for x in {word}; do rec "$x"; done',
                f'f() {{ rec "$1"; }}; f {word}',
                f"rec \\\n{word}",
            ),
            *(
                f"x=$(rec 'a\nb' {word}); rec \"$x\"",
                f'rec "$(rec <<EOF\n{word}\nEOF\n)"',
                f"rec <<'EOF'\n{word}\nEOF",
                f'rec "\\\\" {word}',
            ),
            *(
                word,
                f"x=1 {word}",
                f"! {word}",
                f"rec a; {word}",
                f"rec a | {word}",
                f"rec a &&\\\n{word}",
                f"({word})",
                *(
                    f"time -p {word}",
                    f"{{,}} {word}",
                    f"rec a &>/dev/null {word}",
                    f"> {word} rec",
                    f"> /dev/null {word}",
                ),
                *(
                    f"y[ {word} ]=1",
                    f"coproc x {{ {word}; }}",
                    f"function f {{ {word}; }}; f",
                    f"rec a > /dev/null {word}",
                ),
                *(f"rec a &&\\\n{word}", f"rec a &&{word}", f"rec a \\\n  {word}", f"rec a \\\n#'\n{word}"),
            ),
            *(f"if {word}; then {word}; fi", f"for x in {word}; do {word}; done", f"case {word} in *) {word};; esac"),
            *(f"rec <<EOF # why\nit {word}\nEOF", f"rec <\\\n<EOF\nit {word}\nEOF", f"(rec a)#'\nrec ' {word}'"),
            *(f"rec a\\\n#'\nrec {word}'", f"rec $\\\n({word})", f"rec `rec '` ' ` {word} '", f"rec $'\\' {word}'"),
        )
    )
)
SOUP = st.lists(
    NAMES
    | st.sampled_from(
        (
            *"'\"`$(){}#;&| \t\n\\=",
            "rec ",
            "rec ",
            "$(",
            "$((",
            "${x",
            "x",
            "<<EOF\n",
            "\nEOF\n",
            "case x in x) ",
            ";;",
            " esac",
            "\\\n",
            "if ",
            "then ",
            "do ",
            "! ",
            "x=",
            "rec a",
            *("[", "]", ">&2 ", "~", "!", "-p ", "time ", "for x in ", "coproc ", "${x:-a}", "\r", "\u00a0"),
        )
    ),
    min_size=2,
    max_size=14,
).map(lambda signs: "".join(signs).replace("$$", "$x"))  # $$ is another number every time


@pytest.mark.parametrize("shell", [name for name, (program, *_) in SHELLS.items() if Path(program).exists()])
@given(st.lists(LINES, min_size=1, max_size=2).map("\n".join) | SOUP.map(lambda soup: f"rec {soup}"), VALUES)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.filter_too_much])
@example('rec "{PROMPT}"', '";owned;".')
@example("rec '{PROMPT}'", "';owned;'.")
@example("{PROMPT} rec a", "PATH=/nowhere.")
@example("rec $(({PROMPT}))", "x[$(owned)]")
@example('x=${x:-small} {PROMPT}; rec "$x"', ".")
@example("rec <<EOF # why\nit {PROMPT}\nEOF", "$(owned)")
@example("rec <\\\n<EOF\nit {PROMPT}\nEOF", "$(owned)")
@example("(rec a)#'\nrec ' it{PROMPT}'", "$(owned)")
@example("rec a\\\n#'\nrec {PROMPT}'", "$(owned)")
@example('rec "$\\\n(rec "it {PROMPT}")"', "$(owned)")
@example('rec "$(ca\\\nse x in x) rec "it {PROMPT}";; esac)"', "$(owned)")
@example("rec $(\\\n(1 + {PROMPT}))", "x[$(owned)]")
@example("rec `# '` ' ` {PROMPT} '", "$(owned)")
@example("rec $'\\' {PROMPT}'", "$(owned)")
@example('for x in {PROMPT}; do rec "$x"; done\nrec ${x:-small} {PROMPT}', ".")
@example(r"rec \;;{PROMPT}", ".")
@example(r"rec \>&{PROMPT}", ".")
@example("y[ {PROMPT} ]=1", "x[$(owned)]")
@example("{,} {PROMPT}", ".")
@example("rec {PROMPT}>/dev/null", "2")
@example("rec a \\\n#'\nrec {PROMPT}'", "$(owned)")
@example(r"> \{PROMPT} rec", ".")
def test_finding_11__template_that_is_taken__hostile_value_is_one_word_and_runs_nothing(
    shells, shell, template, value
) -> None:
    try:
        taken = CommandTemplate.from_command(template)
    except ValueError:
        return
    plain, hostile = (
        shells.run(shell, taken.render({"PROMPT": quote_for_shell(said), "EVAL_ID": quote_for_shell(said)}))
        for said in (PLAIN, value)
    )
    if "named" in plain[1]:  # the value stands behind what turned out to be nothing, which docs/security.md lists
        assert "$" in template or "`" in template
        return
    assert hostile[1] == plain[1]
    assert all(name in template for name in plain[1]), "only what the author wrote may be the name of a file"
    if re.search(r"\$\{?x", template) and any(PLAIN.split()[-1].encode() in call for call in plain[0]):
        return  # the author's own `$x` without quotes, into which the value was put: a shell splits whatever is in it
    expected = [[word.replace(PLAIN.encode(), value.encode()) for word in call] for call in plain[0]]
    assert hostile[0] == sorted(expected)


def test_finding_11__values_without_quotes__are_found_out(shells) -> None:
    """The same with a check that lets everything pass: what this file says is worth something."""
    _, left = shells.run("sh", 'rec "said {PROMPT}"'.replace("{PROMPT}", quote_for_shell("$(owned)")))
    assert left == ["owned"]
