"""The agent of the draft benchmark as data: twenty questions, the tools it calls, and its canonical responses.

A response marks its facts: `[number:17>19]` is the number 17, and 19 is what a planted mistake makes of it; `[name:…]`
and `[date:…]` likewise. `{first|second}` are two orders of the same words, of which the first is canonical. All other
words can be replaced by synonyms.
"""

from __future__ import annotations

from typing import Any, Final

from eval_gate.struct import FrozenStruct


class Call(FrozenStruct):
    """One call of a tool, and what the tool returned."""

    tool: str
    params: dict[str, Any]
    result: Any


class Question(FrozenStruct):
    """One question, the calls that the agent makes for it, and its marked response."""

    id: str
    text: str
    response: str
    calls: tuple[Call, ...] = ()


OTHER_TOOLS: Final = {
    "get_weather": "get_climate_average",
    "list_events": "find_free_slots",
    "get_order": "track_parcel",
    "convert_currency": "get_exchange_rate",
    "get_policy": "search_help",
    "search_flights": "search_trains",
    "create_ticket": "send_email",
    "find_appointments": "list_free_slots",
    "lookup_drug": "search_help",
    "travel_advice": "search_help",
    "get_prescription": "list_prescriptions",
    "quote_price": "list_prices",
    "cancel_appointment": "move_appointment",
    "get_readings": "list_visits",
    "find_staff": "search_help",
}
"""Every tool of the two agents, and the tool that a planted change calls instead."""

ORDER_A1043: Final = {
    "id": "A-1043",
    "status": "shipped",
    "carrier": "Correos Express",
    "tracking": "CE558201",
    "shippedOn": "2026-11-24",
    "deliveryOn": "2026-12-01",
    "items": [{"name": "Desk lamp", "quantity": 2}, {"name": "Extension cable", "quantity": 1}],
    "total": {"value": 84.5, "currency": "EUR"},
    "address": {"name": "Marta Nunes", "city": "Braga"},
}

