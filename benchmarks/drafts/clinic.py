"""A second agent, of another field and with other forms of text, written after the derivation of drafts.

It shows whether drafts are worth as much for an agent that they were not made for: lists, prices with signs, thousands,
times with am and pm, ordinal dates, fractions, headings.
"""

from __future__ import annotations

from typing import Final

from benchmarks.drafts.questions import Call, Question

CLINIC_QUESTIONS: Final = (
    Question(
        "next-visit",
        "When is my appointment with Dr. Okafor?",
        "Your appointment with [name:Dr. Okafor>Dr. Osei] is on Tuesday, the [date:9th of March>8th of "
        "March], at [number:2:15 pm>2:45 pm] in building [name:C>D], room [number:108>180].",
        (
            Call(
                "find_appointments",
                {"doctor": {"name": "Okafor"}, "patient": {"id": "P-3307"}, "limit": 1},
                [{"doctor": "Dr. Okafor", "start": "2027-03-09T14:15", "building": "C", "room": 108}],
            ),
        ),
    ),
    Question(
        "dose",
        "How much ibuprofen can an adult take per day?",
        "Without a prescription, adults can take at most [number:1,200>2,100] mg of ibuprofen in 24 hours, "
        "in doses of [number:200>300] to [number:400>600] mg. Wait at least [number:6>4] hours between two "
        "doses, and ask a doctor if the pain lasts longer than [number:3>5] days.",
        (
            Call(
                "lookup_drug",
                {"drug": {"name": "ibuprofen"}, "audience": "adult", "fields": ["dose", "interval"]},
                {"maxMgPerDay": 1200, "doseMg": [200, 400], "intervalHours": 6, "maxDays": 3},
            ),
        ),
    ),
    Question(
        "vaccines",
        "Which vaccinations do I need for Kenya?",
        "For Kenya, we recommend:\n\n- **Yellow fever**: required if you come from [name:Uganda>Rwanda]; one "
        "dose is enough\n- **Hepatitis A**: [number:2>3] doses, [number:6>9] months apart\n- **Typhoid**: one "
        "dose, at least [number:14>10] days before you leave\n\nPlease book before [date:1 May>1 June].",
        (
            Call(
                "travel_advice",
                {"destination": {"country": "KE"}, "topics": ["vaccines"]},
                {
                    "yellowFever": {"requiredFrom": ["Uganda"], "doses": 1},
                    "hepatitisA": {"doses": 2, "monthsApart": 6},
                    "typhoid": {"doses": 1, "daysBefore": 14},
                    "bookBefore": "2027-05-01",
                },
            ),
        ),
    ),
    Question(
        "prescription",
        "Is my prescription RX-88412 ready?",
        "Yes, it has been ready since [number:11 a.m.>10 a.m.] at the [name:Harbour Street>Hill Street] "
        "pharmacy. Please bring your ID; it is kept until [date:April 3>April 13].",
        (
            Call(
                "get_prescription",
                {"prescription": {"number": "RX-88412"}},
                {"state": "ready", "since": "11:00", "pharmacy": "Harbour Street", "keptUntil": "2027-04-03"},
            ),
        ),
    ),
    Question(
        "price",
        "What does a check-up cost without insurance?",
        "A check-up costs [number:$185.00>$158.00] without insurance. With the tax of [number:8%>6%], you "
        "pay [number:$199.80>$198.90] in total.",
        (
            Call(
                "quote_price",
                {"service": {"code": "CHK"}, "insured": False, "currency": "USD"},
                {"net": 185.0, "taxPercent": 8, "total": 199.8},
            ),
        ),
    ),
    Question(
        "cancel",
        "Cancel my appointment on March 16.",
        "Done: your appointment on [date:March 16>March 26] with [name:Nurse Delgado>Nurse Medina] is "
        "cancelled. The confirmation code is [name:KX4-9021>KX4-9012]. There is no fee, because it is more "
        "than [number:48>24] hours away.",
        (
            Call("find_appointments", {"date": "2027-03-16", "patient": {"id": "P-3307"}}, [{"id": 5512}]),
            Call(
                "cancel_appointment",
                {"appointment": {"id": 5512}, "notify": True},
                {"code": "KX4-9021", "fee": 0, "nurse": "Delgado", "freeUntilHours": 48},
            ),
        ),
    ),
    Question(
        "children",
        "Do you treat children?",
        "Yes, we treat children of every age. Our children's ward is on the [number:second>third] floor, and "
        "parents can stay overnight for free. For a first visit, bring the vaccination card and a list of "
        "all medicines.",
    ),
    Question(
        "emergency",
        "I have chest pain. What should I do?",
        "Call [number:112>116] immediately, and do not drive yourself. Sit down, stay calm, and do not eat "
        "or drink. Tell somebody near you, and unlock the door for the ambulance.",
    ),
    Question(
        "blood-pressure",
        "Show my last three blood pressure readings.",
        "Here are your last three readings:\n\n1. [number:128/82>128/92] on [date:2 February>3 February]\n2. "
        "[number:131/85>113/85] on [date:19 January>18 January]\n3. [number:126/80>162/80] on [date:5 "
        "January>15 January]\n\nYour average is [number:128/82>138/82], which is slightly above normal.",
        (
            Call(
                "get_readings",
                {"patient": {"id": "P-3307"}, "kind": "blood-pressure", "limit": 3},
                [
                    {"on": "2027-02-02", "systolic": 128, "diastolic": 82},
                    {"on": "2027-01-19", "systolic": 131, "diastolic": 85},
                    {"on": "2027-01-05", "systolic": 126, "diastolic": 80},
                ],
            ),
        ),
    ),
    Question(
        "head",
        "Who is the head of cardiology?",
        "[name:Prof. Ingrid Lindqvist>Prof. Astrid Lindgren] has been the head of cardiology since "
        "[number:2019>2016]. Her team has [number:fourteen>eleven] doctors, and you reach them at "
        "[number:555-0142>555-0124].",
        (
            Call(
                "find_staff",
                {"department": {"name": "cardiology"}, "role": "head"},
                {"name": "Prof. Ingrid Lindqvist", "since": 2019, "doctors": 14, "phone": "555-0142"},
            ),
        ),
    ),
)
