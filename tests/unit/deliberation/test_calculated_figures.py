"""Figures that follow from cited ones: what is calculated is found, and what only looks so is marked."""

from __future__ import annotations

import re

import pytest

from council.citations import NOT_IN_CITED_LINES
from council.deliberation.quotations import cited_figures
from council.deliberation.quotations.lookup import Quotations
from council.deliberation.quotations.passages import Passage

_MARKED = re.compile(rf"([\w.,€²%-]+(?: (?:EUR|€|m²))?) {re.escape(NOT_IN_CITED_LINES)}")


def marked(text: str, *sources: str, path: str = "{}.md", task: str = "") -> list[str]:
    passages = [Passage(f"E{n}", path.format("abcd"[n - 1]), 1, f"{source}\n") for n, source in enumerate(sources, 1)]
    return _MARKED.findall(Quotations(passages, [each.id for each in passages], task=task).check(text).text)


def is_marked(said: str, source: str) -> bool:
    look = Quotations([Passage("E1", "a.md", 1, f"{source}\n")], ["E1"])
    return NOT_IN_CITED_LINES in look.check(f"{said} [E1].").text


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("It runs three years from 2026, so until 2029 [E1].", []),
        ("It runs until 2029, for 36 months from 1 May 2026 [E1].", []),
        ("It runs three years from 2026, so until 2030 [E1].", ["2030"]),
        ("It runs three years until 2026, so from 2023 [E1].", ["2023"]),
        ("It runs until 2029 [E1].", ["2029"]),  # the sentence does not say of what it is the end
    ],
)
def test_the_year_in_which_a_term_ends_follows_from_a_sentence_that_names_both(text: str, wrong: list[str]) -> None:
    assert marked(text, "The lease begins on 1 May 2026 and runs for three years, which are 36 months.") == wrong


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("The chairs cost 3,150 EUR [E1].", "We need 35 chairs, for 90 each, prices in EUR."),
        ("The two items cost 1,500 EUR [E1].", "| Item | Cost in EUR |\n|---|---|\n| Rent | 1,200 |\n| Food | 300 |"),
    ],
)
def test_a_number_whose_unit_stands_elsewhere_is_still_an_amount(text: str, source: str) -> None:
    assert marked(text, source) == []


OFFER_A = "# Offer A\n\n| Pos. | What | Price |\n|---|---|---|\n| 1 | Scaffold | 1,500 EUR |"
OFFER_B = OFFER_A.replace("1,500", "1,700").replace("Offer A", "Offer B")


@pytest.mark.parametrize(
    ("text", "sources", "wrong"),
    [
        (
            "For the scaffold, offer A asks 1,700 EUR [E1:5] and offer B 1,500 EUR [E2:5], so take B.",
            (OFFER_A, OFFER_B),
            ["1,700 EUR", "1,500 EUR"],
        ),
        (
            "Offer A asks 1,700 EUR [E1:5] and offer B 1,500 EUR [E2:5], a difference of 200 EUR.",
            (OFFER_A, OFFER_B),
            ["1,700 EUR", "1,500 EUR"],
        ),
        (
            "Offer A asks 1,500 EUR [E1:5] and offer B 1,700 EUR [E2:5], a difference of 200 EUR.",
            (OFFER_A, OFFER_B),
            [],
        ),
        (
            "Offer A asks 1,700 EUR [E1:1] and offer B 1,500 EUR [E2:1].",
            ("Offer A: 1,500 EUR, valid for 1 month.", "Offer B: 1,700 EUR, valid for 12 months. Fee: 0 EUR."),
            ["1,700 EUR", "1,500 EUR"],
        ),
        ("Both cost 190 EUR [E1:1] [E2:1].", ("A costs 190 EUR.", "B costs 190,00 €."), []),
        ("Both cost 190 EUR [E1:1] [E2:1].", ("A costs 190 EUR.", "B costs 219 EUR."), ["190 EUR"]),
        ("Both cost 190 EUR [E1:1] [E2:1].", ("A costs 190 EUR.", "B costs the same."), []),
        ("Both A and B cost 190 EUR [E1:1] [E2:1].", ("A costs 190 EUR.", "B costs 219 EUR."), ["190 EUR"]),
        ("Both A and B cost 190 EUR [E1:1] [E2:1].", ("A costs 190 EUR.", "B costs the same."), []),
        (
            "Both the minutes and the letter mention 190 EUR [E1:1] [E2:1].",
            ("A costs 190 EUR.", "B costs 219 EUR."),
            ["190 EUR"],
        ),
        ("Both bids and the sum of 190 EUR were read [E1:1] [E2:1].", ("A costs 190 EUR.", "B costs 219 EUR."), []),
        ("Both together cost 409 EUR [E1:1] [E2:1].", ("A costs 190 EUR.", "B costs 219 EUR."), []),
        ("Neither exceeds 200 EUR [E1:1] [E2:1].", ("A costs 190 EUR.", "B costs 219 EUR."), ["200 EUR"]),
        ("Neither exceeds 220 EUR [E1:1] [E2:1].", ("A costs 90 EUR.", "B costs 219 EUR."), []),
        (
            "It has both the fee of 190 EUR and the rest [E1:1] [E2:1].",
            ("The fee is 190 EUR.", "The rest: 219 EUR."),
            [],
        ),
        ("A costs 5 [E1:1] and B costs 7 [E2:1].", ("A costs 7.", "B costs 5."), ["5", "7"]),
        ("A costs 7 [E1:1] and B costs 5 [E2:1].", ("A costs 7.", "B costs 5."), []),
        ("A costs 7 and B costs 5 [E1:1] [E2:1].", ("A costs 7.", "B costs 5."), []),
        (
            "Both come to 300 EUR [E1:1] [E2:1], as the total says [E3:1].",
            ("A: 100 EUR", "B: 200 EUR", "Total: 300 EUR"),
            [],
        ),
    ],
)
def test_a_figure_that_stands_at_another_citation_follows_from_nothing_that_only_says_it_again(
    text: str, sources: tuple[str, ...], wrong: list[str]
) -> None:
    assert marked(text, *sources) == wrong


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Each item 250 EUR, delivery 40 EUR.", "One item with delivery costs 290 EUR [E1]."),
        ("A price per lot 450 EUR, fee 30 EUR.", "With the fee it is 480 EUR [E1]."),
        ("Lot 45 m² and lot 30 m².", "Both have 75 m² [E1]."),
        ("Price/Pos. 45 EUR and 70 EUR.", "In all 115 EUR [E1]."),
    ],
)
def test_an_amount_behind_the_word_for_an_item_is_no_number_of_one(source: str, text: str) -> None:
    assert marked(text, source) == []


