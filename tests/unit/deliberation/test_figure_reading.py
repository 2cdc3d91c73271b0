"""Figures in any spelling: what is spelled anew is found, and what is another figure is not."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.citations import NOT_IN_CITED_LINES
from council.deliberation.decision import look_up
from council.deliberation.quotations.figure_reading import figures, readings
from council.deliberation.quotations.lookup import Quotations
from council.deliberation.quotations.passages import Passage
from council.deliberation.transcript import Transcript
from council.turns.evidence import Evidence

AMOUNTS = (
    ""
    "{0:,} EUR", "EUR {0:,}", "€{0:,}", "{0} euros", "{1} €", "{1} Euro", "{2} EUR", "{2} euro", "EUR {3}", "{0:,}.00 EUR",
    "{1},00 €",
)  # fmt: skip
DATES = ("%-d %B %Y", "%B %-d, %Y", "%d.%m.%Y", "%-d.%-m.%Y", "%Y-%m-%d", "%-d %b %Y", "%b %-d, %Y", "%-d. %B %Y")


def amount(style: str, value: int) -> str:
    grouped = f"{value:,}"
    return style.format(value, grouped.replace(",", "."), grouped.replace(",", " "), grouped.replace(",", "'"))


def is_marked(said: str, source: str) -> bool:
    look = Quotations([Passage("E1", "a.md", 1, f"{source}\n")], ["E1"])
    return NOT_IN_CITED_LINES in look.check(f"It says {said} [E1: a.md:1].").text


@given(value=st.integers(13, 99_999_999), said=st.sampled_from(AMOUNTS), source=st.sampled_from(AMOUNTS))
def test_an_amount_is_found_in_every_spelling(value: int, said: str, source: str) -> None:
    assert not is_marked(amount(said, value), f"The price is {amount(source, value)}.")


@given(
    value=st.integers(13, 99_999_999),
    other=st.integers(13, 99_999_999),
    said=st.sampled_from(AMOUNTS),
    source=st.sampled_from(AMOUNTS),
)
def test_another_amount_is_marked_in_every_spelling(value: int, other: int, said: str, source: str) -> None:
    assert is_marked(amount(said, other), f"The price is {amount(source, value)}.") == (value != other)


@given(day=st.dates(date(1990, 1, 1), date(2099, 12, 31)), said=st.sampled_from(DATES), source=st.sampled_from(DATES))
def test_a_date_is_found_in_every_spelling(day: date, said: str, source: str) -> None:
    assert not is_marked(day.strftime(said), f"It ends on {day.strftime(source)}.")


@pytest.mark.parametrize(
    ("source", "marked"),
    [
        ("| Result | (1,200) |", True), ("| Result | (€1,200) | 4 |", True), ("Result\t(1,200)", True),
        ("Result;(1,200);4", True), ("| Result | 1,200 |", False), ("| Result | 5 (1,200) |", False),
        ("The result (1,200) is new.", False),
    ],
)  # fmt: skip
def test_brackets_around_all_of_a_cell_are_a_minus(source: str, marked: bool) -> None:
    assert is_marked("+1,200", source) is marked
    assert not is_marked("-1,200", source)
    assert not is_marked("1,200", source)


@pytest.mark.parametrize(("day", "is_marked"), [("2026-11-22", False), ("2026-11-21", True), ("", True)])
def test_the_day_of_the_task_needs_no_line_that_says_it(day: str, is_marked: bool) -> None:
    read = Evidence("A_ROLE", 0, "", id="E1", title="a.md", path="a.md", text="The offer is valid until 15 December.\n")
    look = look_up(Transcript("Is the offer still valid?", [read], day=day))
    said = look.check("As of 22 November 2026 the offer is valid [E1: a.md:1].").text
    assert (NOT_IN_CITED_LINES in said) == is_marked


@given(
    day=st.dates(date(1990, 1, 1), date(2099, 12, 31)),
    days=st.integers(1, 400),
    said=st.sampled_from(DATES),
    source=st.sampled_from(DATES),
)
def test_another_date_is_marked_in_every_spelling(day: date, days: int, said: str, source: str) -> None:
    assert is_marked((day + timedelta(days)).strftime(said), f"It ends on {day.strftime(source)}.")


@pytest.mark.parametrize(
    "behind", ["incl. VAT", "(exkl. MwSt.)", "lt. Angebot", ", vgl. Anlage", "für Whg. A", "selon M. Durand"]
)
def test_a_figure_before_an_abbreviation_belongs_to_the_citation_behind_it(behind: str) -> None:
    source = "The price is 28,676 EUR."
    assert is_marked(f"99,999 EUR {behind}", source)
    assert not is_marked(f"28,676 EUR {behind}", source)


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        (
            "Sitzung von 9 bis 17 Uhr, Pause 12 bis 13 Uhr.",
            "9 Uhr; 9:00 Uhr; 8 Stunden; 9 bis 17 Uhr",
            "um 10 Uhr; 7 Stunden",
        ),
        ("Unterricht von 8 bis 21 Uhr, samstags bis 18 Uhr.", "ab 8 Uhr; bis 21 Uhr", "bis 20 Uhr; bis 19 Uhr"),
        (
            "Begin at quarter past seven, end at half past eight.",
            "at 7:15 pm; 19:15; 20:30; quarter past seven",
            "19:45; 20:15; half past nine",
        ),
        (
            "Beginn um halb neun, Schluss um Viertel vor elf.",
            "um 20.30 Uhr; 10:45 pm; halb neun",
            "halb zehn; 22.15 Uhr",
        ),
        ("The last train leaves at 22.58, on Saturdays 0.41.", "at 22:58; 00:41; 22.58", "at 22:85; 22:59; 0:14"),
        ("It costs 22.58.", "It costs 22.58", "at 22:58"),
        (
            "Kinotec 4 weeks, Brightwall 6 weeks.",
            "four to six weeks; 4 to 6 weeks; vier bis sechs Wochen",
            "five to six weeks; vier bis sieben Wochen",
        ),
        (
            "Arbeitszeit 5,5 h.",
            "five and a half hours; fünfeinhalb Stunden",
            "six and a half hours; sechseinhalb Stunden",
        ),
        (
            "It lends the money for five years.",
            "a cinco años; per cinque anni",
            "a siete años; per sette anni",
        ),
        ("Mo–Fr 8–12 und 13–17.30 Uhr", "ab 8 Uhr; 13:00 Uhr; 8–12 und 13–17.30 Uhr; 17:30", "ab 9 Uhr"),
        ("Open 9am-5pm, on Sundays 10-4pm", "17:00; 10 am; 9 am; 16:00; from 9 to 5 pm", "18:00; 10 pm"),
        ("Room 5 from 3 to 4 pm", "Room 5; 15:00; 3 pm; 3 members", "3 am"),
        (
            "Costs: kEUR 120; TEUR 45; 3 T€; 7 TEUR; 2 MEUR.",
            "120,000 EUR; 7,000 EUR; 45 thousand EUR; 3 T€; TEUR 45; 2 million EUR",
            "120 EUR; 45 EUR; 3 EUR; 7 EUR; 2 EUR",
        ),
        ("Revenue 2024: kEUR 450. The firm has 30 staff.", "450,000 EUR", "30,000 EUR; 2,024,000 EUR"),
        ("Umsatz (T€): 1.250 | 1.480", "1.480.000 €; 1.250 T€", "1.480.000 $; 1.490.000 €"),
        ("Paid: 1.250, 7 and 45.", "1.250 TEUR; 7 T€; TEUR 45", "8 T€; 7 million EUR"),
        ("Der Satz ist 5 ‰.", "5 ‰; 0,5 %; 5 Promille", "5 %"),
        (
            "Result 2025: +620 EUR. Result 2026: -1,450 EUR.",
            "-1,450 EUR; a loss of 1,450 EUR; 1,450 EUR; the loss was 1,450 EUR; +620 EUR"
            "; the profit of 2025 was 620 EUR",
            "+1,450 EUR; -620 EUR",
        ),
        (
            "Difference to plan: -1,450 EUR; savings and credit: -200 EUR",
            "the profit is 1,450 EUR lower than planned; der Gewinn ist 1.450 EUR niedriger als geplant"
            "; the gain is 200 EUR",
            "+1,450 EUR; +200 EUR",
        ),
        (
            "-10 °C bis +60 °C",
            "-10 °C; −10 °C; 10 °C below zero; minus 10 °C; 60 °C; +60 °C",
            "from +10 °C; 10 °C; -60 °C",
        ),
        (
            "It was −5 °C in January and 31 °C in July.",
            "36 degrees of difference; from -5 to 31 °C; 5 degrees of frost; 5 °C lower; 5 °C tiefer; 31 degrees",
            "5 °C; -31 °C",
        ),
        (
            "Store at 2-8 °C, or 3 °C –17 °C, Art.-Nr. -3, on 8 -12 pallets",
            "2 to 8 °C; 2–8 °C; 3 °C; 12 pallets",
            "21 °C",
        ),
        (
            "It was −5 °C in January. The freezer had -18 °C; the door 4 °C.",
            "5 °C of frost; It was wet. It was 5 °C below zero; 4 °C at the door",
            "Costs fell. It was 5 °C; -4 °C at the door",
        ),
        (
            "| Konto | -1.450,00 EUR |",
            "1.450 EUR; die Miete von 1.450 EUR; ein Minus von 1.450 EUR",
            "+1.450 EUR",
        ),
        ("Elf von zwölf Stimmen", "11 of 12; 11 von 12; elf von zwölf", "10 of 12"),
        ("- 5 EUR", "5 EUR; +5 EUR; -5 EUR", "6 EUR"),
        ("-6 EUR", "6 EUR; -6 EUR", "+6 EUR"),
        (
            "Minutes, 12 January 2027. Next meeting: 9 February.",
            "9 February; 9 February 2027; 9.2.2028",
            "10 February 2027",
        ),
        ("The next meeting is on 9 February.", "9 February 2031", "8 February 2031"),
        ("Abfahrt 8:05, Ankunft 17:50", "9 hours and 45 minutes; 585 minutes; 9.75 hours", "9 hours and 50 minutes"),
        ("La formation dure 2 ans et 6 mois.", "2 years and 6 months; 30 months", "2 years and 7 months"),
        ("À 20 h 30 devra finir le bal.", "à 20h30 devant la gare", "à 15h30 devant la gare"),
        ("Réunion à 19h30, fin à 21 h 15.", "19:30; 7.30 pm; à 19h30; 19 h 30; à 21h15", "18h30; à 9h15; 18 h 30"),
        (
            "Beginn: 19:30 Uhr",
            "um 19.30h; 19.30 h; 19:30 h; at 19.30h; 7.30 pm",
            "um 18.30h; 18.30 h; at 7.30 h; 19.5 h",
        ),
        (
            "Beginn 19.30 h, Do 14-18h",
            "19:30; 7.30 pm; 14:00; from 2 pm to 6 pm; 19.3 hours",
            "18:30; 15:00; 20.3 hours",
        ),
        ("Fahrt 7.50 h, Fest ab 18 h", "7.5 hours; à 18 h; 18:00; 7.50 h; 18 hours", "8 hours; at 17 h; 17:00"),
        (
            "Call 555-0172, order 2026-0417, ISBN 978-3-16-148410-0, or +49-30-901820; 10-14 days, 2026-08.",
            "555-0172; 2026-0417; 978-3-16-148410-0; 49-30-901820; 10 days; 14 days; August 2026; in 2026",
            "555-0173; 556-0172; 2026-0418; 978-3-16-148410-1; 979-3-16-148410-0; 49-30-901821; 172 days; 417 EUR",
        ),
        ("Le trajet dure 2h30.", "2 hours and 30 minutes; 150 minutes; 2h30", "140 minutes"),
        (
            "2026-12;gas;1.688,90",
            "December 2026; 12/2026; 2026-12; 12; Dezember 2026",
            "11/2026; December 2027; 2025-12",
        ),
        ("From December 2026 on", "12/2026; 2026-12", "12/2027; 2026-11"),
        (
            "Payable on 1 March, 1 June and 1 September 2027.",
            "1 March 2027; 1 June 2027; 1 September 2027; the 1 March and 1 June 2027; 1 March",
            "1 March 2026; 1 June 2028; 1 March and 1 June 2026",
        ),
        ("A dozen folders are missing.", "12 folders; twelve folders; a dozen folders", "13 folders; 24 folders"),
        ("Two dozen folders, half a million EUR.", "24 folders; 500,000 EUR", "2 EUR; 12 EUR; a million EUR"),
        ("Ein Dutzend Mappen, eine halbe Million Euro.", "12 Mappen; 500.000 €", "14 Mappen; 50.000 €; 1.000.000 €"),
        ("Es dauert anderthalb Stunden.", "90 Minuten; 1,5 Stunden", "60 Minuten; 150 Minuten"),
        ("Es dauert zweieinhalb Jahre.", "30 Monate; 2,5 Jahre", "24 Monate; 36 Monate"),
        (
            "It takes half an hour, or one and a half hours.",
            "30 minutes; 90 minutes",
            "40 minutes; 80 minutes; 3 hours",
        ),
        (
            "The deadline is end of March 2027.",
            "31 March 2027; end of March 2027; 31.3.2027",
            "30 March 2027; 31 March 2028",
        ),
        ("Frist ist Ende Februar 2028.", "29.2.2028; Ende Februar", "28.2.2028"),
        (
            "We meet on Monday 7 December.",
            "Monday, 7 December; Montag, den 7. Dezember; 7 December; lundi 7 décembre",
            "Tuesday 7 December; Dienstag, 7.12.; Sunday, 7 December",
        ),
        ("We meet on 7 December 2026.", "Monday, 7 December; 7.12.2026", "Tuesday 7 December; Sonntag, den 7.12.2026"),
        (
            "Mo., 07.12.2026",
            "Mon, 7 Dec; we think so. 7 December; Monday, 7 December 2026; Mo., 7.12.",
            "Tue 7 Dec; Di., den 7.12.2026; Sun. 7 Dec 2026",
        ),
        ("We meet on 7 December.", "Monday, 7 December; Tuesday, 7 December", "Monday, 8 December"),
        (
            "Strom 0,32 €/kWh für 3,5 kW, 0,8 ha, 1.500 l",
            "32 ct; 32 cents; 3,500 W; 8,000 m²; 1.5 m³",
            "23 ct; 350 W; 8 m²",
        ),
        (
            "Donations of €1.2 million.",
            "1.2 m EUR; 1,200 k EUR; €1.2m; EUR 1.2 mn; 1,2 Mio. €",
            "1.3 m EUR; 12 m EUR; 1.2 k EUR",
        ),
        ("Pos. 07, KW 07/2027, Los 03 für 25 EUR", "week 7; lot 3; lot 03", "week 9; lot 04; 75 EUR"),
        ("12. Januar 2027: Sitzung; 1.18 s", "12 January 2027; 12.01.27", "13 January 2027; 00.01.27; 1.28 s; 1.2 s"),
        ("3 of 4: IBAN DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 01"),
        ("Release v2.14.0; p95 180 ms; 1.8M/day", "v2.14.0; 2.14.0; 0.18 s; 1.8 million; 01ab", "v2.15.0; 1.8 s; 1.9M"),
        ("Fünf Jahre Garantie, notice of two months", "a five-year warranty; two-month notice", "a four-year warranty"),
        (
            "The offer ends on the third day after it is sent.",
            "on the third day; on the 3rd day; am dritten Tag; am 3. Tag; le troisième jour; in the first week; the second offer",
            "on the fourth day; on the 4th day; am vierten Tag; am ersten Tag; am 4. Tag; le quatrième jour; 3 halls",
        ),
        (
            "Die Frist endet am 3. Werktag; ab dem zweiten Jahr sind es zehn.",
            "am dritten Werktag; on the third working day; from the 2nd year on; im 2. Jahr; the third quarter; three",
            "am vierten Werktag; am 2. Werktag; 0th day; from the third year on; im 3. Jahr; from the first year on",
        ),
        (
            "Die Frist ist innerhalb eines Monats.",
            "ein Monat; innerhalb eines Monats; in einem Monat; einen Monat; one month; within a month; 1 Monat; eines Tages; "
            "an einem Tag",
            "eine Woche; innerhalb einer Woche; one week; within a week; ein Jahr; zwei Monate; it takes a year",
        ),
        (
            "Notice: one week.",
            "eine Woche; in einer Woche; 7 days; it takes a week",
            "einen Monat; within a day; in einem Jahr",
        ),
        (
            "The monthly rent is 900 EUR, for 3 years.",
            "einen Monat; one month of rent",
            "eine Woche; one week; ein Jahr",
        ),
        ("The rent is 900 EUR.", "900 EUR für einen Monat; within a week", "one month of rent; two months; 7 days"),
        (
            "It takes 1½ hours, ¾ of them at night.",
            "1.5 hours; 1½ Stunden; 1 ½ hours; 90 minutes; anderthalb Stunden; 75 %; ¾ of them; three quarters of them",
            "2½ hours; 1¼ hours; ½ hour; 1 hour; ½ of it; ¼ of it; 50 %",
        ),
        ("One and a half hours; a third of it.", "1½ hours; ⅓ of it", "½ hour; ⅔ of it; 3½ hours"),
        ("It is 5 ft high, 7 miles away.", "5 feet; 5 ft; 1.524 m; 7 miles", "5 m; 7 km; 5 cm"),
        ("Four cats came on 20 December.", "the 20th; the 20; 20 December", "20 cats; 20 EUR"),
        ("Vom 20. Dezember bis 10. Januar 2027.", "20 December 2026; 10.1.2027", "20 December 2027; 10.1.2026"),
        (
            "on 12 March 2027 or on 3 March 2027, and on 5 December 2026",
            "12 March or 3 March 2027; 12 March 2027; 5 December and 3 March 2027",
            "13 March or 3 March 2027; 12 March to 3 March 2027",
        ),
        (
            "am 5. Mai, am 12. März und am 3. März 2027",
            "12 March 2027; 5 May 2027; 5 May 2026",
            "5 May 2028; 5 May 2025",
        ),
        (
            "The offer ends on 30.9.2026. Die Märzsitzung war im Mai. Paid: 2026-11; Okt. 25",
            "in September; im September; en septembre; in settembre; by Sept.; Anfang März; en mars; in October"
            " and November; until November; the May meeting; we may march on; April Jones; by June Miller"
            "; in April Jones's"
            " view; life on Mars; en sept jours; august company; in September 2026",
            "in August; im August; d'août; from mid-June on; en agosto; by Aug.; Ende Juni; en juin; the June meeting"
            "; in December; between November and January; in September 2027; in July",
        ),
        (
            "The lease runs from 1 August 2026 to 30 June 2028.",
            "in March; in December 2027; from August to June",
            "in July 2028; in May 2026; 15 September 2026",
        ),
        (
            "Notice: three months before 30 September 2026.",
            "with three months of notice, it is due in June; three months before the end, on 30 June 2026",
            "with three months of notice, it is due in July; due in June; 900,000,000,000 days later, in June",
        ),
        (
            "Open Mo–Fr 8–12, Saturday 9–12. Do not knock.",
            "on Wednesday; every Monday; bis Freitag; on Saturdays; on Black Sunday",
            "on Sunday; am Sonntag; le dimanche; every Sunday",
        ),
        (
            "We met on Tuesday, and again on 9 December 2026.",
            "on Tuesday; on Wednesday; next Tuesday; the Sunday Times",
            "on Monday; am Montag",
        ),
        ("We met on 9 December, a Tuesday in one year.", "on Monday", "on Monday, 8 December"),
        (
            "The fee is 12,000 EUR for 45 seats.",
            "_12,000_ EUR; **12,000** EUR; __12,000 EUR__; `12,000` EUR; `12.000 EUR`; １２，０００ EUR; €１２．０００"
            "; `kangoo_99`; `v99`; ４５ seats; 45人; 料金は12,000",
            "_13,000_ EUR; **13,000** EUR; __13,000 EUR__; `13,000` EUR; `13.000 EUR`; １３，０００ EUR; €１３．０００"
            "; `13000`; 46人; 料金は13,000",
        ),
        (
            "料金は12000円です。会員は４５人。期限は2026年9月30日、または3月。割引は3割、12万円。",
            "12,000円; １２，０００円; 12,000 yen; 45 members; 30 September 2026; 2026年9月30日; 9月; in March; 4割"
            "; 13万5000円; 14時30分",
            "13,000円; １３，０００円; 12,000 EUR; 46人; 29 September 2026; 2026年9月29日; 8月; in April",
        ),
        (
            "Der Bus hat sieben Plätze.",
            "seven seats; 7 seats; sept places; siete plazas; sette posti",
            "8 seats; neun Plätze; 9",
        ),
        (
            "Der Bus hat 17 Plätze.",
            "seventeen seats; dix-sept places; diciassette posti",
            "seventy seats; sixteen seats",
        ),
        (
            "The bus has twelve seats.",
            "douze places; zwölf Plätze; doce plazas; dodici; 12",
            "treize places; vierzig Plätze; 13",
        ),
        ("Do not knock, daily.", "on Monday; on Sunday", "on 1 May"),
        ("Der Beschluss 01/2027 gilt.", "01/2027; January 2027", "02/2027"),
        (
            "Kündigungsfrist: drei Monate, Miete: 1.250 EUR",
            "3 Monate; three months; drei Monate; 1,250 EUR",
            "4 Monate; vier Monate; quatre mois; 5,000 EUR",
        ),
        ("Durée: quatre-vingt-six jours, dont trois samedis", "86 days; 3 samedis; trois", "6 days; 80 days; 4 days"),
        ("Payment due: 450 EUR, once, by Otto, second hand", "450 EUR", "900 EUR; 11 years; 4,950 EUR"),
        *(
            (
                source,
                "ab dem 6. April; from 6 to 17 April; April 6 to 17; April 6–17; until 17 April"
                "; du 6 au 17 avril; before April 17, 2026"
                "; del 6 al 17 de abril; dal 6 al 17 aprile; van 6 tot 17 april; vom 6. bis 17. April"
                "; from April 6 through 17, 2026",
                "ab dem 7. April; until 18 April; April 6 to 18; April 7-17; dal 6 al 18 aprile; vom 7. bis 17. April",
            )
            for source in (
                "Ferien vom 6. bis 17. April 2026",
                "6. bis 17. April 2026: Ferien",
                "Vacances du 6 au 17 avril 2026",
                "Vacaciones del 6 al 17 de abril de 2026",
                "Vacanze dal 6 al 17 aprile 2026",
                "Vakantie van 6 tot 17 april 2026",
                "Holidays are April 6 to 17, 2026.",
                "Holidays: April 6-17",
                "Holidays: April 6th through 17th, 2026",
            )
        ),
        ("April 6 – 5 pm, 3 halls", "6 April; 5 pm; 3 halls", "5 April"),
        *(
            (source, right, wrong)
            for sources, right, wrong in (
                (
                    "The fee is 3 %.;Un 3 por ciento;Es un tres por ciento;Al 3 per cento"
                    ";Il tre per cento;Het is 3 procent;Drie procent"
                    ";Trois pour cent",
                    "3 %; un 3 por ciento; un tres por ciento; al 3 per cento; il tre per cento"
                    "; 3 procent; drie procent; trois pour cent",
                    "8 %; un ocho por ciento; che della quota l'otto per cento; 8 procent; acht procent"
                    "; al 22 per cento",
                ),
                (
                    "A third of the members;ein Drittel der Mitglieder;un tiers des membres"
                    ";le tiers des membres;un tercio de los socios"
                    ";un terzo dei soci;la tercera parte de los socios;een derde van de leden",
                    "about a third of it; ein Drittel; un tiers des membres; le tiers du total"
                    "; un tercio del total; un terzo dei soci"
                    "; 33 %; la tercera parte de los socios; een derde van de leden; près d'un tiers des membres",
                    "a quarter of it; ein Viertel; près d'un quart des membres; un cuarto del total; un quarto dei soci"
                    "; la mitad; la metà; la moitié; deux tiers; due terzi; los dos tercios"
                    "; la cuarta parte de los socios; 50 %",
                ),
                (
                    "three quarters of them;drei Viertel der Mitglieder;trois quarts des membres"
                    ";tres cuartos de los socios;tre quarti"
                    ";las tres cuartas partes;driekwart van de leden",
                    "75 %; three quarters of it; drei Viertel; les trois quarts"
                    "; tres cuartos de los socios; i tre quarti; driekwart",
                    "a quarter of it; 70 %; deux tiers; due terzi; un cuarto de los socios"
                    "; un quarto della quota; la mitad",
                ),
                (
                    "Half of them;More than half.;One half is paid;die Hälfte;la moitié des membres"
                    ";la mitad;la metà dei soci;de helft",
                    "50 %; half of them; la moitié; la mitad; la metà; de helft; about half of it",
                    "40 %; a third of it; un tiers des membres; deux tiers; due terzi; un quarto dei soci; 25 %",
                ),
            )
            for source in sources.split(";")
        ),
        (
            "The shop is open.",
            "un quart d'heure; un cuarto de baño; tres cuartos y un garaje; el tercer proveedor"
            "; un tiers de confiance; il terzo fornitore"
            "; alle tre e tre quarti; tre quarti d'ora; tres cuartos de hora; the second half."
            "; the first half is paid; half open",
            "un quart des membres; un cuarto de los socios; due terzi; less than half; the share is half",
        ),
        *(
            (
                source,
                "Wednesday, 15 July; mercredi 15 juillet; el miércoles 15 de julio; mercoledì 15 luglio; woensdag 15 juli",
                "Thursday, 15 July; jeudi 15 juillet; el jueves 15 de julio; giovedì 15 luglio; donderdag 15 juli",
            )
            for source in ("El miércoles, 15 de julio", "Mercoledì 15 luglio", "Woensdag 15 juli", "Wednesday 15 July")
        ),
        *(
            (
                source,
                "on a Wednesday; on Wednesdays; only Wednesday; nur mittwochs; los miércoles; il mercoledì; op woensdag",
                "on a Thursday; on Mondays; by a Friday; nur donnerstags; montags; los lunes; il lunedì; la domenica; op zondag",
            )
            for source in (
                "A market, on Wednesdays",
                "Markt: mittwochs",
                "Abre los miércoles.",
                "Apre il mercoledì.",
                "Elke woensdag",
            )
        ),
        *(
            (
                source,
                "on Tuesdays; on a Thursday; nur dienstags; los martes; il giovedì; op donderdag",
                "5 % on Tuesdays",
            )
            for source in (
                "Open daily, on Monday until 8 pm.",
                "Montags bis freitags",
                "De lunes a viernes",
                "Dal lunedì al venerdì",
                "Open between Monday and Friday",
                "Entre lunes y viernes",
                "Tra il lunedì e il venerdì",
                "Van maandag tot vrijdag",
                "Closed on Mondays",
                "Tutti i giorni, il lunedì fino alle 20",
                "Todos los días, también el lunes",
                "On Monday or 14 May",
            )
        ),
        *(
            (
                source,
                "by the end of March 2026; between January and March; on 31 March 2026; bis Ende März; in February",
                "by the end of April 2026; between February and May; on 30 March 2026; in March 2027",
            )
            for source in (
                "The first quarter of 2026",
                "Im ersten Quartal 2026",
                "Due in Q1 2026",
                "2026-Q1",
                "Im 1. Quartal 2026",
                "Au premier trimestre 2026",
                "En el primer trimestre de 2026",
                "Nel primo trimestre del 2026",
            )
        ),
        (
            "Due in the third quarter",
            "by the end of September; in July; on 30 September 2026",
            "by the end of June; in October",
        ),
        ("The share is 50 %.", "half of it; the share is half", "a third of it"),
        (
            "52 % of them",
            "más de la mitad; più della metà; plus de la moitié; more than half",
            "menos de la mitad; meno della metà",
        ),
        ("Beginn 22:30 Uhr.", "10:30 pm; 22:30; 22.30 Uhr", "10:30 am; 10.30 Uhr"),
        ("Beginn 10:30 Uhr.", "10:30 am; 10:30; um 10.30 Uhr; 10.30 Uhr; 10:30 a.m.", "10:30 pm; 22:30; 22.30 Uhr"),
        ("It starts at 10:30 pm.", "10:30 pm; 22:30; 22:30 Uhr; 10:30", "10:30 Uhr; 10:30 am; um 10.30 Uhr"),
        ("Schluss 8 Uhr.", "8 am; 8:00; um 8 Uhr", "8 pm; 20:00; um 20 Uhr"),
        ("Beginn um 8 Uhr abends.", "um 20 Uhr; 8 pm", "9 pm"),
        (
            "The fee is 500 SEK.",
            "500 SEK; 500 kr; SEK 500; 500 kronor; 500",
            "500 NOK; 500 DKK; DKK 500; 500 EUR; NOK 500",
        ),
        ("The fee is 500 NOK.", "500 NOK; 500 kr; kr 500; 500 kroner", "500 SEK; 500 DKK; SEK 500; 600 kr"),
        ("The fee is 500 kr.", "500 kr; 500 SEK; 500 NOK; 500 DKK; DKK 500", "600 kr; 600 DKK; 500 EUR"),
        ("A: 500 DKK. B: 250 DKK.", "750 DKK; 750 kr", "750 SEK; 800 DKK"),
        (
            "The field has 12 acres, 40 gallons, 68 °F, 55 mph, 6 feet 2 inches, 7 miles.",
            "12 acres; 40 gallons; 68 °F; 55 mph; 7 miles; 6 feet 2 inches; 6 ft 2 in; 68 degrees Fahrenheit"
            "; 55 miles per hour",
            "14 acres; 44 gallons; 86 °F; 50 mph; 9 miles; 6 feet 4 inches; 12 hectares; 40 litres; 68 °C"
            "; 55 km; 7 km; 12 EUR; 7 gallons",
        ),
        ("Limit 80 km/h, 3 knots.", "80 km/h; 80 kph", "90 km/h; 80 mph; 80 km"),
        (
            "It weighs 12 lb and 5 oz, 3 yards long.",
            "12 lb; 12 pounds; 5 ounces; 3 yards; 5 oz",
            "13 lb; 12 kg; 6 oz; 4 yards; 3 metres",
        ),
        ("It holds 5 litres on 2 m².", "5 litres; 2 m²", "5 gallons; 2 acres; 5 °F; 5 mph"),
        (
            "It takes 2½ hours.",
            "2 1/2 hours; 2.5 hours; 2½ hours; 2,5 Stunden",
            "3 1/2 hours; 2 1/4 hours; 2 3/4 hours; 12 hours",
        ),
        (
            "It takes 2 1/2 hours.",
            "2 1/2 hours; 2.5 hours; 2½ hours; two and a half hours; 150 minutes",
            "3½ hours; 1/2 hour; 2 hours; 21 hours; 2.2 hours",
        ),
        ("We need 1 3/4 cups.", "1.75 cups; 1¾ cups; 1 3/4 cups", "1.5 cups; 1¼ cups; 3/4 of it"),
        (
            "Pi is 3.141592653589793.",
            "3.141592653589793; 3,141592653589793; about 3.14",
            "3.141592653589794; 3.141592653589",
        ),
        ("The rate is 0.123456789012.", "0.123456789012; 0,123456789012", "0.123456789013"),
        (
            "Die Wohnung ist im dritten Obergeschoss.",
            "3. Obergeschoss; im 3. Obergeschoss; on the 3rd floor; the third floor; im dritten Obergeschoss",
            "im 4. Obergeschoss; im vierten Obergeschoss; on the 4th floor; 4 floors",
        ),
        (
            "Der Raum liegt im 3. Obergeschoss.",
            "im dritten Obergeschoss; im 3. Obergeschoss; the third floor; Raum im 3. OG",
            "im vierten Obergeschoss; im 4. Obergeschoss; 3 Räume",
        ),
        (
            "Beim dritten Mal fiel er aus, im 2. OG.",
            "beim 3. Mal; beim dritten Mal; im zweiten OG; im 2. OG",
            "beim 4. Mal; beim vierten Mal; im 5. OG; im vierten OG; 3 Mal",
        ),
        (
            "The office is on the 3rd floor.",
            "third floor; im dritten Stock; 3. Stock; the 3rd floor",
            "second floor; the 2nd floor; im 4. Stock; 3 floors",
        ),
        (
            "Phase 3: der 2. Vorsitzende spricht zuerst, the second half.",
            "the third phase; the 3rd phase; der zweite Vorsitzende; der 2. Vorsitzende",
            "the 4th phase; der vierte Vorsitzende; 2 Vorsitzende",
        ),
        (
            "Market on the second Saturday of the month.",
            "the 2nd Saturday; the second Saturday; am 2. Samstag; am zweiten Samstag",
            "the 3rd Saturday; the third Saturday; am 3. Samstag",
        ),
        (
            "Market on the 2nd Saturday of the month.",
            "the 2nd Saturday; the second Saturday; am zweiten Samstag",
            "the first Saturday; the third Saturday; the 4th Saturday; 2 Saturdays",
        ),
        (
            "Der Antrag muss am vierten Tag da sein.",
            "on the fourth day; on the 4th day; am 4. Tag",
            "four days; 4 days; vier Tage; innerhalb von 4 Tagen; on the fifth day",
        ),
        ("It takes four days.", "four days; 4 days", "on the 4th day; am 4. Tag"),
        (
            "It takes two weeks and 3 months.",
            "two weeks; 3 months; in the first place; a second opinion",
            "in the 2nd week; in the 3rd month; im 3. Monat; after the 2nd week",
        ),
        (
            "Inspected on Sunday, 4 May 2025; opened on 7 December.",
            "4 May 2025, a Sunday; Sunday, 4 May 2025, and Friday, 7 December; 7 December, a Friday; on the 4th",
            "4 May 2025, a Monday; Saturday 4 May 2025; lundi 4 mai 2025"
            "; 4 May 2025, a Thursday, and 7 December; Sunday, 5 May 2025",
        ),
        (
            "Der Vertrag endet am 30.6.2027.",
            "am 30.6.2027 (Mittwoch); am Mittwoch, dem 30.6.2027; Mi., 30.6.2027; on 30 June 2027 (a Wednesday)",
            "am 30.6.2027 (Montag); am Montag, dem 30.6.2027; Mo., 30.6.2027; am 30. Juni 2027, ein Freitag",
        ),
        (
            "The meeting is on 5 May 2025.",
            "5 May 2025, a Monday; am 5. Mai 2025, einem Montag; le 5 mai 2025, un lundi; 5 May 2025 (Monday)",
            "5 May 2025, a Tuesday; am 5. Mai 2025, einem Dienstag; le 5 mai 2025, un dimanche; 5 May 2025 (Tuesday)",
        ),
        (
            "We meet on 7 December, a Monday.",
            "Monday 7 December; 7 December, a Monday; 7. Dezember, ein Montag; 7. Dezember (Montag)",
            "Tuesday 7 December; 7 December, a Tuesday; 7. Dezember, ein Dienstag; 7. Dezember (Dienstag)",
        ),
        ("We meet on 7 December.", "7 December, a Monday; 7 December, a Tuesday", "8 December, a Monday"),
        (
            "Season 2023/24: 38 members, 2024/2025: 41 members.",
            "2023/24; 2023/2024; in 2024/25; 2023–24; in 2023; 41 members in 2024/25; for the year 2024; 2024-25",
            "2022/23; 2025/26; 2022/2023; in 2026; 2025–26; 2023/25",
        ),
        ("From 2023 to 2024 it grew.", "2023; 2024", "2021/22"),
        (
            "Phase 3 begins in May, round 2 follows.",
            "the 3rd phase; the third phase; the 2nd round; the second round",
            "the 4th phase; the 5th round",
        ),
        (
            "The first item is dear. The second item is cheap.",
            "the first item; the second item; the 1st item; item 2; both items",
            "the third item; the 3rd item",
        ),
        (
            "Erster Vorsitzender: Frau Ode. Zweiter Vorsitzender: Herr Kern.",
            "der erste Vorsitzende; der 1. Vorsitzende; der 2. Vorsitzende",
            "der 3. Vorsitzende",
        ),
        ("Paid in 3 instalments.", "3 instalments; three instalments", "the 4th instalment"),
        (
            "Am dritten Freitag im Monat.",
            "am dritten Freitag; am 3. Freitag; the third Friday; the 3rd Friday",
            "am 2. Freitag; am zweiten Freitag; the 2nd Friday",
        ),
        (
            "Le troisième étage est libre.",
            "le 3e étage; au troisième étage; the 3rd floor",
            "le 4e étage; au quatrième étage; the 4th floor",
        ),
        (
            "This is the 25th anniversary.",
            "the 25th anniversary; das 25. Jubiläum",
            "the 24th anniversary; 25 anniversaries; the 26th anniversary",
        ),
        ("A 2nd-hand van, 20er Gruppe, in the 1990s.", "20er Gruppe", "21er Gruppe"),
        (
            "Monday, 5 May 2025: first meeting. Next meeting: 12 May 2025.",
            "12 May 2025 (Monday); Monday 12 May 2025; both on a Monday",
            "Tuesday, 12 May 2025; 5 May 2025, a Wednesday",
        ),
        ("It closes on 1 June.", "Sunday, 1 June; 1 June (a Sunday)", "Sunday, 2 June"),
        (
            "On Wed 3 June and Thu 4 June 2026.",
            "Wednesday 3 June; Thursday 4 June; Wed, 3 June 2026",
            "Friday 3 June; Wednesday 4 June",
        ),
        ("Treffen um 7 Uhr früh, Abendessen um 7 Uhr.", "7 am; 7 pm; 19:00", "8 pm"),
        ("Von 8 bis 10 Uhr.", "8 am; 10 am; from 8 to 10 am", "8 pm; 22:00"),
        ("Kurs: Mi 18–20 Uhr", "6 pm; 20:00; 18 Uhr", "6 am; 8 am"),
        ("Tür auf ab 7.30 Uhr.", "7:30 am; 7.30 Uhr; 07:30", "19:30; 7:30 pm"),
        ("The train leaves at 7:30.", "7.30 Uhr; 7:30 am; 19.30 Uhr; 7:30 pm", "8.30 Uhr"),
        ("School year 2025/26, budget 2026.", "2025/26; 2025–2026; in 2026; in 2025", "2024/25; 2024–2025"),
        ("§ 12 of 2019/20", "2019/20", "2020/21"),
        (
            "A 5-acre field, a 40-gallon tank, a 3-mile walk, 6-foot fence.",
            "5 acres; 40 gallons; 3 miles; 6 feet; a 40-gallon tank",
            "6 acres; 50 gallons; a 4-mile walk; a 50-gallon tank; 7 feet",
        ),
        ("It costs 50 pounds and weighs 20 pounds.", "20 lb; 50 GBP", "21 lb; 51 GBP; 20 kg; 50 % of it"),
        ("Preis 12 lb.", "12 lbs", "14 lbs"),
        ("32°F at night, 50mph wind, 3ft deep", "32 °F; 50 mph; 3 ft; 3 feet", "33 °F; 60 mph; 4 ft"),
        ("It weighs 1⅛ lb; 4 5/8 inches.", "1⅛ lb; 1 1/8 lb; 1.125 lb; 4.625 inches", "1⅜ lb; 4 3/8 inches"),
        ("Meeting 4 1/2 hours, 5/2026.", "4½ hours; 4.5 hours; May 2026", "4 3/4 hours"),
        ("Items 3 1/4/2026 came.", "1 April 2026", "2 April 2027"),
    ],
)
def test_times_months_and_units_are_found_in_every_spelling(source: str, right: str, wrong: str) -> None:
    assert [said for said in right.split("; ") if is_marked(said, source)] == []
    assert [said for said in wrong.split("; ") if not is_marked(said, source)] == []


@pytest.mark.parametrize(("said", "marked"), [("20 cats", True), ("by the 20th", False), ("in 2026", False)])
def test_the_day_of_a_date_in_the_task_is_no_number_of_things(said: str, marked: bool) -> None:
    look = Quotations([Passage("E1", "a.md", 1, "Four cats.\n")], ["E1"], task="Decide by 20 December 2026.")
    assert (NOT_IN_CITED_LINES in look.check(f"It says {said} [E1].").text) is marked


def test_a_date_at_the_beginning_of_a_line_is_no_item_of_a_list() -> None:
    look = Quotations([Passage("E1", "a.md", 1, "Frist: 13. Januar 2027\n")], ["E1"])
    assert NOT_IN_CITED_LINES not in look.check("- 13. Januar 2027: Frist [E1].").text
    assert NOT_IN_CITED_LINES in look.check("- 14. Januar 2027: Frist [E1].").text
    assert NOT_IN_CITED_LINES not in look.check("14. Die Frist endet am 13. Januar 2027 [E1].").text


def test_number_words_are_read_in_the_language_of_their_line() -> None:
    lines = "The board has met and this is what it said.\nElf von zwölf Stimmen waren für das Angebot.\n"
    look = Quotations(
        [Passage("E1", "a.md", 1, f"{lines}It was for the offer and not for the plan, that is all.\n")], ["E1"]
    )
    assert NOT_IN_CITED_LINES not in look.check("It had 11 of 12 votes [E1: a.md:2].").text
    assert NOT_IN_CITED_LINES in look.check("It had 10 of 12 votes [E1: a.md:2].").text


@pytest.mark.parametrize(
    ("spelled", "values"),
    [
        ("21,900", {21900}),
        ("21.900", {21900, 21.9}),
        ("21 900", {21900}),
        ("21'900", {21900}),
        ("1,234,567.5", {1234567.5}),
        ("1.234.567,5", {1234567.5}),
        ("12,34,567", {1234567}),
        ("0.125", {0.125}),
        ("3,5", {3.5}),
        ("1.2.3", set()),
    ],
)
def test_the_readings_of_a_number(spelled: str, values: set[float]) -> None:
    assert {float(value) for value in readings(spelled)} == values


@pytest.mark.parametrize(
    "text",
    [
        "docs/02-offers.md",
        "Option 2",
        "see line 8",
        "COVID-19",
        "A4 and B12",
        "1. First\n2. Second",
        "## 3. Costs",
        "v1.2.3",
    ],
)
def test_parts_of_names_and_the_numbers_of_a_list_are_no_figures(text: str) -> None:
    assert [figure.text for figure in figures(text, said=True) if figure.kind != "label"] == []
