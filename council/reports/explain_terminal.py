"""An explanation for the terminal. Every text of agents, files and providers is one plain line without control characters
before it is shown, and never read as markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from io import StringIO
from typing import TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from council.ids import local_times
from council.reports import explain_words as words
from council.reports.explain import AgentShare, Explanation
from council.turns.account import StanceEntry
from council.turns.costs import told_cost

_STATUS_STYLES = {
    "succeeded": "bold green",
    "degraded": "bold yellow",
    "failed": "bold red",
    "cancelled": "bold magenta",
}
_MARKS = {
    "done": ("●", "green"),
    "failed": ("✗", "bold red"),
    "retry": ("↻", "yellow"),
    "wait": ("◌", "yellow"),
    "attempt": ("▶", "cyan"),
    "cut": ("╳", "yellow"),
    "under way": ("○", "cyan"),
}
_BAR_CHARS = 16
_MIN_BAR_CHARS = 6  # a shorter one shows nothing that the figures do not
_SPARE = (">thought", ">cached", ">out", ">in", ">time")  # what a narrow terminal does without, in this order
_NARROW = 60  # columns
_INDENT = 2
_BETWEEN = 2  # columns of a table are apart by as many characters


def show(explanation: Explanation, stream: TextIO, *, columns: int, coloured: bool, zone: tzinfo | None) -> None:
    """Prints the whole explanation, `columns` wide, its times in `zone`."""
    print_all(_parts(explanation, columns, zone), stream, columns=columns, coloured=coloured)


def print_all(parts: Iterable[RenderableType], stream: TextIO, *, columns: int, coloured: bool) -> None:
    """Prints them one below the other; what is piped on has no blanks at the ends of its lines."""
    text = StringIO()
    console = _console_of(text, columns=columns, coloured=coloured)
    for part in parts:
        console.print(part)
    shown = text.getvalue()
    stream.write(shown if coloured else "".join(f"{line.rstrip()}\n" for line in shown.splitlines()))


def _console_of(stream: TextIO, *, columns: int, coloured: bool) -> Console:
    return Console(
        file=stream,
        width=columns,
        color_system="standard" if coloured else None,
        force_terminal=coloured,
        markup=False,
        emoji=False,
        highlight=False,
    )


def _parts(told: Explanation, columns: int, zone: tzinfo | None) -> Iterator[RenderableType]:
    status = Text(told.status, _STATUS_STYLES.get(told.status, "bold cyan"))
    about = Text.assemble(f"run {told.run_id}  ", status, "  ", (" · ".join(words.status_line(told)), "dim"))
    lines = [Text(words.plain(told.title), "bold"), about, Text(words.time_line(told, zone), "dim")]
    if told.artifact and not told.live:
        lines.append(Text(f"page {words.plain(told.artifact)}", "dim"))
    yield Group(*lines)
    if told.missing:
        yield section("What is missing", [_line(sentence, "yellow") for sentence in told.missing])
    saved = f" Calls saved: {told.why.calls_saved}." if told.why.calls_saved else ""
    code = f"{told.why.code}  " if told.status == "failed" else ""  # what docs/trouble.md is read by
    lines = [Text.assemble((code, "bold"), local_times(words.plain(told.why.sentence, 1_000), zone), saved)]
    lines += [faint(f"fix: {words.plain(told.why.fix, 500)}")] if told.why.fix else []
    if told.decision is not None:
        instead = ""
        if told.decision.instead_of:
            instead = f" instead of {' and '.join(told.decision.instead_of)}, whose closing call failed"
        lines.append(Text(f"The decision was written by {told.decision.written_by}{instead}."))
    lines += [_line(f"note: {note.replace('**', '')}", "yellow") for note in told.notes]
    yield section("Where it stands" if told.live else "Why it stopped", list(lines))
    if told.agents:
        sums = [faint(words.spent_line(told)), faint(words.charged_line(told))]
        yield section("Who spent what", [agents_table(told.agents, columns), *sums])
    yield section("What happened", [_timeline(words.timeline(told), zone)])
    if told.reads:
        table = table_of("id", "what", "asked by", "brought")
        for read in told.reads:
            by = read.asked_by if not read.round else f"{read.asked_by}, round {read.round}"
            what = words.asked_for(read) if read.error_code or not read.path else words.lines_read(read)
            style = "red" if read.error_code else ""
            table.add_row(
                Text(read.id or read.repeats or "–"), Text(what), Text(by), Text(words.outcome_of(read), style)
            )
        yield section("Who read what", [table])
    if any(stance.key for stance in told.stances):
        yield section("Where they stood", [stances_table(told.stances, columns)])
    if told.changes:
        lines = []
        for change in told.changes:
            how = (words.change_words(change), "" if change.evidence else "yellow")
            lines.append(Text.assemble((f"{change.role}, round {change.round}: ", "bold"), how))
        yield section("Changes of mind", lines)
    if told.retries or told.waits:
        table = table_of("at", ">waited", "what", "what was said")
        for moment in words.delays(told):
            waited = words.duration(moment.seconds) if moment.seconds is not None else "still waits"
            table.add_row(
                Text(words.clock(moment.at_ms, zone), "dim"), waited, Text(moment.what), Text(moment.detail, "dim")
            )
        yield section("Retries and waits", [table])
    if told.mended:
        repairs = (f"{words.call_of(m.role, m.round)}: {words.mended_words(m)}" for m in told.mended)
        yield section("Repairs", list(map(_line, repairs)))


def section(title: str, body: Sequence[RenderableType]) -> RenderableType:
    return Group(
        Text(""),
        Text(title, "bold"),
        *(Padding(part, (0, 0, 0, _INDENT), expand=False) for part in body if part != Text("")),
    )


def agents_table(agents: Sequence[AgentShare], columns: int) -> Table:
    """A row for each agent, its name whole from 50 columns on."""
    rows: list[tuple[str | Text, ...]] = []
    for agent in agents:
        letter = f" ({agent.letter})" if agent.letter else ""
        failed = f" ({agent.failed} failed)" if agent.failed else ""
        calls = Text(f"{agent.calls}{failed}", "red" if agent.failed else "")
        spent = (*words.token_counts(agent), told_cost(agent.cost_usd), words.duration(agent.seconds))
        rows.append((Text(f"{agent.role or 'memory'}{letter}"), calls, *spent))
    headings = ["agent", ">calls", ">in", ">cached", ">out", ">thought", ">cost", ">time"]
    for spare in _SPARE:  # a name is not folded for a figure that `--json` has, too
        if _width_of(_filled(table_of(*headings), rows), columns) <= columns - _INDENT:
            break
        at = headings.index(spare)
        del headings[at]
        rows = [row[:at] + row[at + 1 :] for row in rows]
    return barred(headings, rows, [agent.seconds for agent in agents], columns)


def barred(
    headings: Sequence[str], rows: Sequence[Sequence[str | Text]], values: Sequence[float], columns: int
) -> Table:
    """A table with a bar behind each row, by the largest of the values; without them where they would not fit on a line."""
    table = _filled(table_of(*headings), rows)
    room = min(_BAR_CHARS, columns - _INDENT - _width_of(table, columns) - _BETWEEN)
    most = max(values, default=0)
    if room < _MIN_BAR_CHARS or not most:
        return table
    bars = [Text("▇" * round(room * value / most), "cyan") for value in values]
    return _filled(table_of(*headings, ""), [(*row, bar) for row, bar in zip(rows, bars, strict=True)])


def _width_of(table: Table, columns: int) -> int:
    """The columns that it takes unfolded."""
    return _console_of(StringIO(), columns=10 * columns, coloured=False).measure(table).maximum


def _filled(table: Table, rows: Sequence[Sequence[str | Text]]) -> Table:
    for row in rows:
        table.add_row(*row)
    return table


def _timeline(moments: Sequence[words.Moment], zone: tzinfo | None) -> Table:
    table = table_of("at", ">took", "", "")
    for moment in moments:
        sign, style = _MARKS[moment.mark]
        what = Text(moment.what, "bold" if moment.mark == "attempt" else "")
        if moment.detail:
            what.append(f"  {moment.detail}", "red" if moment.mark == "failed" else "dim")
        if moment.faint:
            what.stylize("dim")
        took = words.duration(moment.seconds) if moment.seconds is not None else ""
        table.add_row(Text(words.clock(moment.at_ms, zone), "dim"), Text(took), Text(sign, style), what)
    return table


def stances_table(stances: Sequence[StanceEntry], columns: int) -> Table:
    """A row for each stance. A narrow terminal breaks a name between its words alone, a very narrow one has no confidence."""
    headings, rows = [">round", "agent", "position", ">confidence", "evidence"], list[tuple[str | Text, ...]]()
    for stance in stances:
        who = Text(stance.role + (", devil's advocate" if stance.advocate else ""))
        if not stance.key:
            rows.append((str(stance.round), who, Text("not stated", "dim"), "", ""))
            continue
        evidence = ", ".join(stance.evidence) or "none named"
        position = Text(words.plain(stance.position))
        rows.append((str(stance.round), who, position, f"{stance.confidence:.2f}", Text(evidence)))
    if columns < _NARROW:
        headings, rows = [*headings[:3], headings[4]], [(*row[:3], row[4]) for row in rows]
    table = _filled(table_of(*headings), rows)
    if _width_of(table, columns) > columns - _INDENT:
        table.columns[1].width = max((len(f"{stance.role},") for stance in stances), default=0)
    return table


def table_of(*columns: str) -> Table:
    """A heading that begins with `>` is of a column of figures."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    for column in columns:
        name, figures = column.removeprefix(">"), column.startswith(">")
        table.add_column(name, justify="right" if figures else "left", no_wrap=figures, overflow="fold")
    return table


def _line(text: str, style: str = "") -> Text:
    return Text(words.plain(text, 1_000), style)


def faint(text: str) -> Text:
    return Text(text, "dim")
