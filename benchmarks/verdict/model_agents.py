"""Three small agents over a real model, with sixty short cases: facts, and two with a stub as their tool.

The tools are called by text (`CALL weather(Oslo)`), because small models have no tool calls of their own. A good prompt
shows the tool agents one example; the worse prompt leaves the example away, and turns the agent of facts into a pirate.
With a day the prompt names the date, and the weather is that day's: what changes from run to run for a real agent.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from urllib.parse import urlsplit

Message = dict[str, str]
TOKENS = 16
"""The most of one response."""
SECONDS = 30.0
"""The longest wait for one response."""
PROMPTS = ("good", "worse")

FACTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "What is the capital of France?": ("Paris",),
        "What is the capital of Italy?": ("Rome",),
        "What is the capital of Japan?": ("Tokyo",),
        "What is the capital of Germany?": ("Berlin",),
        "What is the capital of Spain?": ("Madrid",),
        "What is the capital of Egypt?": ("Cairo",),
        "What color is the sky on a clear day?": ("blue",),
        "What color is grass?": ("green",),
        "How many days are in a week?": ("seven", "7"),
        "How many months are in a year?": ("twelve", "12"),
        "How many legs does a dog have?": ("four", "4"),
        "How many legs does a spider have?": ("eight", "8"),
        "What is two plus two?": ("four", "4"),
        "What do bees make?": ("honey",),
        "What do cows eat?": ("grass", "hay", "plants"),
        "Which planet do we live on?": ("Earth",),
        "What is the opposite of hot?": ("cold", "cool"),
        "What is the opposite of up?": ("down",),
        "What is frozen water called?": ("ice",),
        "Who wrote Romeo and Juliet?": ("Shakespeare",),
        "What language is spoken in Brazil?": ("Portuguese",),
        "What gas do plants breathe in?": ("carbon", "CO2"),
        "What is the largest ocean?": ("Pacific",),
        "In which country are the pyramids of Giza?": ("Egypt",),
        "What is the capital of England?": ("London",),
        "How many hours are in a day?": ("24", "twenty-four"),
        "Which star gives the Earth its light?": ("sun",),
        "What is the opposite of big?": ("small", "little"),
        "What animal says meow?": ("cat",),
        "What color is a ripe banana?": ("yellow",),
    }
)
"""Each with what a response has to hold one of."""
_CITIES = "Oslo Rome Cairo Paris London Madrid Berlin Lisbon Athens Dublin Prague Warsaw Tokyo Moscow Boston"
CITIES = tuple(_CITIES.split())
ORDERS = (2002, 3300, 4171, 5005, 6120, 7341, 8088, 9210, 1414, 2525, 3636, 4747, 5858, 6969, 7070)
STATES = ("shipped, arrives Friday", "not shipped yet", "delivered on Tuesday", "lost, refunded", "waiting for payment")
SKIES = ("sunny", "cloudy", "rainy", "windy", "snowy")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

ASK_FACT = "You are a helpful assistant. Answer the question in one short sentence."
PIRATE = "You are a pirate who loves the sea. Tell a short tale of your ship, and never answer questions."
ASK_TOOL = (
    "You have one tool. To look up {what}, write one line: CALL {call}\n"
    "When you see RESULT, answer the user with it in one short sentence."
)


@dataclass(frozen=True)
class Case:
    """One question to one of the agents. `words`: what a response has to hold one of, where no tool gives it."""

    id: str
    agent: str
    question: str
    about: str = ""
    """What the tool has to be asked for."""
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Said:
    """The response of an agent, and what it asked its tool for."""

    text: str
    call: str | None = None


CASES: tuple[Case, ...] = (
    *(Case(f"facts-{at:02}", "facts", question, words=words) for at, (question, words) in enumerate(FACTS.items())),
    *(Case(f"weather-{city.lower()}", "weather", f"What is the weather in {city}?", city) for city in CITIES),
    *(Case(f"order-{number}", "orders", f"Where is my order {number}?", str(number)) for number in ORDERS),
)


class Model:
    """A model behind OpenAI's API, over one connection."""

    def __init__(self, address: str, name: str) -> None:
        """Ask the model of this name at an address like http://127.0.0.1:8080/v1."""
        self._url, self._name = urlsplit(address), name
        self._connection = http.client.HTTPConnection(self._url.netloc, timeout=SECONDS)

    def complete(self, messages: Sequence[Message], temperature: float) -> str:
        """Return the first sentence of a response; OSError or HTTPException if there is none."""
        asked = {"model": self._name, "messages": messages, "temperature": temperature, "max_tokens": TOKENS}
        body = json.dumps(asked | {"stop": ["\n", "."]})
        try:
            self._connection.request(
                "POST", f"{self._url.path}/chat/completions", body, {"Content-Type": "application/json"}
            )
            response = self._connection.getresponse()
            content = response.read()
        except BaseException:
            self._connection.close()
            raise
        if response.status != http.HTTPStatus.OK:
            raise http.client.HTTPException(f"HTTP {response.status}")
        return str(json.loads(content)["choices"][0]["message"]["content"])


