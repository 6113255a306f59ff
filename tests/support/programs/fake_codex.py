"""Stands in for Codex: reads the prompt from stdin and prints what its script says.

The script beside the program has, all optional: `raw` (text to print) or `events` (a list, one JSON line each),
`stderr`, `exit`, `pause` (seconds between the events), `hang` (seconds to stay, with a child of its own), `flood`.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

program = Path(sys.argv[1])
script = json.loads(program.with_name(f"{program.name}.json").read_text(encoding="utf-8"))
prompt_file = Path("prompt.md")
note = {
    "argv": sys.argv[2:],
    "stdin": sys.stdin.buffer.read().decode(),
    "cwd": os.getcwd(),  # noqa: PTH109
    "prompt": prompt_file.read_text(encoding="utf-8") if prompt_file.exists() else None,
    "environment": dict(os.environ),
    "pids": [os.getpid()],
}
if script.get("hang"):
    note["pids"].append(subprocess.Popen(["/bin/sleep", str(script["hang"])]).pid)
with program.with_name(f"{program.name}.calls").open("a", encoding="utf-8") as notes:
    notes.write(json.dumps(note) + "\n")

sys.stderr.write(script.get("stderr", ""))
sys.stderr.flush()
sys.stdout.write(script.get("raw", ""))
for event in script.get("events", []):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()
    time.sleep(script.get("pause", 0))
sys.stdout.flush()
while script.get("flood"):
    sys.stdout.write('{"type": "item.updated"}\n' * 10_000)
time.sleep(script.get("hang", 0))
sys.exit(script.get("exit", 0))
