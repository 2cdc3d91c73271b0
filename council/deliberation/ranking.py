"""Answers ranked by all, counted by code (Borda): of n answers the first of a ballot gets n-1 points. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, field_validator

from council.deliberation.transcript import Transcript
from council.llm.structured import ReplyProblem


class Ranking(BaseModel):
    """A ballot: letters of answers, best first; `Member A` is A."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ranking: tuple[str, ...]

    @field_validator("ranking")
    @classmethod
    def _letters(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(found[1].upper() if (found := _LETTER.fullmatch(name)) else name for name in value)


_LETTER = re.compile(r"\s*(?:member\s+)?([a-z])\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Count:
    letter: str
    points: int
    firsts: int


def ballot_problems(letters: Sequence[str], ballot: Ranking) -> Iterator[ReplyProblem]:
    if sorted(ballot.ranking) != sorted(letters):
        yield ReplyProblem(f"must name each of {', '.join(letters)} once and nothing else", "ranking")


def borda(transcript: Transcript, letters: Sequence[str]) -> list[Count]:
    ballots = [turn.ranking for turn in transcript.turns() if turn.ranking]
    points = {letter: sum(len(each) - 1 - each.index(letter) for each in ballots) for letter in letters}
    counts = [Count(letter, points[letter], sum(each[0] == letter for each in ballots)) for letter in letters]
    return sorted(counts, key=lambda count: (-count.points, count.letter))


def ties(counts: Sequence[Count]) -> list[list[Count]]:
    by_points: dict[int, list[Count]] = {}
    for count in counts:
        by_points.setdefault(count.points, []).append(count)
    return [group for group in by_points.values() if len(group) > 1]


def count_in_words(transcript: Transcript, letters: Sequence[str]) -> str:
    ballots = [turn for turn in transcript.turns() if turn.ranking]
    if not ballots:
        return "The members were asked to rank the answers of round 1, and no ranking could be read."
    counts = borda(transcript, letters)
    listed = ", ".join(f"Member {count.letter} {count.points} points" for count in counts)
    given = f" over {len(ballots)} ballot{'s' if len(ballots) != 1 else ''}"
    tied = ""
    for group in ties(counts):
        tied += f" Members {', '.join(count.letter for count in group[:-1])} and {group[-1].letter} are equal."
    return (
        f"The members ranked the answers of round 1. Borda count{given}: {listed}.{tied} "
        "A count is no proof: judge by the reasons."
    )
