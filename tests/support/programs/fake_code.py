"""Stands in for VS Code's program and the agent inside it, which work by files.

The script beside the program has, all optional: `status` (what `--status` prints), `alive` (false: never wakes up),
`exit` (of a chat), `stderr`, `answers` (texts by a word of the request; null: no response comes), `kind` (`link`,
`folder` or `large` instead of an ordinary response), `lock` (what the agent does to the lock: `removes`, `replaces`).
Without a matching answer the agent says that it has read the request.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

program = Path(sys.argv[1])
script = json.loads(program.with_name(f"{program.name}.json").read_text(encoding="utf-8"))


def note(**facts: object) -> None:
    with program.with_name(f"{program.name}.calls").open("a", encoding="utf-8") as notes:
        notes.write(json.dumps(facts) + "\n")


def agent(request: Path) -> None:
    """What the agent does, in a process of its own as in the editor."""
    text = request.read_text(encoding="utf-8")
    if request.name.endswith("_orchestrator.md"):
        for name in re.findall(r"`messages/(\S+_req\.md)`", text):
            agent(request.parent / name)
        return
    said = next((answer for word, answer in script.get("answers", {}).items() if word in text), f"read {len(text)}")
    unfinished, response = (Path(path) for path in re.search(r"`(\S+)`\.\n.*rename it to `(\S+)`", text).groups())
    lock = request.parent.parent / "subagent.lock"
    if script.get("lock"):
        lock.unlink()
    if script.get("lock") == "replaces":
        lock.write_text("somebody else's")
    if said is None:
        return
    if script.get("kind") == "link":
        response.symlink_to(program)
    elif script.get("kind") == "folder":
        response.mkdir()
    else:
        unfinished.write_text("x" * 5_000_000 if script.get("kind") == "large" else said, encoding="utf-8")
        time.sleep(0.05)
        unfinished.rename(response)


def main(words: list[str]) -> int:
    if words[0] == "--agent":
        agent(Path(words[1]))
        return 0
    folder = Path.cwd()
    note(argv=words, environment=dict(os.environ), locked=(folder / "subagent.lock").exists())
    if words == ["--status"]:
        print(script.get("status", ""))
    elif words[:4] == ["-r", "chat", "-m", "wakeup"]:
        if script.get("alive", True):
            (folder / ".alive").touch()
    elif words[:2] == ["-r", "chat"]:
        sys.stderr.write(script.get("stderr", ""))
        again = [sys.executable, "-S", "-E", __file__, str(program), "--agent", words[-2]]
        if not script.get("exit"):
            subprocess.Popen(again, start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
        return int(script.get("exit", 0))
    return 0


sys.exit(main(sys.argv[2:]))