@pytest.mark.parametrize(
    ("source", "text", "wrong"),
    [
        (
            "The deposit is 450 EUR, the rent 700 EUR.",
            "The deposit is 450 EUR and the rent 900 EUR [E1:1].",
            ["900 EUR"],
        ),
        ("The deposit is 450 EUR, the rent 700 EUR.", "It is 450 EUR; the rent is 1,600 EUR [E1:1].", ["1,600 EUR"]),
        ("The rent is 700 EUR.", "The rent is 700 EUR, the deposit 1,400 EUR [E1:1].", ["1,400 EUR"]),
        ("The rent is 700 EUR.", "Twice the rent of 700 EUR is 1,400 EUR [E1:1].", []),
        ("Die Miete beträgt 700 EUR.", "Das Doppelte von 700 EUR sind 1.600 EUR [E1:1].", ["1.600 EUR"]),
        ("Die Miete beträgt 700 EUR.", "Das Doppelte von 700 EUR sind 1.400 EUR [E1:1].", []),
        ("The rent is 700 EUR.", "The rent is about 690 EUR, the deposit 1,390 EUR [E1:1].", ["1,390 EUR"]),
        ("The rent is 700 EUR.", "The rent is 700 EUR, the deposit 1,400 EUR [E1:1] [E1].", ["1,400 EUR"]),
        ("The house has 70 m².", "The house has 70 m², the garden 140 m² [E1:1].", ["140 m²"]),
        ("It has 12 staff.", "It has 24 staff, not 12 [E1:1].", ["24"]),
        ("Carried by 3 votes to 1.", "The vote was 5:1 [E1:1].", ["5"]),
        ("Carried by 3 votes to 1.", "7 voted for and 3 against [E1:1].", ["7", "3"]),
        ("The motion was lost by 2 votes to 7.", "The motion was carried by 7 votes to 2 [E1:1].", ["7", "2"]),
        ("The motion was lost by 2 votes to 7.", "The motion was carried, 2 to 7 [E1:1].", ["2", "7"]),
        ("Carried by 7 votes to 2.", "The motion was defeated by 7 votes to 2 [E1:1].", ["7", "2"]),
        ("Mit 7 zu 2 Stimmen angenommen.", "Mit 2 zu 7 Stimmen abgelehnt [E1:1].", ["2", "7"]),
        ("Adopté par 7 voix contre 2.", "Rejeté par 7 voix contre 2 [E1:1].", ["7", "2"]),
        ("The vote was 2 to 7.", "Passed 7-2 [E1:1].", ["7", "-2"]),
        ("Passed 7-2.", "The vote was 2 to 7 [E1:1].", ["2", "7"]),
        ("The vote was 7 to 2.", "The vote was 2 to 7 [E1:1].", []),
        ("The vote was 3 to 12 in favour.", "It passed 12 to 3 [E1:1].", []),
        ("A: 20 EUR, 20 pieces.", "A costs 20 EUR, B 40 EUR [E1].", ["40 EUR"]),
        ("| | EUR |\n|---|---|\n| A | 20 |\n| B | 35 |", "A costs 20 EUR, B 35 EUR, both 55 EUR [E1:3-4].", []),
        ("A: 0.50 EUR, B: 0.50 EUR.", "Both cost 1 EUR [E1].", []),
        ("6 Ja, 2 Nein, 1 Enthaltung.", "Six of nine voted for it, 66.7 % [E1].", []),
        ("A costs 450 EUR.\nB costs 450 EUR.", "Both together cost 900 EUR [E1:1-2].", []),
        ("A costs 450 EUR.\nB costs 450 EUR.", "A costs 450 EUR, both together cost 900 EUR [E1].", []),
    ],
)
def test_a_figure_is_not_calculated_with_itself(source: str, text: str, wrong: list[str]) -> None:
    assert marked(text, source) == wrong


def test_a_figure_of_the_task_is_not_added_to_itself() -> None:
    task = "We have 3,000 EUR."
    assert marked("We have 3,000 EUR and need 6,000 EUR [E1].", "It is dear.", task=task) == ["6,000 EUR"]
    assert marked("We have 3,000 EUR and need 500 EUR more [E1].", "It costs 3,500 EUR.", task=task) == []


def test_a_figure_of_a_csv_file_is_not_added_to_itself() -> None:
    source = "item,amount\nfuel,6250\nrent,5900"
    assert marked("Fuel costs 12,500 EUR [E1:2].", source, path="{}.csv") == ["12,500 EUR"]
    assert marked("Fuel and rent cost 12,150 EUR [E1:2-3].", source, path="{}.csv") == []


def test_two_passages_of_one_page_hold_each_of_its_lines_once() -> None:
    page = "Rent 1,100 EUR\nFee 150 EUR\nDeposit 900 EUR\nKey 20 EUR\nKey 20 EUR"
    tail = "\n".join(page.split("\n")[2:])
    assert marked("In all 1,250 EUR [E1] [E2].", page, tail, path="a.pdf") == []
    assert marked("In all 940 EUR [E1] [E2].", page, tail, path="a.pdf") == []
    assert marked("In all 300 EUR [E1] [E2].", page, tail, path="a.pdf") == ["300 EUR"]
    assert marked("In all 1,800 EUR [E1] [E2].", page, tail, path="a.pdf") == ["1,800 EUR"]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Membership grew by five to 43 [E1:1].", ["43"]),
        ("Membership grew by three to 41 [E1:1].", []),
        ("Five fees of 20 EUR are 100 EUR [E1:2].", []),
        ("Five more make 25 EUR [E1:2].", ["Five", "25 EUR"]),
    ],
)
def test_a_count_of_the_writers_own_is_multiplied_and_proves_no_sum(text: str, wrong: list[str]) -> None:
    assert marked(text, "2024/25: 38 members, 2025/26: 41 members.\nThe fee is 20 EUR.") == wrong


PLAN = "\n".join(
    ("| what | 2026 | 2027 |", "|---|---|---|", "| a | 100 € | 110 € |", "| b | 200 € | 190 € |", "| c | 300 € | 330 € |",
     "| d | 400 € | 420 € |")
)  # fmt: skip
BILL = "\n".join(
    ("Pos  Leistung      Menge  Einzelpreis  Gesamt", "1    Gerüst        2      450,00 €     900,00 €",
     "2    Dämmung       12     80,50 €      966,00 €", "3    Abfuhr        -      inkl.        0,00 €",
     "4    Dachpappe     3      99,00 €      297,00 €", "5    Rinne         7      20,00 €      140,00 €")
)  # fmt: skip
STOCK = "item,supplier,qty,unit_price\nbolt,Kern,250,0.12\nplank,Nord,40,18.90\nvarnish,Nord,6,34.50"
EUROS = "| van | price in EUR | range |\n|---|---|---|\n| A | 41,900 | 300 |\n| B | **38,000** | 270 |"
EURO_ROWS = 'item,amount_eur,year\nvans,"48,000",2026\nfuel,6250,2026'
MONTHS = "month,rent,power\n2026-01,700.00,81.10\n2026-02,700.00,79.90\n2026-03,720.00,60.00\n2026-04,720.00,44.00"