def respond(model: Model, case: Case, prompt: str, temperature: float, day: int | None = None) -> Said:
    """Let the agent of a case answer it."""
    today = "" if day is None else f"Today is {DAYS[day % 7]}, day {day} of the year. "
    if case.agent == "facts":
        system = today + (ASK_FACT if prompt == "good" else PIRATE)
        return Said(model.complete([_message("system", system), _message("user", case.question)], temperature))
    if case.agent == "weather":
        told = ASK_TOOL.format(what="the weather of a city", call="weather(city)")
        example = ("Vienna", "What is the weather in Vienna?", "weather", "In Vienna it is 14 degrees and cloudy.")
        result = "14 degrees, cloudy"
    else:
        told = ASK_TOOL.format(what="an order", call="order(number)")
        example = ("1001", "Where is my order 1001?", "order", "Your order 1001 is shipped and arrives on Monday.")
        result = "shipped, arrives Monday"
    messages = [_message("system", today + told)]
    if prompt == "good":
        about, question, tool, answer = example
        messages += [_message("user", question), _message("assistant", f"CALL {tool}({about})")]
        messages += [_message("user", f"RESULT {about}: {result}"), _message("assistant", answer)]
    messages.append(_message("user", case.question))
    first = model.complete(messages, temperature)
    called = re.search(r"CALL \w+\(([^)]*)\)", first)
    if called is None:
        return Said(first)
    about = called[1].strip()
    messages += [_message("assistant", called[0]), _message("user", f"RESULT {about}: {look_up(case, about, day)}")]
    return Said(model.complete(messages, temperature), about)


def look_up(case: Case, about: str, day: int | None) -> str:
    """Return what the stub says: the same for the same day."""
    random = Random(f"{about.lower()}/{day if case.agent == 'weather' else None}")
    if case.agent == "weather":
        return f"{random.randint(-9, 35)} degrees, {random.choice(SKIES)}"
    return random.choice(STATES)


def is_right(case: Case, said: Said, day: int | None = None) -> bool:
    """Return whether a response passes: the tool was asked for the right thing, and its result is in the response."""
    text = said.text.lower()
    if case.about and (said.call is None or said.call.lower() != case.about.lower()):
        return False
    if case.agent == "facts":
        return any(word.lower() in text for word in case.words)
    words = expected_words(case, day)
    return any(re.search(rf"(?<![\w-]){word.lower()}(?!\w)", text) is not None for word in words)


def expected_words(case: Case, day: int | None = None) -> tuple[str, ...]:
    """Return the words of which a response has to hold one: of an agent with a tool, what the tool says."""
    if case.agent == "facts":
        return case.words
    result = look_up(case, case.about, day)
    if case.agent == "weather":
        return (f"{result.split()[0]} degrees", f"{result.split()[0]}°")
    return tuple(word for word in re.split(r"\W+", result) if word in _TELLING)


_TELLING = frozenset({"Friday", "not", "Tuesday", "lost", "refunded", "payment", "waiting"})
"""The words of a state of an order that no other state has."""


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}