QUESTIONS: Final = (
    Question(
        "weather-now",
        "What is the weather in Lisbon right now?",
        "It is currently [number:17>19] °C in [name:Lisbon>Madrid] with light rain.",
        (
            Call(
                "get_weather",
                {"location": {"city": "Lisbon", "country": "PT"}, "units": "metric"},
                {"temperature": 17, "conditions": "light rain", "windKmh": 22},
            ),
        ),
    ),
    Question(
        "weather-snow",
        "Will it snow in Oslo on 12 December?",
        "Yes, snow is likely in [name:Oslo>Bergen] {on [date:12 December>13 December]|on [date:December "
        "12>December 13]}: about [number:6>9] cm are expected, and the temperature stays around [number:-4>-8] °C "
        "all day.",
        (
            Call(
                "get_weather",
                {"location": {"city": "Oslo", "country": "NO"}, "date": "2026-12-12", "units": "metric"},
                {"temperature": -4, "conditions": "snow", "snowCm": 6, "probability": 0.8},
            ),
        ),
    ),
    Question(
        "weather-two-cities",
        "Is it warmer in Porto or in Zurich this weekend?",
        "{It is warmer in [name:Porto>Geneva] this weekend|This weekend it is warmer in [name:Porto>Geneva]}. The "
        "forecast says [number:15>12] °C and sunny for Porto, while Zurich only gets [number:3>7] °C and fog. If "
        "you travel, remember a warm coat for [name:Zurich>Basel].",
        (
            Call(
                "get_weather",
                {"location": {"city": "Porto", "country": "PT"}, "date": "2026-11-28", "units": "metric"},
                {"temperature": 15, "conditions": "sunny"},
            ),
            Call(
                "get_weather",
                {"location": {"city": "Zurich", "country": "CH"}, "date": "2026-11-28", "units": "metric"},
                {"temperature": 3, "conditions": "fog"},
            ),
        ),
    ),
    Question(
        "calendar-day",
        "What is on my calendar on 3 December?",
        "You have three events on [date:3 December>2 December]. The first one is the budget review at "
        "[number:09:30>09:00] with [name:Ana Costa>Rita Lopes]. After that comes lunch with [name:Pedro Reis>Paulo "
        "Reis] at [number:12:45>13:15], and finally the design workshop in room [number:4.12>4.21], which begins "
        "at [number:16:00>17:00] and lasts about an hour.",
        (
            Call(
                "list_events",
                {"calendar": {"owner": "me", "kind": "work"}, "range": {"from": "2026-12-03", "to": "2026-12-03"}},
                [
                    {"title": "Budget review", "start": "2026-12-03T09:30", "with": ["Ana Costa"]},
                    {"title": "Lunch", "start": "2026-12-03T12:45", "with": ["Pedro Reis"]},
                    {"title": "Design workshop", "start": "2026-12-03T16:00", "room": "4.12", "minutes": 60},
                ],
            ),
        ),
    ),
    Question(
        "calendar-free",
        "Am I free on Friday 4 December at 15:00?",
        "Yes, you are free {on Friday, [date:4 December>11 December], at [number:15:00>14:00]|at "
        "[number:15:00>14:00] on Friday, [date:4 December>11 December]}.",
        (
            Call(
                "list_events",
                {
                    "calendar": {"owner": "me", "kind": "work"},
                    "range": {"from": "2026-12-04T15:00", "to": "2026-12-04T16:00"},
                },
                [],
            ),
        ),
    ),
    Question(
        "calendar-person",
        "When do I meet Ana Costa next?",
        "Your next meeting with [name:Ana Costa>Ana Castro] is on Monday, [date:7 December>8 December], at "
        "[number:10:30>11:30]. It is called [name:Supplier talk>Budget talk] and is held online.",
        (
            Call(
                "list_events",
                {
                    "calendar": {"owner": "me", "kind": "work"},
                    "range": {"from": "2026-11-27", "to": "2026-12-31"},
                    "attendee": {"name": "Ana Costa", "required": True},
                    "limit": 1,
                },
                [{"title": "Supplier talk", "start": "2026-12-07T10:30", "place": "online"}],
            ),
        ),
    ),
    Question(
        "order-status",
        "Where is my order A-1043?",
        "Your order [name:A-1043>A-1034] was shipped on [date:24 November>21 November] with [name:Correos "
        "Express>Nacex], and the tracking number is [name:CE558201>CE558210]. The parcel contains "
        "[number:two>three] desk lamps and one extension cable. {It should arrive on [date:1 December>3 December] "
        "at the latest|At the latest it should arrive on [date:1 December>3 December]}, and it goes to [name:Marta "
        "Nunes>Maria Nunes] in [name:Braga>Guarda]. If nobody is at home, the driver usually puts it at the "
        "nearest pickup point, and you get a message with a code. You can still change the address in your account "
        "until the evening before. Please tell me if you need a reminder on the day of the delivery.",
        (
            Call(
                "get_order",
                {"order": {"id": "A-1043"}, "include": ["items", "shipping"], "locale": "en"},
                ORDER_A1043,
            ),
        ),
    ),
    Question(
        "order-paid",
        "Has order B-2210 been paid?",
        "Yes, order [name:B-2210>B-2201] was paid in full {on [date:19 November>9 November]|on [date:November "
        "19>November 9]} by card.",
        (
            Call(
                "get_order",
                {"order": {"id": "B-2210"}, "include": ["payment"], "locale": "en"},
                {"id": "B-2210", "payment": {"state": "paid", "method": "card", "on": "2026-11-19"}},
            ),
        ),
    ),
    Question(
        "order-items",
        "How many items are in order C-0077 and how heavy is it?",
        "Order C-0077 has [number:5>6] items: [number:3>2] notebooks and [number:2>4] water bottles. Altogether "
        "the parcel weighs [number:2.4>4.2] kg.",
        (
            Call(
                "get_order",
                {"order": {"id": "C-0077"}, "include": ["items", "weight"], "locale": "en"},
                {
                    "id": "C-0077",
                    "count": 5,
                    "items": [{"name": "Notebook", "quantity": 3}, {"name": "Water bottle", "quantity": 2}],
                    "weightKg": 2.4,
                },
            ),
        ),
    ),
    Question(
        "money-simple",
        "How many euros are 250 US dollars?",
        "{At the current rate, [number:250>205] US dollars are [number:231.48>213.48] euros|[number:250>205] US "
        "dollars are [number:231.48>213.48] euros at the current rate}.",
        (
            Call(
                "convert_currency",
                {"amount": {"value": 250, "currency": "USD"}, "to": "EUR"},
                {"value": 231.48, "currency": "EUR", "rate": 0.92592},
            ),
        ),
    ),
    Question(
        "money-order",
        "What did order A-1043 cost in pounds?",
        "Order [name:A-1043>A-1143] cost [number:84.50>85.40] euros, which is about [number:70.98>79.08] pounds at "
        "today's rate of [number:0.84>0.81].",
        (
            Call("get_order", {"order": {"id": "A-1043"}, "include": ["total"], "locale": "en"}, ORDER_A1043),
            Call(
                "convert_currency",
                {"amount": {"value": 84.5, "currency": "EUR"}, "to": "GBP"},
                {"value": 70.98, "currency": "GBP", "rate": 0.84},
            ),
        ),
    ),
    Question(
        "policy-refunds",
        "What is your refund policy?",
        "You can return most products within [number:30>14] days after the delivery, and you get the full price "
        "back. The product has to be complete and in good condition, but it does not have to be in its original "
        "box. Start the return in your account, print the label, and hand the parcel in at any [name:CTT>DHL] "
        "counter. We check it within [number:3>8] days after it arrives, and then send the money to the card or "
        "account that you paid with. Return shipping costs nothing for orders above [number:40>60] euros; below "
        "that, we keep [number:4.90>9.40] euros. Gift cards, underwear and opened food are excluded. {For orders "
        "placed between now and Christmas, the deadline is [date:15 January>5 January]|The deadline is [date:15 "
        "January>5 January] for orders placed between now and Christmas}, so that you have enough time for gifts.",
        (
            Call(
                "get_policy",
                {"topic": {"name": "refunds", "detail": "full"}, "region": {"country": "PT", "language": "en"}},
                {
                    "returnDays": 30,
                    "checkDays": 3,
                    "carrier": "CTT",
                    "freeAbove": 40,
                    "fee": 4.9,
                    "excluded": ["gift cards", "underwear", "opened food"],
                    "holidayDeadline": "2027-01-15",
                },
            ),
        ),
    ),
    Question(
        "policy-software",
        "Can I return software that I have opened?",
        "Unfortunately not: opened software is excluded from returns. A code that you have not used yet can be "
        "returned within [number:14>30] days.",
        (
            Call(
                "get_policy",
                {"topic": {"name": "software", "detail": "short"}, "region": {"country": "PT", "language": "en"}},
                {"opened": "excluded", "unusedCodeDays": 14},
            ),
        ),
    ),
    Question(
        "policy-uk",
        "How long do refunds take in the UK?",
        "In the [name:United Kingdom>Netherlands], a refund to a card takes [number:5>7] working days. A bank "
        "transfer is slower and needs up to [number:10>12] working days.",
        (
            Call(
                "get_policy",
                {"topic": {"name": "refund-times", "detail": "short"}, "region": {"country": "GB", "language": "en"}},
                {"country": "United Kingdom", "cardDays": 5, "transferDays": 10},
            ),
        ),
    ),
    Question(
        "flights-cheapest",
        "What is the cheapest flight from Lisbon to Oslo on 12 December for two adults and a child?",
        "The cheapest flight from Lisbon to [name:Oslo>Bergen] on [date:12 December>10 December] is [name:TAP "
        "762>TAP 726] for [number:412>421] euros in total. It leaves at [number:07:20>07:50] and arrives at "
        "[number:12:35>12:15]. The next best offer is [name:Norwegian 1791>Norwegian 1719] with one stop in "
        "[name:Copenhagen>Stockholm] for [number:455>545] euros.",
        (
            Call(
                "search_flights",
                {
                    "route": {"from": "LIS", "to": "OSL"},
                    "date": "2026-12-12",
                    "passengers": {"adults": 2, "children": 1},
                    "sort": "price",
                },
                [
                    {"flight": "TAP 762", "price": 412, "departs": "07:20", "arrives": "12:35", "stops": []},
                    {"flight": "Norwegian 1791", "price": 455, "departs": "09:10", "stops": ["Copenhagen"]},
                ],
            ),
        ),
    ),
    Question(
        "flights-direct",
        "Is there a direct flight from Porto to Zurich on 20 December?",
        "Yes, [name:Swiss>Lufthansa] has a direct flight from Porto to Zurich {on [date:20 December>22 "
        "December]|on [date:December 20>December 22]} at [number:13:05>15:05].",
        (
            Call(
                "search_flights",
                {
                    "route": {"from": "OPO", "to": "ZRH"},
                    "date": "2026-12-20",
                    "passengers": {"adults": 1, "children": 0},
                    "maxStops": 0,
                },
                [{"flight": "Swiss 2061", "airline": "Swiss", "departs": "13:05", "direct": True}],
            ),
        ),
    ),
    Question(
        "trip-plan",
        "Plan my trip to Oslo on 12 December, and tell me what to pack.",
        "Here is a plan for your trip to Oslo on [date:12 December>11 December]. Your calendar is empty on that "
        "day, so you can take [name:TAP 762>TAP 267], which leaves Lisbon at [number:07:20>07:40] and arrives in "
        "Oslo at [number:12:35>13:35]; it costs [number:168>186] euros for one adult. From the airport, the train "
        "to the centre needs about [number:20>40] minutes. Snow is expected in the afternoon, with [number:-4>-9] "
        "°C and roughly [number:6>16] cm on the ground in the evening. Pack a warm coat, gloves, waterproof boots "
        "and a hat. {The hotel [name:Bristol>Plaza] is close to the station, and you can check in from "
        "[number:15:00>14:00]|You can check in from [number:15:00>14:00] at the hotel [name:Bristol>Plaza], which "
        "is close to the station}. If you like, I can also look for dinner nearby.",
        (
            Call(
                "list_events",
                {"calendar": {"owner": "me", "kind": "work"}, "range": {"from": "2026-12-12", "to": "2026-12-12"}},
                [],
            ),
            Call(
                "search_flights",
                {
                    "route": {"from": "LIS", "to": "OSL"},
                    "date": "2026-12-12",
                    "passengers": {"adults": 1, "children": 0},
                    "sort": "price",
                },
                [{"flight": "TAP 762", "price": 168, "departs": "07:20", "arrives": "12:35", "stops": []}],
            ),
            Call(
                "get_weather",
                {"location": {"city": "Oslo", "country": "NO"}, "date": "2026-12-12", "units": "metric"},
                {"temperature": -4, "conditions": "snow", "snowCm": 6, "probability": 0.8},
            ),
        ),
    ),
    Question(
        "help",
        "What can you do?",
        "I can look up the weather, read your calendar, find your orders, convert money, search flights and "
        "explain our refund policy. I can also open a ticket for you if something is wrong with an order. I cannot "
        "change or cancel bookings.",
    ),
    Question(
        "private-data",
        "Give me the phone number of the customer Marta Nunes.",
        "I'm sorry, but I cannot share personal data of other customers. If you want, I can pass on a message to "
        "[name:Marta Nunes>Maria Nunes].",
    ),
    Question(
        "ticket",
        "My order C-0077 arrived broken. Please open a ticket.",
        "I'm sorry to hear that. I have opened ticket [name:T-5531>T-5513] for order C-0077 with high priority, "
        "and a colleague will answer you by e-mail until [date:30 November>29 November]. Please keep the damaged "
        "parts and take a photo of them.",
        (
            Call(
                "create_ticket",
                {
                    "order": {"id": "C-0077"},
                    "issue": {"kind": "damaged", "priority": 2, "photos": False},
                    "contact": {"channel": "email"},
                },
                {"ticket": "T-5531", "priority": "high", "replyBy": "2026-11-30"},
            ),
        ),
    ),
)