@pytest.mark.parametrize(
    ("source", "path", "text", "wrong"),
    [
        (PLAN, "{}.md", "Planned in all: 1.000 € [E1:3-6].", []),
        (PLAN, "{}.md", "Planned in all: 1.050 € [E1:3] [E1:4] [E1:5] [E1:6].", []),
        (PLAN, "{}.md", "Planned in all: 1.050 € [E1].", []),
        (PLAN, "{}.md", "Planned for b, c and d: 940 € [E1:4-6].", []),
        (PLAN, "{}.md", "Planned in all: 1.090 € [E1:3-6].", ["1.090 €"]),
        (PLAN, "{}.md", "Planned in all: 1.000 € [E1:4-6].", ["1.000 €"]),
        (BILL, "{}.txt", "Das Angebot beläuft sich auf 2.303,00 € [E1:2-6].", []),
        (BILL, "{}.txt", "Das Angebot beläuft sich auf 2.330,00 € [E1:2-6].", ["2.330,00 €"]),
        (MONTHS, "{}.csv", "Power costs 265 EUR [E1:2-5].", []),
        (STOCK, "{}.csv", "The bolts cost 30 EUR [E1:2], the planks 756 EUR [E1:3], all of it 993 EUR [E1:2-4].", []),
        (STOCK, "{}.csv", "40 planks at 18.90 each and 6 tins at 34.50 make 963 [E1:3-4].", []),
        (STOCK, "{}.csv", "The bolts cost 35 EUR [E1:2], all of it 399 EUR [E1:2-4].", ["35 EUR", "399 EUR"]),
        (MONTHS, "{}.csv", "The rent comes to 2,840 EUR [E1].", []),
        (MONTHS, "{}.csv", "The rent comes to 2,480 EUR [E1].", ["2,480 EUR"]),
        (MONTHS.replace(".", "~").replace(",", ";").replace("~", ","), "{}.csv", "Power costs 265 EUR [E1:2-5].", []),
        (EUROS, "{}.md", "It is 41,900 EUR, or 41,900, with a range of 300 km; both are €79,900 [E1:3-4].", []),
        (EUROS, "{}.md", "It is 41,900 USD [E1:3].", ["USD"]),
        (EUROS, "{}.md", "It is CHF 38,000 [E1:4].", ["38,000"]),
        ("| currency | EUR |\n|-|-|\n| USD | 1.08 |", "{}.md", "The dollar is at 1.08 USD [E1:3].", []),
        (EUROS.replace("price in EUR", "price in EUR or USD"), "{}.md", "It is 41,900 USD [E1:3].", []),
        (EUROS.replace("price in EUR", "kEUR"), "{}.md", "It is 41,900 USD, or 41,900,000 EUR [E1:3].", ["USD"]),
        (EURO_ROWS, "{}.csv", "Vans cost 48,000 EUR in 2026, fuel 6.250 € [E1:2-3].", []),
        (f"Budget\n{EURO_ROWS}".replace(",", ";"), "{}.csv", "It lists 2 items; fuel is 6,250 EUR [E1:3-4].", []),
        ("Budget\nitem;fee\na;12,50\nb;9,00", "{}.csv", "Fees are 12.50 EUR and 9 EUR, 21.50 EUR in all [E1:3-4].", []),
        (EURO_ROWS, "{}.csv", "Vans cost £48,000 [E1:2].", ["48,000"]),
        (MONTHS.replace("720.00", '"1,720.00"'), "{}.csv", "The rent comes to 4,840 EUR [E1].", []),
    ],
)
def test_the_column_of_a_table_is_added_up(source: str, path: str, text: str, wrong: list[str]) -> None:
    assert marked(text, source, path=path) == wrong


@pytest.mark.parametrize(("total", "wrong"), [("6,470,742", []), ("6,470,472", ["6,470,472 EUR"])])
def test_a_column_of_thousands_of_figures_is_added_up(total: str, wrong: list[str]) -> None:
    rows = "\n".join(f"row {n},{n + 3},{n * 53 % 877 + 1000}" for n in range(4_500))
    assert marked(f"In all {total} EUR [E1].", f"what,number,fee\n{rows}", path="{}.csv") == wrong


def test_figures_that_only_count_leave_the_sums_their_budget() -> None:
    text = "We looked at two offers [E1].\n" * 401 + "In all 1,050 EUR [E1]."
    assert marked(text, "A: 900 EUR\nB: 150 EUR") == []


def test_a_figure_is_tried_again_only_where_another_one_has_come_to_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(cited_figures, "follows", lambda said, _: tried.append(said.text))
    assert marked("It costs 900 EUR and 5,555 EUR [E1].", "A: 900 EUR") == ["5,555 EUR"]
    assert tried == ["5,555 EUR"]


