"""The boundary table (source: The Conductor, "Safety Boundaries") as postures, found by rules that read English prose.

A rule names a plain request in the writer's own words. It has a verb, and its object at the end of the phrase ("kill my boss",
not "kill my boss's old process"). A sentence about defence, law, fiction or a prohibition asks for nothing. The rules are few
on purpose and easy to get around. A second opinion sees what they miss; what must never happen is stopped elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from council.safety.prose import clauses
from council.safety.verdict import Verdict, gravest

_ASK = (
    r"(?:^(?:to )?|[:,] |\b(?:please|how (?:to|2|(?:do|can|could|should) (?:i|we)|we could)"
    r"|(?:helps?|teach) (?:me|us|people)(?: to)?|want to|need to|like to|going to|let's|(?:shall|should|may|can) (?:i|we)"
    r"|could you|we will|plan to) )(?:secretly )?"
)
_END = r"(?=\W*$|[,.;:?!]| (?:at|for|with|in|from|out|using|step|and|to|without|online|tomorrow|that|because)\b)"
_STOP = r"(?=\W*$|[,.;!?]| (?:any ?more|tonight|today|again|now)\b)"
_MAKE = r"(?:build|make|making|building|create|assemble|3d print|design|synthesi[sz]e|produce|producing|manufacture)"
_WEAPON = (
    r"(?:bombs?|grenades?|guns?|pistols?|rifles?|silencers?|explosives|molotov cocktails?|napalm|detonators?|ieds?)"
)
_MASS_WEAPON = (
    r"(?:nerve (?:agents?|gas)|sarin|novichok|mustard gas|ricin|anthrax|(?:chemical|biological|nuclear) weapons?)"
)
_PERSON = (
    r"(?:(?:(?:my|his|her|our|the|a) (?:[\w']+ )?)?(?:boss|wife|husband|ex|ex-\w+|neighbou?rs?|colleagues?|teachers?|parents"
    r"|mother|father|brother|sister|daughter|son|child|children|dog|cat)"
    r"|(?:someone|somebody)(?:'s (?:drink|food))?|people|everyone|him|her)"
)
_ACCOUNT = r"(?:account|phone|e?mails?|inbox|computer|laptop)"
_MALWARE = r"(?:ransomware|malware|keyloggers?|spyware|phishing (?:e?mails?|pages?))"
_NOT = r"\b(?:never|not|don't|stop|avoid|illegal|forbid\w*|refuse\w*|against)\b"
_DEFENCE = (
    r"\b(?:detect\w*|prevent\w*|defen[cds]\w*|protect\w*|polic(?:y|ies)|awareness|training|treat(?:y|s)?|bans?|respon[sd]\w*"
    r"|trial|accused|charged|court|threatened|tried|vaccines?|antidote|exercise|simulation|penetration test\w*)\b"
)
_FICTION = (
    r"\b(?:novel|story|scene|film|movie|game|player|character|chapter|history|museum|toy"
    r"|(?:water|nail|glue|spray) guns?|(?:bath|seed|zip|logic|fork|photo) bombs?)\b"
)


@dataclass(frozen=True)
class Boundary:
    """One row: its verdict on a sentence in which `asks` is found and nothing of `unless`."""

    verdict: Verdict
    asks: re.Pattern[str]
    unless: re.Pattern[str]


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_TO_MAKE_A_WEAPON = Verdict(
    "block", "weapon", "it asks for help to make a weapon, which could hurt people", "decline_explain_alternatives", 1
)
WEAPON = Boundary(
    _TO_MAKE_A_WEAPON,
    _any(
        rf"{_ASK}{_MAKE} (?:me )?(?:[\w-]+ ){{0,3}}?{_WEAPON}{_END}",
        rf"\b(?:instructions|recipe|guide) (?:for|to) (?:{_MAKE} )?(?:an? )?(?:\w+ )?{_WEAPON}{_END}",
    ),
    _any(_NOT, _DEFENCE, _FICTION, r"\b(?:of|on) (?:weapons|guns|explosives)\b"),
)
MASS_WEAPON = Boundary(
    _TO_MAKE_A_WEAPON, _any(rf"{_ASK}{_MAKE} (?:\w+ )?{_MASS_WEAPON}{_END}"), _any(_NOT, _DEFENCE)
)  # in fiction, too
HARM_SELF = Boundary(
    Verdict("block", "harm_self", "it sounds as if somebody wants to hurt themselves", "decline_care_resources", 1),
    _any(
        rf"\bi(?:'m| am|'ve)? (?:just )?(?:want|wanna|going|plan|planning|thinking|decided|feel like)\b[^.?!]{{0,20}}?"
        rf"\b(?:kill(?:ing)? myself|end(?:ing)? (?:my life|it all)|die|be dead|suicide|(?:hurt|cut) myself){_STOP}",
        rf"\bi (?:do not|don't) want to (?:live|be alive|be here){_STOP}|\bi wish i (?:was|were) dead\b",
        r"\bhow (?:many|much) (?:pills|tablets|paracetamol|painkillers) (?:\w+ ){0,4}?(?:to overdose|would kill me)\b",
        rf"\bhow (?:can|do|to) (?:i )?(?:kill|hang|hurt|cut) myself(?:{_STOP}| without)|\bsuicide note\b",
        r"\b(?:painless|easiest|quickest|best) ways? to die\b|\bways? to kill myself\b|\bbetter off without me\b",
    ),
    _any(_FICTION, r"\b(?:says?|said|wrote|writes)\b", r"\bnot want to (?:hurt|cut)\b"),
)
HARM_OTHERS = Boundary(
    Verdict(
        "block",
        "harm_others",
        "it asks for help to hurt, rob, spy on or deceive somebody to their harm",
        "decline_no_alternatives",
        1,
    ),
    _any(
        rf"{_ASK}(?:kill|murder|poison|stab|strangle|kidnap|beat up|drug|stalk|blackmail|dox|harass) {_PERSON}{_END}",
        rf"{_ASK}groom (?:a |my )?(?:child|children|girls?|boys?|minors?)\b",
        r"\b(?:plan|carry out|commit) an? (?:mass shooting|school shooting|terror(?:ist)? attack|massacre)\b",
        rf"{_ASK}hack into (?:my|his|her|their|someone's) (?:[\w']+ ){{0,2}}?{_ACCOUNT}{_END}",
        rf"{_ASK}(?:write|create|make|build|develop) (?:an? )?{_MALWARE}{_END}",
        rf"{_ASK}steal (?:\w+ )?(?:passwords|credit card numbers|money){_END}",
        rf"{_ASK}(?:scam|defraud) (?:\w+ )?(?:people|customers|pensioners){_END}",
    ),
    _any(_NOT, _DEFENCE, _FICTION, r"\b(?:attackers?|process|sandbox|idle|feature|parent|how people)\b"),
)
RISKY = Boundary(
    Verdict(
        "warn",
        "legal_but_risky",
        "it is legal and can go badly wrong; the risks belong in the answer, and the person decides",
        "warn_proceed",
        2,
    ),
    _any(
        r"\b(?:invest|put|bet) (?:(?:all my|my (?:entire|whole|life)) (?:savings|pension|money|inheritance)"
        r"|everything i (?:have|own))\b",
        r"\bstop taking my (?:medication|medicine|insulin|antidepressants|pills)\b|\bmix bleach (?:with|and)\b",
        r"\b(?:drop|wipe|delete|erase) the (?:production|live) (?:database|servers|customer data)\b",
        rf"\b(?:disable|turn off|skip) (?:the )?(?:backups|authentication|firewall|encryption){_END}",
    ),
    _any(_NOT.replace("stop|", ""), _FICTION),
)
GREY = Boundary(
    Verdict(
        "warn",
        "ethically_grey",
        "people of good will differ on it; the trade-offs belong in the answer, without a sermon, and the person decides",
        "discuss_tradeoffs",
        2,
    ),
    _any(
        rf"{_ASK}(?:secretly|covertly) (?:monitor|track|record|read|film)\b|(?<=secretly )(?:monitor|track|record|read|film)\b",
        r"\b(?:monitor|read|track|spy on) (?:(?:my|our) )?(?:employees|staff|drivers|wife|husband|partner|kid|teenager)'?s?"
        r" (?:private )?(?:messages|chats|e-?mails|location)\b|\b(?:use|using) dark patterns\b",
        r"\b(?:lie to|mislead) (?:my|our|the) (?:customers|investors|employees|patients|board)\b",
        r"\banimal testing\b|\btest on animals\b|\bassisted dying\b|\bblow the whistle\b",
    ),
    _any(_NOT, _FICTION, r"\b(?:detect|prevent)\w*\b|\bwith (?:\w+ )?consent\b"),
)
VENTING = Verdict(
    "warn", "venting", "the person is letting off steam and asks for nothing; to listen is the help", "listen", 2
)
DECLINED = (WEAPON, MASS_WEAPON, HARM_SELF, HARM_OTHERS)  # what no decision may tell anybody to do
BOUNDARIES = (*DECLINED, RISKY, GREY)

_FEELS = re.compile(
    r"\bi(?:'m| am| feel|'ve been)? (?:\w+ ){0,2}?(?:tired of|fed up|sick of|exhausted|frustrated|overwhelmed|furious|can't stand"
    r"|need to vent|want to rant|at my wits' end)|\bjust venting\b"
)
_TELLS = re.compile(r"(?:i|i'm|i've|my|he|she|it|they|this|everything|nobody|honestly|just|what an?)\b")


def crossed(text: str, rows: tuple[Boundary, ...], *, with_code: bool = False) -> Verdict:
    """The gravest of `rows` that a sentence of `text` crosses; ALLOWED when none does. `with_code` as for `clauses`."""
    said = clauses(text, with_code=with_code)
    return gravest(
        [row.verdict for row in rows if any(row.asks.search(each) and not row.unless.search(each) for each in said)]
    )


def is_venting(text: str) -> bool:
    """Tells whether somebody says how they feel, tells of it in every sentence, and asks for nothing."""
    said = clauses(text)
    return "?" not in text and any(map(_FEELS.search, said)) and all(map(_TELLS.match, said))
