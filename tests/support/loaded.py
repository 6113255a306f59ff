"""A process that has loaded the program, and forks itself for each run of it (see `program.py`, which starts it).

Over the socket whose number is the first argument comes a byte for each run, with three descriptors: a socket with the
request and for the answers, standard output and standard error. Nothing here has a thread, so that a fork is whole.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
import threading
from contextlib import suppress

# what the program loads inside functions, and nearly every run does
LATE = (
    "aiohttp",
    "anyio",
    "concurrent.futures.thread",
    "ctypes",
    "encodings.cp437",
    "encodings.utf_16_le",
    "encodings.utf_8_sig",
    "github",
    "httpcore",
    "jinja2",
    "regress",
    "rich.progress",
    "tabulate",
    "typer.main",
    "typer._click.decorators",
)
NOT = (
    "eval_gate.__main__",
    "eval_gate.staleness.mcp_servers",
    "eval_gate.text.javascript.regex_worker",
)
# it brings the libraries of model providers, a second's work that few runs need: a process by itself has them
MODELS = "eval_gate.targets.model"
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
LATE_OF_MODELS = ("genai_prices", "pydantic_ai.models.openai", "pydantic_ai.providers.openai")


def load(models: bool) -> None:
    """Import the program's modules and what they import late; those that ask models only where they are wanted."""
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"  # as the program has it
    package = importlib.import_module("eval_gate")
    for found in pkgutil.walk_packages(package.__path__, "eval_gate."):
        if not found.name.startswith(NOT if models else (*NOT, MODELS)):
            importlib.import_module(found.name)
    for name in (*LATE, *LATE_OF_MODELS) if models else LATE:
        importlib.import_module(name)
    prepare()
    del os.environ["PYDANTIC_DISABLE_PLUGINS"]


def prepare() -> None:
    """Do once what every run does: compile templates and what reads its data and options, read certificates."""
    import msgspec
    from pydantic import BaseModel

    from eval_gate.config.wire import parse_config
    from eval_gate.files.certificates import load_ssl_context
    from eval_gate.reports.template_compilation import compile_templates

    keep_commands()
    compile_templates()
    parse_config("{}")
    load_ssl_context()
    waiting = [BaseModel]
    while waiting:
        found = waiting.pop()
        waiting += found.__subclasses__()
        if found.__module__.startswith("eval_gate.") and not found.__pydantic_complete__:
            found.model_rebuild()
    waiting = [msgspec.Struct]
    while waiting:
        found = waiting.pop()
        waiting += found.__subclasses__()
        if found.__module__.startswith("eval_gate."):
            with suppress(msgspec.ValidationError, NameError, TypeError):  # the last two: it is never read from a file
                msgspec.json.decode(b"null", type=found)


def keep_commands() -> None:
    """Build once what typer makes of the options of each command: every run built it anew, in 40 ms."""
    import typer.main

    from eval_gate.cli.program import _COMMANDS, app

    build_command = typer.main.get_command
    commands = {}

    def get_command(program):
        key = (id(program), *map(id, program.registered_commands))
        if key not in commands:
            commands[key] = build_command(program)
        return commands[key]

    typer.main.get_command = get_command
    for name, command in _COMMANDS.items():
        app.registered_commands = [command]
        for parameter in get_command(app).commands[name].params:
            parameter.get_runtime_param()
    app.registered_commands = list(_COMMANDS.values())
    get_command(app)


def wait(asking: socket.socket) -> socket.socket | None:
    """Fork for each run; in the fork, what comes back is the socket of its request. None when nobody asks any more."""
    while True:
        byte, descriptors, _, _ = socket.recv_fds(asking, 1, 3)
        if not byte:
            return None
        if os.fork() == 0:
            asking.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number, descriptor in enumerate(descriptors[1:], start=1):
                os.dup2(descriptor, number)
                os.close(descriptor)
            return socket.socket(fileno=descriptors[0])
        for descriptor in descriptors:
            os.close(descriptor)


def become(request: socket.socket) -> bool:
    """In another fork: the process as asked for. Here: wait for its end and tell of it."""
    with request, request.makefile("rw") as stream:
        asked = json.loads(stream.read())
        child = os.fork()
        if child:
            # or who reads would wait for us too
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            request.sendall(f"{child}\n".encode())
            _, status, usage = os.wait4(child, 0)
            request.sendall(f"{status} {usage.ru_utime + usage.ru_stime}\n".encode())
            return False
    os.chdir(asked["folder"])
    read = [os.environ.get(name) for name in CERTIFICATES]
    os.environ.clear()
    os.environ.update(asked["environment"])
    if read != [os.environ.get(name) for name in CERTIFICATES]:
        from eval_gate.files.certificates import load_ssl_context

        load_ssl_context.cache_clear()  # others than those that were read
    sys.argv = ["eval-gate", *asked["arguments"]]
    return True


def run_to_end() -> None:
    """Run the program and end as Python does: wait for threads, do what is registered for the exit, flush streams.

    What comes after that is left out: taking a thousand modules apart was half of what a run of the program used.
    """
    try:
        runpy.run_module("eval_gate", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        threading._shutdown()
        atexit._run_exitfuncs()
        code = ended.code
        for stream in (sys.stdout, sys.stderr):
            try:
                if stream is not None and not stream.closed:
                    stream.flush()
            except OSError:
                code = 120  # as Python does
        os._exit(code)


def main() -> None:
    """Load, wait, and be the program in each fork."""
    load(models=sys.argv[2:] == ["models"])
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    request = wait(socket.socket(fileno=int(sys.argv[1])))
    if request is None or not become(request):
        os._exit(0)
    run_to_end()


if __name__ == "__main__":
    main()