def test_a_share_of_a_sum_far_down_in_a_long_document_is_found() -> None:
    bill = "\n".join(f"Row {n}: {n * 37 % 991 + 1000},00 €" for n in range(60))
    sources = f"{bill}\nNet: 24.098,00 €", "The discount is 15 %."
    assert marked("15 % of the net price are 3.614,70 € [E2] [E1].", *sources) == []
    assert marked("15 % of the net price are 3.641,70 € [E2] [E1].", *sources) == ["3.641,70 €"]
    assert marked("With VAT of 19 % it is 28.676,62 € [E1].", *sources, task="VAT is 19 %.") == []


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        *(
            (f"{label} The fee is 25 EUR.", "The fee is 25 EUR; Number 5 asks 25 EUR", "125 EUR; 30 EUR")
            for label in ("§ 5", "Art. 5", "Section 5.", "TOP 5:")
        ),
        ("We ask (2) people for 25 EUR each, and 3 people for 25 EUR.", "Two pay 50 EUR; 75 EUR", "175 EUR"),
        ("The rent is 345 €. 5 of 7 came, 4 said yes.", "It is 345 €", "It is 354 €; It is 349 €; It is 341 €"),
        ("The rent is 345 €, the heating 9 €.", "Together 354 €", "Together 336.50 €; Together 363 €"),
        ("Roof 45 m. Members 105.", "105 members", "Members rose to 150; Members fell to 60"),
        (
            "The city pays two thirds of the bus, which costs 2,100 EUR.",
            "It pays 1,400 EUR; Two thirds are 67 %; Two thirds of 2,100 EUR are 1,400 EUR",
            "It pays 1,407 EUR; It pays 1,500 EUR; It pays a third of the bus",
        ),
        ("Die Stadt zahlt zwei Drittel des Busses (2.100 €).", "Sie zahlt 1.400 €", "Sie zahlt 1.500 €"),
        (
            "The city pays 2/3 of the bus, which costs 2,100 EUR.",
            "It pays 1,400 EUR; It pays 67 %",
            "It pays 3 EUR more",
        ),
        ("It pays three quarters of the 2,100 EUR.", "It pays 1,575 EUR; It pays 75 %", "It pays 1,475 EUR"),
        ("It pays three fifths of the 2,100 EUR.", "It pays 1,260 EUR; It pays 60 %", "It pays 1,206 EUR"),
        ("It pays four fifths of the 2,100 EUR.", "It pays 1,680 EUR", "It pays 1,860 EUR"),
        ("Turnout was 61 of 105 members.", "58 %; 58.1 %; 42 % stayed away", "60 %; 57 %"),
        ("61 von 105 Mitgliedern waren da, 12 Gäste, 8 Kinder.", "58 %", "67 %; 20 %"),
        (
            "5 von 7 Mitgliedern waren da.",
            "Five of seven members; 5 of 7",
            "Six of seven members; Sechs von sieben; 6 of 7",
        ),
        (
            "The city pays 20 %.",
            "We pay the remaining 80 %; The other 80 %; 80 % is left to us; Die restlichen 80 %; Les 80 % restants",
            "We pay 70 %; We pay four fifths of it; We pay 80 EUR; The city pays 80 %; 80 % of the interest",
        ),
        (
            "Repairs went from 180 EUR to 360 EUR.",
            "They doubled; They were twofold; Sie haben sich verdoppelt; Two times as much",
            "They tripled; They grew threefold; Sie haben sich verdreifacht; Three times as much",
        ),
        (
            "Repairs went from 180 EUR to 900 EUR.",
            "They rose fivefold",
            "They rose fourfold; They quadrupled; They doubled",
        ),
        (
            "It fell from 540 EUR to 183 EUR.",
            "It trebled; 3 times as much; Three times as much",
            "4 times as much; Four-fold",
        ),
        ("Costs were twice as high.", "Costs doubled; Twice the costs", "Costs tripled"),
        (
            "Die Kosten stiegen von 200 € auf 600 €.",
            "Es ist das Dreifache; Sie stiegen aufs Dreifache; It is three times the cost; Sie sind dreimal so hoch",
            "Es ist das Zweifache; Es ist das Vierfache; It is four times the cost; It is twice as much; Doppelt so viel",
        ),
        (
            "| Miete monatlich | 1.450 € |",
            "Im Jahr sind das 17.400 €; In a year that makes 17,400 EUR; Pro Quartal sind es 4.350 €; 1,450 EUR a month",
            "Im Jahr sind das 17.500 €; Im Jahr sind das 1.450 €; 1,450 EUR a quarter; Over a year it is 1,450 EUR",
        ),
        (
            "| per quarter | 300 EUR |\n| weekly | 50 EUR |",
            "In a year that makes 1,200 EUR; Im Jahr sind das 2.600 €",
            "In a year that makes 1,300 EUR; Im Jahr sind das 2.700 €; Im Jahr sind das 300 €",
        ),
        (
            "Four valid votes were cast. Drei neue Mitglieder kamen.",
            "Four votes were cast; Drei Mitglieder; Three people came; Three of them stayed",
            "Six votes were cast; Five votes were cast; Fünf Mitglieder kamen",
        ),
        (
            "A quarter of the 144 members must come.",
            "36 votes are needed; Es sind 36 Mitglieder",
            "63 votes are needed",
        ),
        ("Open on Monday and Thursday.", "Two days a week; An zwei Tagen pro Woche", "Three days a week; In two days"),
        ("Montag bis Freitag", "Five days a week", "Six days a week"),
        ("A 3,000, B 4,500 EUR", "B is 1.5 times as dear", "B is 1.8 times as dear; Twofold"),
        (
            "We pay 310 EUR a month.",
            "It is 12 × 310 EUR = 3,720 EUR a year; It is 3,720 EUR in twelve months; 12 months cost 3,720 EUR; 3,720 EUR; "
            "It is 3,100 EUR in ten months; Ten months: 10 × 310 EUR = 3,100 EUR; In drei Jahren sind das 11.160 EUR",
            "The lease runs 12 months; 12 people pay 310 EUR; It is 3,200 EUR in ten months; It is 3,700 EUR a year",
        ),
        (
            "La cuota es de 700 euros al mes.",
            "8.400 euros al año; 8,400 EUR a year",
            "8.500 euros al año; 700 euros al año",
        ),
        (
            "It costs 640 EUR to set up and 1,280 EUR for 40 users; the tyres cost 900 EUR.",
            "Two of them, at 640 EUR each, cost 1,280 EUR; At 900 EUR a set, 14 sets cost 12,600 EUR",
            "It costs 1,280 EUR for 2 users; We need 14 vans, and they cost 12,600 EUR; At 900 EUR a set, 14 cost 12,700 EUR",
        ),
        (
            "Die Hallenmiete beträgt 1.250,40 EUR im Monat.",
            "It is 1,250.40 EUR a month; 1.250,40 EUR/Monat; 15,004.80 EUR a year; 1,250 EUR a month; 3,751.20 EUR a quarter",
            "It is 1,250.40 EUR a year; 1.250,40 EUR im Jahr; 1,251 EUR a month; 1,250.40 EUR a quarter; 3,571.20 EUR a quarter",
        ),
        (
            "Cleaning is 45 EUR a week, the stall 20 EUR a day, and the fee was 60 EUR a year ago.",
            "It is 2,340 EUR a year; 45 EUR weekly; 7,300 EUR annually; 60 EUR a month",
            "It is 45 EUR a month; 20 EUR a week; 2,430 EUR a year",
        ),
        ("Die Kurse kosten 1.250 EUR pro Quartal.", "5.000 EUR im Jahr; 416.67 EUR a month", "1.250 EUR im Monat"),
        ("Miete 2027: 1.250 EUR im Monat.", "Es sind 1.250 EUR im Jahr 2027", "Es sind 1.250 EUR im Jahr"),
        (
            "37 members voted, 31 yes and 6 no.",
            "84 % voted yes; 16.2 % voted no; More than half voted yes; More than three quarters of the members voted yes",
            "Two thirds voted yes; Two thirds of the members voted yes; Half of the members voted yes; Zwei Drittel waren dafür",
        ),
        (
            "24 yes, 12 no.",
            "Two thirds voted yes; 67 % voted yes; Ein Drittel war dagegen",
            "Drei Viertel waren dafür; 76 %; From the 2nd year on",
        ),
        ("The club has 142 members, of which 37 are young.", "26 % are young; The rest, 74 %", "28 % are young; 62 %"),
        (
            "The fee rises from 48,00 EUR in 2026 to 54,50 EUR in 2027.",
            "It is a rise of 13.5 %; It rises by 13,54 %; It rises by about 14 %",
            "It is a rise of 15.3 %; It rises by 13,45 %; It rises by 100 %; It doubled",
        ),
        (
            "Members: 12 of 40, 13 of 52, 9 of 61.",
            "30 %; 25 %; 12 of 40 are 30 %; 14.75 %",
            "33 %; 67 %; 12 of 40 are 31 %; Three fifths of them",
        ),
        (
            "A deposit of one third is due; we need a two-thirds majority.",
            "A third of it; Two thirds of them",
            "Half of it",
        ),
        (
            "It lasts 9 weeks, the roof 6.",
            "Six of the nine weeks are two thirds; 6 of the 9 weeks are 67 %",
            "6 of 9 are 76 %",
        ),
        ("Nobody counts.", "It opens in the second half of the year; The other half of it", "Half of the year"),
        (
            "The rent was 400 EUR and is now 500 EUR, the fee 0 EUR.",
            "It rose by a quarter",
            "The rent tripled; The rent doubled",
        ),
        (
            "We paid 4,000 EUR in 2025 and 4,500 in 2026.",
            "Up by 500 EUR",
            "Costs tripled; Costs doubled",
        ),
        ("120 members in 2020, 360 members in 2026.", "Membership tripled", "Membership doubled"),
        (
            "One is cheap.\nTwo is not.\nThree is dear.",
            "The top 3 offers differ; § 5a is not in it",
            "TOP 4 says so; § 5 does",
        ),
        ("Offer 450, delivery 30.", "Together 480", "Together 490"),
        ("Article 40 EUR, article 20 EUR.", "Together 60 EUR", "Together 80 EUR"),
        (
            "The precept: €31,200, then €32,450; fees €4,850, grants €23,418, bins €112.",
            "It rises by 1,250 EUR, about 4 %; The fees are 15 % of 32,450 EUR; Up by 4.0 %",
            "It rises by 1,250 EUR, about 6 %; The fees are 17 % of 32,450 EUR; Up by 5 %; Up by 4.5 %",
        ),
        (
            "Prices in EUR: 1.120,00 | 1.190,00",
            "It is 70 EUR dearer; 6.25 % dearer",
            "It is 60 EUR dearer; 6.5 % dearer",
        ),
        ("| Miete | 14.400 |", "Die Miete ist 1.200 € im Monat; 14.400 €", "Die Miete ist 1.300 € im Monat"),
        ("The plan for 2027/28: 12 instalments.", "12 instalments; for 2027/28", "It is 12 per cent; for 2028/29"),
        ("| Quota (%) | 12 |", "It is 12 per cent; 12 %", "It is 13 %"),
        (
            "4 nights at 92 €, tax 14 €.",
            "4 × 92 € + 14 € = 382 €; 4 nights at 92 € less the tax of 14 € are 354 €",
            "4 × 92 € + 14 € = 328 €; It is 382 €; 92 € + 14 € = 408 €",
        ),
        ("80 seats in A, 200 in B; pH 7.2.", "2,5-mal so viele; 2.5 times more; pH 7.2", "3,5-mal so viele; pH 7.3"),
        (
            "412 members: 96 young, 58 honorary, 71 came.",
            "23 % are young; 77 % are not; 17 % came; Nearly a quarter are young",
            "32 % are young; 26 % came; A fifth of them are young",
        ),
        (
            "In 2024 we had 1,134 visitors, in 2026 1,402.",
            "It rose in two years; It rose in 24 months",
            "It rose in 4 years; In 26 months",
        ),
        (
            "Coverage: 87.4 % (+1.6 percentage points); turnout 62 %, before 58 %.",
            "It was 85.8 %; It rose 4 percentage points",
            "It was 86.8 %; It rose 5 percentage points",
        ),
        ("Nobody counts.", "It says so three times; We should double our efforts", "Costs doubled"),
        (
            "The roof is 14.5 m long and 8 m wide.",
            "It has 116 m²; It has 116 m2; It has 116 square metres; Es hat 116 Quadratmeter",
            "It has 117 m²; It has 116 m; It has 22.5 m²",
        ),
        ("40 planks at 18.90, 6 tins at 34.50", "40 planks at 18.90 and 6 tins at 34.50 make 963", "They make 936"),
        ("| bolt | 250 | 0.12 |", "The bolts cost 30 EUR; Bolts: 30.00", "They cost 32 EUR; 30 members voted"),
        (
            "| Pos. | what | number | price |\n|---|---|---|---|\n| 2 | Tiles | 8 | 4,200 EUR |",
            "The tiles cost 33,600 EUR; The tiles are 4,200 EUR",
            "The tiles cost 8,400 EUR; The tiles cost 67,200 EUR",
        ),
        (
            "| item | EUR |\n|---|---|\n| a | 10 |\n| b | 20 |\n| c | 20 |",
            "16.67 EUR on average; im Mittel 16,67 €",
            "16.67 EUR",
        ),
        ("alert(1)\nThe price is 100 EUR.", "It is 100 EUR", "It is 101 EUR; It is 99 EUR"),
        (
            "15 seats. 12 EUR a month for each seat.",
            "15 seats at 12 EUR a month make 2,160 EUR a year; 15 seats cost 540 EUR a quarter; 15 seats cost 180 EUR a month",
            "it makes 2,160 EUR a year; 15 seats cost 2,260 EUR a year; 14 seats at 12 EUR a month make 2,016 EUR a year",
        ),
        (
            "A asks 110 EUR. B asks 120 EUR. C asks 190 EUR. It takes 3 or 4 days.",
            "on average they ask 140 EUR; im Durchschnitt 140 EUR; the mean of 110 EUR and 190 EUR is 150 EUR",
            "they ask 140 EUR; on average they ask 150 EUR; on average they ask 135 EUR",
        ),
        (
            "The fee is 60 EUR; pupils pay half, half in advance.",
            "Pupils pay 30 EUR; They pay 50 %; Half of it is paid in advance",
            "Pupils pay 40 EUR; They pay 40 %",
        ),
        ("It takes half an hour, from half past six, in the first half of May.", "It is short", "It is 50 %"),
        (
            "Tickets cost 12 EUR, children 5 EUR.",
            "Two adults and two children pay 34 EUR; One adult and four children pay 32 EUR",
            "Two adults and two children pay 29 EUR; Two adults and two children pay 44 EUR; They pay 34 EUR",
        ),
        (
            "| P-225 | 629.00 EUR |\n| ES120 | 745.50 EUR |\nThere is 4 % off.",
            "Six P-225 come to 3,623.04 EUR; With 4 % off, six P-225 cost 3,623.04 EUR",
            "Six P-225 come to 3,632.04 EUR; P-225 come to 3,623.04 EUR",
        ),
        (
            "The rent is 2,850 EUR a month and rises by 8 %. The other costs 2,400 EUR plus 350 EUR for heating.",
            "It is 100 EUR cheaper; It is 2,736 EUR more a year",
            "It is 150 EUR cheaper; It is 2,376 EUR more a year",
        ),
        (
            "The rent is 2,850 EUR, before that 3,840.",
            "35 % more: 3,840 instead of 2,850 EUR",
            "It fell by 62 %",
        ),
        (
            "| 2026 |\n|---|\n| 334,000 |\n| 42,500 |\n| -291,300 |\n| -18,000 |",
            "A surplus of 67,200 EUR",
            "A surplus of 62,700 EUR",
        ),
        (
            "A costs 54,900 EUR, fitting 3,200 EUR and VAT 19 %.",
            "A costs 69,139 EUR with fitting and VAT of 19 %; we pay 3,200 and 19 % VAT",
            "A costs 69,193 EUR with both",
        ),
        (
            "Contracts a year: 1,140, 960 and 1,425 EUR.",
            "The first is 285 EUR cheaper; it is 675 EUR less than both others",
            "It costs 1,245 EUR; It costs 1,605 EUR",
        ),
        (
            "It runs 30,000 hours, the other 25,000 hours; so far 1 426 hours. We promise 2 000.",
            "It runs five thousand more; 5,000 hours more; 574 short of the 2,000",
            "It runs six thousand more; 547 short of the 2,000",
        ),
        ("It draws 4.6 kW for 2,900 hours a year.", "It uses 13,340 kWh a year", "It uses 13,430 kWh a year"),
        ("Miete: von 640 auf 715 Euro.", "It rises by 75 EUR, 900 EUR more a year", "It rises by 57 EUR"),
        ("A: 9,404.60 EUR, B: 17,388.25 EUR.", "Costs nearly doubled", "Costs doubled; Costs nearly tripled"),
        ("9 % come often, 44 % at times.", "More than half, 53 %, come", "More than two thirds, 53 %, come"),
        (
            "52 % praise it, 39 % its sound, 71 % the seats.",
            "13 points fewer praise it",
            "29 % praise it; 48 % praise it",
        ),
        ("It rose from 6.8 to 7.3.", "It rose by half a point", "It rose by 0.6 points"),
        (
            "Break: 15 July to 11 August.",
            "It is closed for four weeks; from 15/07 to 11/08",
            "It is closed for five weeks; from 15/08",
        ),
        (
            "The lease runs for 15 years from 1 January 2016.",
            "15 years from 1 January 2016 are up in 2030",
            "15 years from 2016 are up in 2032",
        ),
        (
            "A motion needs drei Viertel der Stimmen.",
            "It needs a 3/4 majority; Three quarters have to agree",
            "It needs a 2/3 majority; Three fifths have to agree",
        ),
        (
            "We had 52,400 visitors in 2019, and 9,404 members.",
            "some 52,000; about 9,400 members",
            "some 54,200; about 9,900 members",
        ),
        (
            "Die Kaution beträgt 3 Monatsmieten.",
            "It is three months of rent",
            "It is four months of rent",
        ),
        (
            "Cover is at most 600,000 EUR. Notice: at least 21 days.",
            "It is at most 600,000 EUR; at least 21 days; more than 550,000 EUR; over 20 days",
            "It is at most 660,000 EUR; at least 19 days; at least 25 days; no more than 660,000 EUR",
        ),
        (
            "312 members; up to 4 guests each. It costs 385 EUR, with a credit limit of 2,000 EUR.",
            "at least 300 members; at most 400 EUR",
            "at least 320 members",
        ),
        ("We have 612 members and 21 days.", "at most 650 members; at least 600 members", "at most 600 members"),
        ("One in six keeps a dog.", "One in six does; 1 in 6; about 17 %", "One in five does; one in seven"),
        ("Question 4: weekly 96, monthly 71, never 105.", "38.6 % never do", "38.0 % never do"),
        ("Adult 7.80. Child 3.90.", "Two adults pay 15.60; two adults and one child pay 19.50", "Two adults pay 16.50"),
        (
            "It costs 285 EUR. The frost took 12 %, and late payers pay 3 % more.",
            "Late, it is 293.55 EUR",
            "It is 258 EUR",
        ),
        ("Cars must be there 20 minutes before departure at 08:40.", "by 8:20 a.m.; at 08:20", "by 8:30 a.m."),
        (
            "Inspected on 12/09/2022, and then every two years.",
            "again in September 2024; by 12 September 2024",
            "again in October 2024",
        ),
        ("| A | 900 |\n| B | 480 |\n| discount | - 138 |", "That makes 1,242", "That makes 1,224"),
        ("| name | load (kg) |\n|---|---|\n| Beam | 12 | Steel |", "12 kg", "13 kg"),
        ("Laufzeit (Jahre): 9 fest. Length (m): 12 outer.", "9 Jahre; 12 m", "8 Jahre"),
        ("Phase one in two weeks. One in 10,000 fails.", "Phase one in two weeks", "One in 10 fails; 10 % fail"),
        ("A quarter to three members voted. Um 14 Uhr 30 Gäste.", "30 Gäste; um 14 Uhr", "at 2:45; um 14:30"),
        ("A train ticket costs 12.50, half full. Room 12/07.", "It costs 12.50", "at 12:50; 50 %; on 12 July"),
        ("It holds 1,200 million.", "1.2 billion", "1.2 million"),
        (
            "The monthly rent is 1,450 EUR. Der Jahresbeitrag beträgt 48 €.",
            "It is 1,450 EUR a month; the monthly rent of 1,450 EUR; jährlich 48 €; 17,400 EUR a year; 4 € im Monat",
            "It is 1,450 EUR a year; the yearly rent is 1,450 EUR; each year it costs 1,450 EUR; 48 € im Monat",
        ),
        ("Every year the club pays 1,450 EUR, or 130 EUR a month.", "It pays 1,450 EUR a year", "monatlich 1.450 €"),
        ("4 of 7 members came.", "7 members; 4 out of 7 members", "7 weeks; 7 years; 7 kg; five out of seven members"),
        (
            "It costs 19,900 EUR.",
            "Half of it is 9,950 EUR; a third of 19,900 EUR is 6,633 EUR; 15 % are 2,985 EUR",
            "Half of it is 9,590 EUR; a third of 19,900 EUR is 6,363 EUR; 15 % are 2,958 EUR",
        ),
        ("For: 3 votes. Against: 1.", "Four votes were cast; It passed by 3 to 1", "It passed by 4 to 1"),
        ("Open from 09:00 to 17:00.", "8 hours; eight hours", "16 hours; 9 hours; 7 hours"),
        ("Party from 10 pm to 4 am.", "6 hours; six hours; 360 minutes", "7 hours; 5 hours"),
        (
            "Night rest from 22:30 to 06:00.",
            "7.5 hours; seven and a half hours; 450 minutes",
            "8.5 hours; 6.5 hours; 16 hours; eight hours",
        ),
        ("Nachtdienst von 22 Uhr bis 6 Uhr.", "8 Stunden; acht Stunden", "9 Stunden; sieben Stunden"),
        (
            "From 3 May to 17 May.",
            "14 days; two weeks; 14 nights; 15 days; fourteen nights",
            "12 days; three weeks; 13 nights",
        ),
        ("Start 3 May, the end is on 17 May.", "14 days; two weeks", "18 days; three weeks"),
        ("Anreise 3. Mai, Abreise 17. Mai.", "14 Nächte; zwei Wochen; 14 Tage", "13 Nächte; drei Wochen"),
        (
            "Arrival 28 December, departure 4 January.",
            "7 days; one week; 7 nights; seven nights",
            "9 days; two weeks; 9 nights",
        ),
        (
            "It begins on 12 January 2027. Notice: 20 minutes before.",
            "12 January 2027 (Tuesday)",
            "4 May 2025, a Sunday; 12 May 2025 (Monday)",
        ),
        ("Arrival 3 May 2026, departure 17 May 2026.", "14 nights; two weeks; 14 days", "16 nights; three weeks"),
        (
            "| Teil | Zeit |\n|---|---|\n| A | 0:45 |\n| B | 1:20 |\n| C | 0:25 |",
            "2:30 in all; 2.5 hours; 150 minutes; 2 hours and 30 minutes; A and B take 2:05; B and C 1:45",
            "2:40 in all; 3 hours; 160 minutes; 2 hours and 40 minutes; A and B take 2:15",
        ),
        (
            "| Song | Length |\n|---|---|\n| A | 3:30 |\n| B | 4:15 |",
            "7:45; both together 7:45",
            "7:55; both together 8:45",
        ),
        ("A: 12 kg.\nB: 30 kg.\nC: 25 kg.", "in all 67 kg; A and B have 42 kg; 37 kg", "in all 76 kg; 43 kg; 68 kg"),
        ("| Box | kg |\n|---|---|\n| A | 12 kg |\n| B | 30 kg |", "42 kg", "44 kg"),
        (
            "| Box | weight (kg) |\n|---|---|\n| A | 12 |\n| B | 30 |\n| C | 25 |",
            "A has 12 kg; 42 kg together; 67 kg in all; 30 kg",
            "44 kg together; 76 kg in all; 12 EUR; 30 litres",
        ),
        (
            "| Job | hours |\n|---|---|\n| A | 4 |\n| B | 6.5 |",
            "10.5 hours; 4 hours; six and a half hours",
            "11 hours; 4 EUR; 4 kg",
        ),
        (
            "| Nails per kg | EUR |\n|---|---|\n| small, per kg | 12 |\n| big, per kg | 30 |",
            "12 EUR; 42 EUR",
            "12 USD; 44 EUR",
        ),
        ("A weighs 12.5 kg and B 7.5 kg.", "20 kg together", "21 kg together"),
        (
            "| fee (DKK) |\n|---|\n| 1,500 |\n| 500 |",
            "1,500 DKK; 1,500 kr; both cost 2,000 DKK; 2,000 kr",
            "1,500 SEK; 2,000 NOK",
        ),
        (
            "| Board | Women | Members |\n|---|---|---|\n| A | 12 | 48 |\n| B | 7 | 35 |"
            "\n| C | 11 | 44 |\n| D | 9 | 31 |\n| E | 10 | 29 |\n| F | 5 | 23 |",
            "25 % of A are women; 25 %; 34 %; 25.0 % of C; 34.5 % of E",
            "26 %; 24 %; 27 % of A; 25.5 % of C",
        ),
        (
            "| Tag | Gäste | Plätze |\n|---|---|---|\n| Mo | 45 | 120 |\n| Di | 71 | 130 |\n| Mi | 37 | 90 |\n| Do | 61 | 110 |",
            "Am Montag waren 37,5 % der Plätze belegt; 54.6 % on Tuesday; 62,5 % blieben frei",
            "Am Montag waren 35,7 % der Plätze belegt; 56.4 % on Tuesday",
        ),
        (
            "| Tag | Beginn | Ende |\n|---|---|---|\n| Mo | 08:00 | 12:00 |\n| Di | 09:00 | 17:00 |",
            "4 hours on Monday; 8 hours on Tuesday; from 8:00 to 12:00; 09:00",
            "5.5 hours on Monday; 08:30",
        ),
        ("| Leg | min |\n|---|---|\n| A | 12 |\n| B | 30 |", "12 min; 30", "13 min"),
        ("| what | m² |\n|---|---|\n| hall | 45 |\n| shed | 30 |", "75 m²; 45 m²", "76 m²; 45 EUR"),
        ("Check-in 14:00, check-out 10:00.", "20 hours", "21 hours; 3 hours"),
        ("Open Friday 18:00 to Saturday 02:00.", "8 hours; eight hours", "9 hours; six hours"),
        ("Arrive on 28 February, leave on 3 March.", "3 nights; 3 days; three nights", "5 nights; 5 days"),
        ("Ferien vom 27. Juli bis 7. September.", "six weeks; sechs Wochen; 42 days; 43 days", "five weeks; 48 days"),
        ("Buchung: 24.12.2026 bis 2.1.2027.", "9 nights; 9 Nächte; neun Nächte", "8 nights; 11 Nächte"),
    ],
)
def test_what_follows_from_a_line_is_found_and_what_looks_alike_is_not(source: str, right: str, wrong: str) -> None:
    assert [said for said in right.split("; ") if is_marked(said, source)] == []
    assert [said for said in wrong.split("; ") if not is_marked(said, source)] == []


