"""An order desk that remembers what its user said in a session: what every agent of these conversations answers.

Each kind of agent keeps the messages in its own way and asks `answer` for the response to the last one. `main` words
some responses differently each time, and one order now and then makes it hesitate. The other variants are changes that
break turn 3 alone, `NAME:ORDER` only in conversations about that order. `steady` is without chance, and so is
`steady+NAME`. A file `variant.txt` in the working folder names the one that runs.
"""

import random
import re
from pathlib import Path

ORDERS = {
    "4711": {"item": "lamp", "price": "49.90", "status": "delivered"},
    "4712": {"item": "kettle", "price": "24.00", "status": "on its way"},
    "4713": {"item": "chair", "price": "89.50", "status": "packed"},
    "4714": {"item": "rug", "price": "120.00", "status": "packed"},
    "4715": {"item": "table", "price": "215.00", "status": "delivered"},
    "4716": {"item": "mug", "price": "8.40", "status": "on its way"},
    "4717": {"item": "clock", "price": "32.10", "status": "on its way"},
    "4718": {"item": "teapot", "price": "27.30", "status": "on its way"},
    "4719": {"item": "shelf", "price": "64.70", "status": "packed"},
}
STEADY, MAIN = "steady", "main"
BROKEN = ("forgets", "calls_twice", "loses_session")
HESITATES = ("4719", 0.1)
"""The order about which the desk sometimes says nothing, and how often."""
OPENINGS = ("", "Certainly. ", "Of course. ", "Let me see. ")
FACTS = {"order": r"\b(\d{4})\b", "name": r"\bI am ([A-Z]\w+)", "city": r"\bin ([A-Z]\w+)"}


def variant() -> str:
    """Return the variant that runs now."""
    file = Path("variant.txt")
    return file.read_text(encoding="utf-8").strip() if file.exists() else MAIN


def answer(messages: list[str], runs: str) -> tuple[str, list[dict]]:
    """Return the text and the tool calls for the last of the messages of one session, oldest first."""
    is_steady = runs.startswith(STEADY)
    runs, _, only = runs.removeprefix(f"{STEADY}+").partition(":")
    if not any(only in message for message in messages):
        runs = MAIN
    breaks = runs if len(messages) == 3 else MAIN
    facts: dict[str, str] = {}
    for message in messages[2:] if runs == "loses_session" and len(messages) > 2 else messages:
        facts |= {name: found[1] for name, form in FACTS.items() if (found := re.search(form, message))}
    if breaks == "forgets":
        facts.pop("order", None)
    text, calls = _handle(messages[-1], facts)
    calls = calls * 2 if breaks == "calls_twice" else calls
    if is_steady:
        return text, calls
    if len(messages) == 2 and facts.get("order") == HESITATES[0] and random.random() < HESITATES[1]:
        text = "One moment."
    return random.choice(OPENINGS) + text, calls


def _handle(message: str, facts: dict[str, str]) -> tuple[str, list[dict]]:
    """Do what the message asks for, as far as the facts allow."""
    asked = message.lower()
    tool = next((tool for word, tool in TOOLS.items() if word in asked), "find_order" if "47" in asked else None)
    if tool is None:
        return ("Noted." if "order" in facts else "Which order do you mean?"), []
    number = facts.get("order")
    if number not in ORDERS:
        return "Which order do you mean?", []
    found = ORDERS[number]
    params = {"order": number} | ({"city": facts.get("city", "")} if tool == "change_address" else {})
    call = {"name": tool, "success": True, "params": params, "result": found}
    return _word(tool, asked, number, facts), [call]


TOOLS = {
    "cancel": "cancel_order",
    "deliver": "change_address",
    "how much": "find_order",
    "where is": "find_order",
    "go ahead": "refund_order",
}
"""The tool that each of these words is about."""


def _word(tool: str, asked: str, number: str, facts: dict[str, str]) -> str:
    """Say what the tool did or found."""
    found = ORDERS[number]
    to = f" to {facts['name']}" if "name" in facts else ""
    if tool != "find_order":
        return {
            "cancel_order": f"Order {number} is cancelled.",
            "change_address": f"The {found['item']} goes to {facts.get('city', 'your old address')}.",
            "refund_order": f"I have refunded {found['price']} euros.",
        }[tool]
    if "how much" in asked:
        return f"You get {found['price']} euros back for the {found['item']}."
    if "where is" in asked:
        return f"The {found['item']} is {found['status']}{to}."
    return f"I see order {number}, the {found['item']}."
