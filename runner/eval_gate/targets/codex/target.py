"""The Codex CLI as a target: one run of it per case, in a folder of its own (agentv spec, "Codex CLI provider")."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eval_gate.config.settings import TargetChoice
from eval_gate.errors import GateError, Problem
from eval_gate.files.place import shown_as, why_no_folder
from eval_gate.model import limits
from eval_gate.model.conversation import OutputMessage, Response
from eval_gate.model.setup import TargetIdentity
from eval_gate.process.environment import Withheld, allowed
from eval_gate.process.folder import private_folder
from eval_gate.process.run import Captured, Command, FinishedProgram, ProcessError, run
from eval_gate.targets.base import DescribedTarget, Request, TargetError, TargetFault
from eval_gate.targets.build import BuildContext
from eval_gate.targets.codex.log import FOLDER, CodexLog, logs_wanted, no_log, open_log
from eval_gate.targets.codex.output import CodexAnswer, OutputError, failure_of, read_output
from eval_gate.targets.codex.settings import CodexSettings
from eval_gate.targets.coding_agent import INPUT_FILES, find_program, prompt_document, refuse_missing_file
from eval_gate.text.escape import one_line
from eval_gate.text.quoting import quoted_name
from eval_gate.text.redact import Redactor

PREAMBLE: Final = """\
[[ ## system_instructions ## ]]
You work alone: nobody answers questions, and nobody looks at the folder you work in.
Your last message is all that is read, so it has to hold the complete answer.
Where the answer is a change to files, show each of them in that message as a diff that begins with `diff --git`."""
"""What Codex is told first, unless the target has a system prompt."""
MAX_OUTPUT: Final = limits.CODEX_BYTES
QUOTED: Final = 200
"""Characters that an error shows of an output that cannot be read."""
_LAST_WORDS: Final = 500
_HOME: Final = "CODEX_HOME"
"""Where Codex keeps its login and configuration, where that is not below the home folder."""


def arguments(settings: CodexSettings) -> tuple[str, ...]:
    """All arguments of Codex, the prompt coming on stdin. The one place that knows its flags."""
    return (
        *("--ask-for-approval", "never"),
        *("exec", "--json", "--color", "never", "--skip-git-repo-check"),
        *settings.args.open(),
        "-",
    )


class CodexTarget(DescribedTarget[CodexSettings]):
    """Runs Codex once for each case."""

    def __init__(
        self, settings: CodexSettings, *, root: Path, environment: Mapping[str, str], redact: Redactor
    ) -> None:
        super().__init__(settings)
        self._root = root
        self._redact = redact
        home = {_HOME: environment[_HOME]} if _HOME in environment else {}
        self._environment = allowed(environment, {**home, **settings.env.open()})
        self._withheld = Withheld.of(environment, self._environment)
        self._logs = logs_wanted(environment)
        self._program: str | None = None
        self._trouble: dict[str, None] = {}

    @property
    def identity(self) -> TargetIdentity:
        """The program as it was named, with its arguments: another model is another identity."""
        shown = " ".join((self._settings.executable, *self._settings.args.open()))
        return TargetIdentity(name=self._settings.name, provider="codex", identity=self._redact(f"codex:{shown}")[:300])

    @property
    def timeout_ms(self) -> float | None:
        """The limit in its description, which it keeps itself."""
        limit = self._settings.timeout_seconds
        return None if limit is None else limit * 1000

    @property
    def notices(self) -> tuple[str, ...]:
        """Logs that could not be written."""
        return tuple(self._trouble)

    async def check_health(self) -> None:
        """Raise TargetError when there is no such program, or no such folder to work in."""
        self._find()

    async def respond(self, request: Request) -> Response:
        """Run Codex and read its answer. Raises TargetError, which names the log and quotes what was printed."""
        program = self._find()
        settings = self._settings
        prompt = prompt_document(
            request, INPUT_FILES, settings.system_prompt.open() if settings.system_prompt else PREAMBLE
        ).encode("utf-8", "replace")
        log = self._open_log(request)
        finished: FinishedProgram | None = None
        try:
            with private_folder("eval-gate-codex-", self._folder or self._root) as folder:
                folder.write("prompt.md", prompt)
                command = Command(
                    (program, *arguments(settings)),
                    cwd=self._folder or folder.path,
                    environment=self._environment,
                    stdin=prompt,
                    timeout_s=settings.timeout_seconds,
                    max_output=MAX_OUTPUT,
                    end_when_cut=True,
                    watch=log.add,
                    mask=self._redact.data,
                )
                log.begin((program, *arguments(settings)), command.cwd)
                finished = await run(command)
        except (ProcessError, OSError) as error:
            why = error.message if isinstance(error, ProcessError) else error.strerror
            raise self._error(f"Codex CLI could not be run: {why}", None, log, TargetFault.UNREACHABLE) from error
        finally:
            log.end(finished)
            if log.trouble:
                self._trouble[log.trouble] = None
        return self._response(request, finished, log)

    @property
    def _folder(self) -> Path | None:
        return self._root / self._settings.cwd if self._settings.cwd else None

    def _find(self) -> str:
        """The program's path, looked up once. Raises TargetError (unreachable)."""
        if self._program is None:
            program = find_program(self._settings.executable, "Codex executable", self._root, self._environment)
            if self._folder is not None and not self._folder.is_dir():
                what = f"the folder that Codex should work in does not exist: {self._settings.cwd}"
                raise TargetError(what, fault=TargetFault.UNREACHABLE)
            self._program = program
        return self._program

    def _open_log(self, request: Request) -> CodexLog:
        if not self._logs:
            return no_log()
        settings = self._settings
        folder = self._root / (settings.log_dir or FOLDER)
        return open_log(folder, settings.name, request, settings.log_format, self._redact)

    def _response(self, request: Request, finished: FinishedProgram, log: CodexLog) -> Response:
        reading = self._read(finished, log)
        refuse_missing_file(request, reading.answer)
        duration_ms = finished.seconds * 1000
        if reading.calls is None:
            return Response(text=reading.answer, usage=reading.usage, duration_ms=duration_ms, calls_known=False)
        message = OutputMessage(
            role="assistant", content=reading.answer, tool_calls=tuple(call.reported for call in reading.calls)
        )
        return Response(
            text=reading.answer,
            tool_calls=tuple(call.seen for call in reading.calls),
            usage=reading.usage,
            duration_ms=duration_ms,
            messages=(message,),
        )

    def _read(self, finished: FinishedProgram, log: CodexLog) -> CodexAnswer:
        """The answer of a run that went well. Raises TargetError."""
        if finished.timed_out:
            limit = self._settings.timeout_seconds or 0
            raise self._error(f"Codex CLI timed out after {limit:g} s", finished, log, TargetFault.LATE)
        if finished.stdout.cut:
            raise self._error(f"Codex CLI printed more than {MAX_OUTPUT:,} bytes", finished, log)
        text = finished.stdout.text()
        if finished.code != 0:
            raise self._error(f"Codex CLI {finished.ending}{self._quoted(failure_of(text))}", finished, log)
        try:
            return read_output(text)
        except OutputError as error:
            what = f"{error.message}{self._quoted(error.said)}"
            raise self._error(what, finished, log, TargetFault.MALFORMED) from error

    def _error(
        self, what: str, finished: FinishedProgram | None, log: CodexLog, fault: TargetFault = TargetFault.REFUSED
    ) -> TargetError:
        """What went wrong, with the end of what was printed and the way to the log: bounded."""
        parts = [what]
        if finished is not None:
            streams = (("stderr", finished.stderr), ("stdout", finished.stdout))
            parts += [f"{name}: {words}" for name, stream in streams if (words := self._last_words(stream))]
        if missing := self._withheld.needed("", " ".join(parts)):
            parts.append(missing)
        if log.path is not None:
            parts.append(f"log: {shown_as(log.path, self._root)}")
        return TargetError("; ".join(parts), fault=fault)

    def _quoted(self, said: str | None) -> str:
        """Codex's words as the end of a sentence."""
        words = one_line(self._redact(said or ""), QUOTED)
        return f": {words}" if words else ""

    def _last_words(self, stream: Captured) -> str:
        words = stream.last_words(4 * _LAST_WORDS)
        return words if len(words) <= _LAST_WORDS else f"…{words[1 - _LAST_WORDS :]}"


def build(settings: CodexSettings, choice: TargetChoice, context: BuildContext) -> CodexTarget:
    """Codex, not yet started. Raises GateError for a folder of logs outside of the working directory."""
    if settings.log_dir is not None and (why := why_no_folder(settings.log_dir, anywhere=False, root=context.root)):
        shown = settings.reference("logDir") or settings.log_dir
        what = f"target {settings.name}: the log_dir {quoted_name(shown)} {why}"
        hint = "name a folder below the working directory"
        raise GateError("output-outside", what, hint, problems=[Problem(what, field="logDir")])
    return CodexTarget(settings, root=context.root, environment=context.environment, redact=context.redact)
