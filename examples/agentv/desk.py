"""A library's desk as an agent on the command line: no model, but it speaks as one that was wrapped in a script."""

import argparse
import json
import re
from pathlib import Path

BOOKS = {"dune": "on loan until Friday", "emma": "on the shelf", "solaris": "on the shelf"}
HOURS = {"saturday": "10:00 to 16:00", "sunday": "closed"}


def answer(prompt: str, rules: str, files: list[str]) -> tuple[str, list[dict]]:
    """The text, and the tools that were used for it."""
    asked = prompt.rpartition("@[User]:")[2]  # of several turns the last one counts
    words = set(re.findall(r"[a-z]+", asked.casefold()))
    calls = []
    said = []
    for day in sorted(words & HOURS.keys()):
        calls.append({"tool": "openingHours", "input": {"day": day}, "output": HOURS[day]})
        said.append(
            f"On {day.capitalize()} we are open {HOURS[day]}." if day != "sunday" else "On Sunday we are closed."
        )
    titles = sorted(words & BOOKS.keys())
    for path in files:
        titles += sorted(line.strip().casefold() for line in Path(path).read_text(encoding="utf-8").splitlines())
    for title in titles:
        calls.append({"tool": "findBook", "input": {"title": title}, "output": BOOKS.get(title)})
        said.append(f"{title.capitalize()} is {BOOKS.get(title, 'not in our catalogue')}.")
        if "reserve" in words and title in BOOKS:
            calls.append({"tool": "reserveBook", "input": {"title": title}})
            said.append(f"{title.capitalize()} is reserved for you.")
    if "sign" in rules:
        said.append("The library desk")
    return " ".join(said) or "I can tell you about our books and our opening hours.", calls


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--prompt", default="")
    parser.add_argument("--rules", default="")
    parser.add_argument("--files", nargs="*", default=[])
    parser.add_argument("--out")
    parser.add_argument("--ready", action="store_true")
    given = parser.parse_args()
    if given.ready:
        return
    text, calls = answer(given.prompt, given.rules, given.files)
    message = {"role": "assistant", "content": text, "tool_calls": calls}
    Path(given.out).write_text(json.dumps({"output_messages": [message]}), encoding="utf-8")


if __name__ == "__main__":
    main()
