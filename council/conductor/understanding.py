"""Understanding: one typed reading of a request (source: The Conductor, "Understanding Layer").

The request is cut into parts, and its material into named fields. What an agent gets later are the words of its part and
the fields of its manifest, never the whole request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from council.agents.manifest import REQUEST_FIELDS
from council.llm.base import Message
from council.llm.structured import ReplyProblem

MAX_PARTS = 3
Level = Literal["low", "medium", "high"]
Frequency = Literal["one_time", "occasional", "frequent"]
Order = Literal["sequential", "parallel", "iterative"]


class RequestPart(BaseModel):
    """One thing to be done. `uses` are the numbers of earlier parts whose results this one works on. `changes`: it changes
    something that is kept, and does not only ask."""

    task: Annotated[str, Field(min_length=1, max_length=4_000)]
    needs: Annotated[str, Field(max_length=200)] = ""
    fields: Annotated[dict[str, Annotated[str, Field(max_length=20_000)]], Field(max_length=len(REQUEST_FIELDS))] = {}
    uses: Annotated[list[int], Field(max_length=MAX_PARTS)] = []
    changes: bool = False

    @property
    def wanted(self) -> str:
        """The words by which agents are found."""
        return f"{self.task} {self.needs}".strip()


class Understanding(BaseModel):
    """A request as it was understood. `missing` is the one question without whose answer nothing can be done, empty for
    none. `language` is the tag of the person's own."""

    parts: Annotated[list[RequestPart], Field(min_length=1, max_length=MAX_PARTS)]
    order: Order = "parallel"
    missing: Annotated[str, Field(max_length=400)] = ""
    language: Annotated[str, Field(max_length=35)] = ""
    complexity: Level = "low"
    frequency: Frequency = "one_time"
    required_capabilities: Annotated[list[str], Field(max_length=8)] = []
    should_create_specialist: bool = False
    keep: Annotated[list[Annotated[str, Field(min_length=3, max_length=300)]], Field(max_length=3)] = []

    @property
    def as_one(self) -> RequestPart:
        """All parts as one, for the agent that the person named."""
        fields: dict[str, str] = {}
        for name, value in (item for part in self.parts for item in part.fields.items()):
            known = fields.get(name, "")
            fields[name] = value if value in known or not known else f"{known}\n{value}"
        task = "\n".join(dict.fromkeys(part.task for part in self.parts))
        changes = any(part.changes for part in self.parts)
        return RequestPart(task=task, needs=self.parts[0].needs, fields=fields, changes=changes)


def checked(understanding: Understanding) -> Iterator[ReplyProblem]:
    """The problems that the type alone does not see."""
    for number, part in enumerate(understanding.parts):
        for name in part.fields.keys() - REQUEST_FIELDS.keys():
            told = f"is no field; the fields are {', '.join(REQUEST_FIELDS)}"
            yield ReplyProblem(told, f"parts[{number}].fields.{name}")
        for used in part.uses:
            if not 1 <= used <= number:
                yield ReplyProblem("a part uses the results of earlier parts only", f"parts[{number}].uses")


def question(request: str, conversation: str, documents: str, answered: str) -> tuple[Message, ...]:
    """The request of this step. `request` and the others are fenced already; empty ones are left out. `answered` holds a
    question of the conductor and its answer."""
    material = [f"# The request\n\n{request}"]
    material += [f"# The conversation before it\n\n{conversation}"] if conversation else []
    material += [f"# Files given with it\n\n{documents}"] if documents else []
    material += [f"# What the person said when asked\n\n{answered}"] if answered else []
    return Message("user", "\n\n".join(material)), Message("user", _INSTRUCTION)


_TABLE = "\n".join(f"- {name}: {meaning}" for name, meaning in REQUEST_FIELDS.items())
_INSTRUCTION = f"""\
Read the request. Do not answer it. Reply with one JSON object and nothing else:

{{"parts": [{{"task": "…", "needs": "…", "fields": {{}}, "uses": [], "changes": false}}], "order": "parallel", \
"missing": "", "language": "en", "complexity": "low", "frequency": "one_time", "required_capabilities": [], \
"should_create_specialist": false, "keep": []}}

parts: one for each thing that another expert would do, at most {MAX_PARTS}; most requests have one. task: what is to be \
done, in the person's own language and words, complete enough for somebody who sees nothing else. needs: the skill, in a \
few words. changes: true if something that is kept is to be changed.
fields: the material of that part, word for word from the request, under these names only:
{_TABLE}
A part gets only the fields that it needs. Do not repeat personal or financial material in task.
uses: numbers of earlier parts whose results this part works on. order: sequential if one part follows another, iterative if \
two take turns on one text, else parallel.
missing: one question to the person if nothing can be done without its answer, such as a target that is not named; else "".
language: the tag of the language in which the person writes, such as en or de; a name in another language does not change it.
complexity: low, medium or high. frequency: one_time, occasional or frequent. required_capabilities: the skills, in a word \
or two each. should_create_specialist: true only if the person asks for a permanent specialist to be made, or to keep an \
expert beyond this conversation.
keep: facts about the person that they ask to have remembered for later conversations, one sentence each; else []."""
