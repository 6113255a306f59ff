"""Command templates: which are refused, and that no value is ever read as code."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text.command_template import PLACEHOLDERS, CommandTemplate, quote_for_shell

HOSTILE = [
    "",
    "two words",
    "it's",
    'say "hi"',
    "$(touch owned)",
    "`touch owned`",
    "; touch owned",
    "a\nb\n",
    "\\",
    "'; touch owned; '",
    "{PROMPT} {FILES}",
    "$HOME",
    "*",
    "-n",
    "ü🙂",
    "a\rb\tc",
]


def shell(line: str, cwd) -> str:
    return subprocess.run(["/bin/sh", "-c", line], cwd=cwd, capture_output=True, check=True).stdout.decode()


@pytest.mark.contract("agentv.cli-template-configuration.placeholder-substitution-rules")
@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(
    "template",
    [
        "printf %s {PROMPT}",
        'printf %s "{PROMPT}"',
        "printf %s '{PROMPT}'",
        "(printf %s {PROMPT})",
        "# don't\nprintf %s {PROMPT}",
        "if true; then\n  printf %s \\\n    {PROMPT}\nfi",
        'x={PROMPT}; printf %s "$x"',
        "x=; printf %s $x{PROMPT}",
        'for x in {PROMPT}; do printf %s "$x"; done',
        'printf %s "${x:-}"\'\'{PROMPT}"" "$(true)"',
    ],
)
def test_template__placeholder_substitution_rules__values_arrive_as_they_are(tmp_path, template, value) -> None:
    line = CommandTemplate.from_command(template).render({"PROMPT": quote_for_shell(value)})
    assert shell(line, tmp_path).removesuffix("\n") == value.removesuffix("\n")
    assert not (tmp_path / "owned").exists()


@given(st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=60))
def test_template__any_value__is_one_word(tmp_path_factory, value) -> None:
    line = CommandTemplate.from_command("printf '%s|' {PROMPT} {EVAL_ID}").render(
        {"PROMPT": quote_for_shell(value), "EVAL_ID": quote_for_shell(value)}
    )
    assert shell(line, tmp_path_factory.getbasetemp()) == f"{value}|{value}|"


def test_render__text_of_a_placeholder_in_a_value__is_not_replaced() -> None:
    line = CommandTemplate.from_command("a {PROMPT} b {EVAL_ID}{PROMPT}").render(
        {"PROMPT": "'{EVAL_ID}'", "EVAL_ID": "7"}
    )
    assert line == "a '{EVAL_ID}' b 7'{EVAL_ID}'"


def test_of_command__every_placeholder__is_known() -> None:
    text = " ".join(("agent", *(f"{{{name}}}" for name in PLACEHOLDERS)))
    assert CommandTemplate.from_command(text).names == PLACEHOLDERS
    assert PLACEHOLDERS[:6] == ("PROMPT", "GUIDELINES", "EVAL_ID", "ATTEMPT", "SESSION", "FILES")


@pytest.mark.contract("agentv.cli-template-configuration.placeholder-substitution-rules")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a {PROMT}", "contains the unknown placeholder {PROMT} (did you mean {PROMPT}?); known: {PROMPT}, "),
        ("a {OUTPUT}", "contains the unknown placeholder {OUTPUT}"),
        ("a {X} {PROMPT}", "contains the unknown placeholder {X}; known: {PROMPT}"),
        ("a ${PROMPT}", "contains ${PROMPT}, which is a shell variable: write {PROMPT} without the $"),
        ("a {PROMPT}\0", "contains a NUL"),
    ],
)
def test_template__placeholder_substitution_rules__unsupported_placeholders_are_refused(text, problem) -> None:
    with pytest.raises(ValueError, match="contains") as caught:
        CommandTemplate.from_command(text)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    "text", ['a {prompt} {"x": 1} {}', "a ${HOME} ${PATH}", "awk '{ print }'", "{Prompt}", "\\{X}"]
)
def test_of_command__other_braces__stay(text) -> None:
    assert CommandTemplate.from_command(text) == CommandTemplate((text,), ())


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('bash -c "agent {PROMPT}"', "quotes"),
        ("bash -c 'agent {PROMPT}'", "quotes"),
        ('agent "{PROMPT}{EVAL_ID}"', "quotes"),
        ('agent "\\"{PROMPT}"', "quotes"),
        ("agent $'{PROMPT}'", "or behind $'"),
        ('agent "$(basename {FILES})"', "or behind quotes"),
        ("$(agent) {PROMPT}", "or behind $("),
        ("agent `cat {FILES}`", "or behind backquotes"),
        ("agent `agent 'a b'` {PROMPT}", "or behind backquotes"),
        ("agent # {PROMPT}", "a comment"),
        ("agent <<END\n{PROMPT}\nEND", "or behind <<"),
        ("agent <<< x\nother {PROMPT}", "or behind <<"),
        ("agent >| log {PROMPT}", "or behind >|"),
        ("cd x &&\\\nagent {PROMPT}", "or behind \\"),
        ("agent $((1 + {PROMPT}))", "or behind $("),
        ("((1 + {PROMPT}))", "or behind (("),
        ("x[{PROMPT}]=1", "or behind [{"),
        ("x[ {PROMPT} ]=1", "or behind ["),
        ("x\\[ {PROMPT}; y[ {PROMPT} ]=1", "or behind ["),
        ("agent \r {PROMPT}", "or behind \\r"),
        ('agent "${x:-"{PROMPT}"}"', "or behind quotes"),
        ('agent "$(case x in x) agent "{PROMPT}";; esac)"', "or behind quotes"),
    ],
)
def test_of_command__placeholder_where_it_would_be_read_as_code__is_refused(text, where) -> None:
    with pytest.raises(ValueError, match="quoted already") as caught:
        CommandTemplate.from_command(text)
    assert f"inside {where}, where the shell could run parts of its value as code" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "agent <<END # why\nsaid {PROMPT}\nEND",
        "agent <\\\n<END\nsaid {PROMPT}\nEND",
        "(agent a)# '\nagent ' x{PROMPT}'",
        "agent >#'\nagent ' x{PROMPT}'",
        "agent a\\\n#'\nagent {PROMPT}'",
        'agent "$\\\n(agent "a {PROMPT}")"',
        'agent "$\\\n{x:-"{PROMPT}"}"',
        'agent "$(ca\\\nse x in x) agent "{PROMPT}";; esac)"',
        "agent $(\\\n(1 + {PROMPT}))",
        "agent $\\\n'{PROMPT}'",
        "agent `agent '` ' ` {PROMPT} '",
        "agent `# '` ' ` {PROMPT} '",
        "agent $'\\' {PROMPT}'",
    ],
)
def test_of_command__shells_begin_and_end_what_is_quoted_elsewhere__is_refused(text) -> None:
    with pytest.raises(ValueError, match="could run parts of its value as code"):
        CommandTemplate.from_command(text)


@pytest.mark.parametrize("name", ["{PROMPT}", '"{PROMPT}"', "'{PROMPT}'", "./{PROMPT}", "{PROMPT}.sh", "{FILES}"])
@pytest.mark.parametrize(
    "text",
    [
        "{} --fast",
        "x=1 {}",
        "x=${x:-small} {}; agent",
        "x='a b' y+=c {}",
        "time -p {}",
        "{,} {}",
        "{OUTPUT_FILE}{}",
        "> {} agent",
        "agent &>log {}",
        "coproc x { {}; }",
        "if function f { {}; }",
        "case x in\n{}) agent;; esac",
        "2>log {}",
        "> log x=1 {}",
        "agent 2>&1 {EVAL_ID}; {}",
        "agent & {}",
        "agent && {}",
        "agent || {}",
        "agent | {}",
        "agent\n{}",
        "agent # {\n{}",
        "! {}",
        "( {} )",
        "{ {}; }",
        "time {}",
        "if {}; then agent; fi",
        "if agent; then {}; fi",
        "if agent; then agent; elif {}; then agent; else agent; fi",
        "if agent; then agent; else {}; fi",
        "while {}; do agent; done",
        "until agent; do {}; done",
        "for x in {EVAL_ID}; do {}; done",
        "for x do {}; done",
        "case {EVAL_ID} in a) {};; esac",
        "case x in a) agent;; (b|c) {};; esac",
        "case x in a) agent;; esac; {}",
        "f() {}",
        "f() { {}; }",
        "function f { {}; }",
        r"agent \;;{}",
        r"agent \;; {}",
        r"agent \>&{}",
        r"agent \<| {}",
        r"agent \\;{}",
    ],
)
def test_of_command__value_that_would_name_the_program__is_refused(text, name) -> None:
    with pytest.raises(ValueError, match="contains") as caught:
        CommandTemplate.from_command(text.replace("{}", name))
    assert str(caught.value) == (
        f"contains {'{FILES}' if 'FILES' in name else '{PROMPT}'} in the place of a program, so its value would choose"
        " what runs: write the program's name there and the placeholder after it"
    )


@pytest.mark.parametrize(
    "text",
    [
        "x={} agent",
        "x={}; agent",
        "x+={} agent",
        "agent 2>&1 {}",
        "agent >&2 {}",
        "agent > log {}",
        "agent 2> log {}",
        "agent a2> log {}",
        "agent then {}",
        "agent x=1 {}",
        "agent; agent \\\n {}",
        "cd x && \\\n  agent {}",
        '"agent" {}',
        "'if' {}",
        "$AGENT {}",
        "${AGENT:-agent} {}",
        "agent {} $(agent) `agent`",
        "time -p agent {}",
        "agent out/{}.json",
        "agent $HOME/{}",
        "for x in {}; do agent; done",
        "case {} in a) agent {};; b|c) agent {};; esac; agent {}",
        "case x in {}) agent;; esac",
        "(agent {}) && { agent {}; } || ! agent {}",
        "f() { agent {}; }; f {}",
        "if agent {}; then agent {}; else agent {}; fi",
        "agent 'a\\\nb' \"c\\\nd\" {}",
    ],
)
def test_of_command__value_behind_a_program__is_taken(text) -> None:
    assert "PROMPT" in CommandTemplate.from_command(text.replace("{}", "{PROMPT}")).names


@pytest.mark.parametrize("sign", ["<", ">", "#", "(", "["])
def test_of_command__list_that_may_be_empty_before_a_sign__is_refused(sign) -> None:
    with pytest.raises(ValueError, match=r"contains \{FILES\} directly before") as caught:
        CommandTemplate.from_command(f"agent <{{FILES}}{sign}END\n{{PROMPT}}\nEND")
    assert f"directly before {sign}, where the shell" in str(caught.value)


def test_of_command__list_in_an_assignment__is_refused() -> None:
    """Its second word would be the program."""
    with pytest.raises(ValueError, match="in the place of a program"):
        CommandTemplate.from_command("x={FILES} agent")


def test_of_file__value_at_the_beginning__names_no_program() -> None:
    assert CommandTemplate.from_file_format("{path}").names == ("path",)


@pytest.mark.parametrize(
    "text",
    [
        'sh -c "agent > {OUTPUT_FILE}"',
        "sh -c 'agent {ATTEMPT} < {PROMPT_FILE} > {OUTPUT_FILE}'",
        'agent "a" {PROMPT} "b"{FILES}"c"',
        "echo $# {PROMPT}",
        "echo a#b {PROMPT}",
        'agent "$(paste -sd, {PROMPT_FILE})"',
    ],
)
def test_of_command__placeholder_that_is_harmless_there__is_taken(text) -> None:
    assert CommandTemplate.from_command(text).names


def test_of_command__quotes_of_others__are_left_alone() -> None:
    template = CommandTemplate.from_command('agent "a"{PROMPT}"b"')
    assert template.texts == ('agent "a"', '"b"')


@pytest.mark.parametrize(
    ("text", "file", "shown"),
    [
        ("{path}", "/a b/c d.md", "'/a b/c d.md'"),
        ("--file {path}", "/a.md", "--file '/a.md'"),
        ("{basename}={path}", "/x/it's.md", "'it'\"'\"'s.md'='/x/it'\"'\"'s.md'"),
        ("@'{path}'", "/a.md", "@'/a.md'"),
    ],
)
def test_of_file__path_and_basename__are_escaped_each(text, file, shown) -> None:
    words = {"path": quote_for_shell(file), "basename": quote_for_shell(file.rpartition("/")[2])}
    assert CommandTemplate.from_file_format(text).render(words) == shown


@pytest.mark.parametrize("text", ["{path}'", "{path} #", "{path};", "'a' {path}", "$x{path}", "{path}\n", "a `"])
def test_of_file__signs_of_a_shell__are_refused(text) -> None:
    """They would hold for the rest of the command, and the files after this one."""
    with pytest.raises(ValueError, match="contains"):
        CommandTemplate.from_file_format(text)


@pytest.mark.parametrize("text", ["{paht}", "{PATH}", "{name}"])
def test_of_file__unknown_placeholder__is_refused(text) -> None:
    with pytest.raises(ValueError, match=r"known: \{path\}, \{basename\}"):
        CommandTemplate.from_file_format(text)
