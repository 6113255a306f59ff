"""Does in its working directory what it is asked for, a step a line, and answers with the files that lie there then."""

import pathlib
import sys

prompt, place = sys.argv[1:3]
for step in prompt.splitlines():
    kind, _, rest = step.partition(" ")
    name, _, text = rest.partition(" ")
    path, text = pathlib.Path(name), text.replace("|", "\n")
    if kind == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    elif kind == "add":
        path.write_text(path.read_text() + text)
    elif kind == "bytes":
        path.write_bytes(bytes.fromhex(text))
    elif kind == "remove":
        path.unlink()
    elif kind == "move":
        path.rename(text)
    elif kind == "mode":
        path.chmod(int(text, 8))
    elif kind == "replace":
        path.write_text(path.read_text().replace(*text.split("=>")))
names = sorted(one.as_posix() for one in pathlib.Path().rglob("*") if one.is_file() and one.parts[0] != ".git")
pathlib.Path(place).write_text(" ".join(names))