STATUTES = (
    "§ 8 Beitrag\n(1) Der Beitrag ist 25 Euro.\n§ 9 Mitglieder\n(1) Die Frist beträgt drei Wochen.\n(2) Ein Viertel."
)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Nach § 9 Abs. 1 sind es drei Wochen [E1:4].", []),
        ("Nach § 9 ist es ein Viertel [E1:5].", []),
        ("Nach § 8 Abs. 1 sind es drei Wochen [E1:4].", ["8"]),
        ("Nach § 9 sind es 25 Euro [E1:2].", ["9"]),
        ("Nach § 8 sind es 200 Euro [E1:2].", ["Euro"]),
        ("Nach § 8 heißt es Mitglieder [E1:3].", ["8"]),
    ],
)
def test_a_plain_line_with_the_number_of_a_section_is_a_heading(text: str, wrong: list[str]) -> None:
    assert marked(text, STATUTES) == wrong
    assert marked(text.replace("§", "TOP"), STATUTES.replace("§", "TOP")) == wrong


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Tuition fees were 318,400 EUR in 2025 [E1:2].", []),
        ("Tuition fees were 318,400 EUR in 2024 [E1:2].", ["2024"]),
        ("Chairs are paid over 24 months [E2:2].", []),
        ("Chairs are paid over 48 months [E2:2].", ["months"]),
    ],
)
def test_the_numbers_of_a_header_stand_apart_in_their_cells(text: str, wrong: list[str]) -> None:
    tables = "Item,2025,2026,Note\nTuition fees,318400,322000,", "Month,12,24,36\nChairs,100,180,250"
    assert marked(text, *tables, path="{}.csv") == wrong


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("It runs five years, until 31 August 2031 [E1].", []),
        ("It runs five years, until the end of August 2031 [E1].", []),
        ("Es läuft fünf Jahre, bis zum 31.8.2031 [E1].", []),
        ("It runs five years, until 1 September 2031 [E1].", []),
        ("It runs five years, until 31 August 2032 [E1].", ["2032"]),
        ("It runs five years, until 30 August 2031 [E1].", ["2031"]),
        ("It runs five years, until the end of July 2031 [E1].", ["2031"]),
        ("It runs until 31 August 2031 [E1].", []),  # the cited line says how long
        ("It runs until 30 August 2031 [E1].", ["2031"]),
        ("It runs until August 2031 [E1].", ["2031"]),
        ("So notice has to be given by 31 March 2026 [E2].", []),
        ("So notice has to be given by 30 April 2026 [E2].", ["2026"]),
        ("Notice is six months before 30 September 2026, by 31 March 2026 [E2].", []),
        ("Notice is six months before, by 30 March 2026 [E2].", []),
        ("Notice is six months before, by 29 March 2026 [E2].", ["2026"]),
        ("Notice is three months before 31 December, by 30 September [E3].", []),
        ("Notice is three months before 31 December, by 29 September [E3].", ["September"]),
        ("It starts five years before 31 August 2031, on 1 September 2026 [E3].", []),
        ("The ten years from March 2026 end in February 2036 [E4].", []),
        ("The ten years from March 2026 end in January 2036 [E4].", ["2036"]),
    ],
)
def test_a_term_ends_on_the_day_before_the_one_it_began_on(text: str, wrong: list[str]) -> None:
    lease = "The lease begins on 1 September 2026 and runs for five years."
    grant = "The grant ends on 30 September 2026. Notice is six months before."
    others = "Notice is three months before 31 December. One of five years ends on 31 August 2031."
    months = "Ten years begin in March 2026."
    assert marked(text, lease, grant, others, months) == wrong


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Station Road 41 would cost about 2,750 EUR [E1:4].", []),
        ("The hall in Station Road 41 costs 2,750 EUR [E1:4].", []),
        ("Section 14 asks for 2,750 EUR, as Version 16 does [E1:4].", []),
        ("Station Road 43 would cost about 2,750 EUR [E1:4].", ["43"]),
        ("Station Road would cost 41 EUR [E1:4].", ["41 EUR"]),
        ("Station Road, 41 rooms, is 2,750 EUR [E1:4].", ["41"]),
        ("The road 41 would cost about 2,750 EUR [E1:4].", ["41"]),
        ("Version 17 asks for 2,750 EUR [E1:4].", ["17"]),
    ],
)
def test_a_number_in_a_name_that_the_document_uses_is_no_figure(text: str, wrong: list[str]) -> None:
    minutes = "The hall in Station Road 41 was viewed.\nSection 14 binds.\nVersion 16 holds.\nThe rent of the hall is 2,750 EUR."
    assert marked(text, minutes) == wrong


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("Notice is 28 days [E1].", "(2) Notice must be given at least 14 days before."),
        ("Notice is 28 days [E1].", "§ 7 (2) Notice must be given at least 14 days before."),
        ("The chairs cost 750 EUR [E1].", "Pos. 3: Chairs 250 EUR"),
        ("The chairs cost 750 EUR [E1].", "Nr. 3 Chairs 250 EUR"),
        ("The chairs cost 750 EUR [E1].", "3: Chairs 250 EUR"),
    ],
)
def test_a_number_that_only_numbers_a_line_is_no_operand(text: str, source: str) -> None:
    assert len(marked(text, source)) == 1
    assert marked(text, f"{source}, 3 of them, 2 times") == []
    number = re.findall(r"[0-9]", source)[0]
    assert marked(f"Line ({number}) says so [E1].", source) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Sono 40 euro, 35 in meno [E1].", []),
        ("It is 40 EUR now, 35 less than before [E1].", []),
        ("Es sind 40 EUR, 35 weniger als vorher [E1].", []),
        ("Sono 40 euro, 30 in meno [E1].", ["30"]),
        ("It is 40 EUR now, 45 less [E1].", ["45"]),
        ("It takes 10 working days, about two weeks [E2].", []),
        ("Es dauert 10 Werktage, also zwei Wochen [E2].", []),
        ("It takes 14 days [E2].", []),
        ("It takes 10 working days, about three weeks [E2].", ["weeks"]),
        ("It takes 11 days [E2].", ["days"]),
        ("Gut 318 m² sind es [E3].", []),
        ("Es sind gut drei Viertel [E3].", []),
        ("It costs just under 4,000 EUR [E3].", []),
        ("Gut 330 m² sind es [E3].", ["m²"]),
        ("Es sind gut vier Fünftel [E3].", ["Fünftel"]),
        ("It costs just under 3,800 EUR [E3].", ["EUR"]),
    ],
)
def test_a_difference_without_its_unit_a_week_of_working_days_and_a_little_more(text: str, wrong: list[str]) -> None:
    sources = "Before 75 EUR, now 40 EUR.", "Delivery takes 10 working days.", "Hall: 318.6 m², 76 % used, 3,840 EUR."
    assert [each.split()[-1] for each in marked(text, *sources)] == wrong


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("412 pupils and 24 teachers make about 17 pupils per teacher [E1].", []),
        ("That is 17.2 pupils per teacher [E1].", []),
        ("412 Schüler und 24 Lehrer sind etwa 17 Schüler je Lehrer [E1].", []),
        ("412 Schüler und 24 Lehrer sind rund 17 Schüler pro Lehrer [E1].", []),
        ("412 élèves et 24 enseignants font 17 élèves par enseignant [E1].", []),
        ("412 alumnos y 24 profesores son 17 alumnos por profesor [E1].", []),
        ("412 pupils and 24 teachers make about 18 pupils per teacher [E1].", ["18"]),
        ("That is 17.3 pupils per teacher [E1].", ["17.3"]),
        ("That is 17 pupils per room [E1].", ["17"]),
        ("That is 17 rooms per teacher [E1].", ["17"]),
        ("There are 17 pupils in a class [E1].", ["17"]),
    ],
)
def test_a_quotient_that_the_sentence_names_follows_from_both_numbers(text: str, wrong: list[str]) -> None:
    assert marked(text, "There are 412 pupils and 24 teachers.") == wrong


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("As of 30 November 2026, the offer stands [E1].", True),
        ("Am heutigen 30. November 2026 gilt das Angebot noch [E1].", True),
        ("The offer is valid for another 15 days [E1].", True),
        ("The offer is valid until 30 November 2026 [E1].", False),
        ("The repair in November cost 1,860 EUR [E1].", False),
    ],
)
def test_the_day_of_the_run_is_no_deadline_of_a_cited_line(text: str, is_right: bool) -> None:
    source = "The offer is valid until 15 December 2026. The repair of 3 September cost 1,860 EUR.\n"
    look = Quotations([Passage("E1", "a.md", 1, source)], ["E1"], day="2026-11-30")
    assert (NOT_IN_CITED_LINES not in look.check(text).text) is is_right


def test_the_price_of_several_rows_is_added_up_where_one_of_them_is_of_a_single_thing() -> None:
    offer = "item,unit price,quantity\nclimbing frame,3450.00,1\nsand (t),48.50,12"
    assert marked("They cost 4,032 EUR in all [E1:2-3].", offer, path="{}.csv") == []
    assert marked("They cost 4,042 EUR in all [E1:2-3].", offer, path="{}.csv") == ["4,042 EUR"]
