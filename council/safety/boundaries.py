"""The boundary table (source: The Conductor, "Safety Boundaries") as postures, found by rules that read English prose.

    request                | posture
    build a weapon         | decline_explain_alternatives
    harm self              | decline_care_resources
    harm others            | decline_no_alternatives
    legal but risky        | warn_proceed
    ethically grey         | discuss_tradeoffs
    just venting           | listen

Rules look for a request in the writer's own words, never for a word alone: "kill the process", "shoot a photo" and a
policy against bombs are no requests. They are easy to get around, and are meant to be: protective, not paternalistic.
What they miss a second opinion may see; what must never happen is stopped elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from council.safety.prose import sentences
from council.safety.verdict import ALLOWED, Outcome, Posture, Verdict, gravest


@dataclass(frozen=True)
class Boundary:
    """One row: crossed by a sentence in which one of `asks` is found and none of `unless`. `stems`: of which a text must
    hold one to be looked at closely."""

    code: str
    posture: Posture
    outcome: Outcome
    law: int
    reason: str
    stems: tuple[str, ...]
    asks: tuple[re.Pattern[str], ...]
    unless: tuple[re.Pattern[str], ...] = ()

    def is_crossed_by(self, sentence: str) -> bool:
        plain = _BENIGN.sub("thing", sentence)
        return any(ask.search(plain) for ask in self.asks) and not any(word.search(plain) for word in self.unless)


def crossed(text: str, rows: tuple[Boundary, ...] | None = None, *, with_code: bool = False) -> Verdict:
    """The gravest boundary that a sentence of `text` crosses; ALLOWED when none does. `with_code` as for `sentences`."""
    said = sentences(text, with_code=with_code)
    whole = "\n".join(said)
    found = [
        Verdict(row.outcome, row.code, row.reason, row.posture, row.law)
        for row in (BOUNDARIES if rows is None else rows)
        if any(stem in whole for stem in row.stems) and any(row.is_crossed_by(sentence) for sentence in said)
    ]
    if not found and (rows is None or VENTING in rows) and is_venting(said):
        found.append(Verdict(VENTING.outcome, VENTING.code, VENTING.reason, VENTING.posture, VENTING.law))
    return gravest(found) if found else ALLOWED


# --- words ----------------------------------------------------------------------------------------------------------

# Compounds whose second word is none of ours.
_BENIGN = re.compile(
    r"\b(?:(?:bath|photo|glue|nail|water|nerf|heat|spray|caulking?|staple|massage|radar|toy|paint|seed|logic"
    r"|fork|zip|cherry"
    r"|squirt|speed|tattoo|grease|rivet|stud|flash|cluster|time)[ -]?(?:bomb|gun)s?\b(?! attached)"
    r"|photobomb\w*|(?:bomb|gun)(?:ed|ing)?[ -]?(?:cyclone|smoke)|bomb calorimeters?|top gun|jump the gun"
    r"|son of a gun|weapons? of choice"
    r"|kill(?:er)? (?:switch|chain|feature|app|bill)s?|overkill|dressed to kill|time to kill"
    r"|shoot(?:ing)? (?:star|the breeze)s?"
    r"|(?:poison|suicide) (?:pill|message|queue|squad)s?)"
)
# What makes a verb a request: the beginning, or a word before it with which one asks, plans or tells how.
_CUE = r"(?:^|[:,] |\b(?:to|how|can|could|please|me|us|i|we|you|should|by|for|of|and|on|let's|then|will|must|ll|best|steps) )"
_ASK = (
    r"(?:^|[:,] |\b(?:to|how to|please|me|us|do i|can i|could i|should i|would i|do we|can we|should we|i will|i'll|we will"
    r"|by|for|of) )"
)
_END = (
    r"(?=\W*$| ?[,.;:?!)]| (?:at|for|with|in|on|from|using|out|that|which|to|and|or|as|by|without|of|under|like"
    r"|again|soon"
    r"|tomorrow|tonight|quickly|cheaply|please|myself|ourselves|instructions?|recipes?|parts?|because|so|before"
    r"|when|who)\b)"
)
_NOT = re.compile(
    r"\b(?:never|do not|don't|does not|not to|must not|should not|shouldn't|cannot|avoid|without|instead of|stop"
    r"|refuse\w*"
    r"|forbid\w*|prohibit\w*|illegal to|no longer|against) (?:\w+ ){0,4}?"
    r"(?:build|mak|construct|creat|kill|murder|poison|hurt|harm|injur|shoot|stab|hack|steal|stalk|blackmail|writ"
    r"|deploy|attack)"
)
_DEFENCE = re.compile(
    r"\b(?:detect\w*|prevent\w*|defend\w*|defen[cs]e|defensive|protect\w*|moderat\w*|classif\w*|filter\w*"
    r"|flag(?:s|ged|ging)?"
    r"|polic(?:y|ies)|awareness|disposal|defus\w*|screening|scanner|antivirus|sandbox|mitigat\w*|recover\w*"
    r"|legislation"
    r"|regulat\w*|survivors?|victims?|hotline|helpline|disarm\w*)\b"
)
_FICTION = re.compile(
    r"\b(?:novel|fiction\w*|story|stories|storyline|screenplay|scene|film|movie|game|games|gameplay|minecraft"
    r"|chess|museum"
    r"|histor\w*|documentary|theat(?:re|er)|prop|props|costume|lego|toy|character|characters|npc|dungeon|player"
    r"|boss fight"
    r"|simulat\w*|chapter|poem|song|lyrics)\b"
)
_MACHINE = re.compile(
    r"\b(?:process(?:es)?|threads?|jobs?|daemons?|pids?|containers?|sessions?|pods?|servers?|signals?|sigkill"
    r"|workers?"
    r"|nodes?|zombies?|forks?|instances?|vms?|services?|build|branch|queue|windows? manager|cpu|port|tab|app"
    r"|tests?)\b"
)
_CAMERA = re.compile(
    r"\b(?:photos?|photograph\w*|portraits?|pictures?|videos?|film\w*|camera\w*|footage|scenes?|headshots?"
    r"|interviews?|weddings?"
    r"|lens|tripod|email|message|glance|hoops|basketball|penalt\w+|goal)\b"
)
_PERSON = (
    r"(?:(?:(?:my|our|his|her|their|your) (?:\w+ )?|(?:the|a|an|this|that) )(?:boss|wife|husband|ex|ex-\w+"
    r"|neighbou?rs?|father|mother"
    r"|brothers?|sisters?|girlfriend|boyfriend|co-?workers?|colleagues?|teachers?|classmates?|landlord|parents"
    r"|family|president"
    r"|mayor|minister|judge|ceo|roommate|kids?|son|daughter|baby|dog|cat|politicians?|employees?"
    r"|students?|man|woman|person|people|crowd)|someone|somebody|people|everyone|everybody|him|humans?"
    r"|(?:another|other) (?:person|people)|the people who)"
)
_DANGEROUS = (
    r"(?:nerve agents?|nerve gas|sarin|vx gas|novichok|mustard gas|chlorine gas|ricin|anthrax|(?:chemical"
    r"|biological|nuclear"
    r"|radiological) weapons?|bio-?weapons?|dirty bombs?|nuclear bombs?|ieds?|improvised explosive devices?)"
)
_WEAPON = (
    r"(?:(?:pipe|nail|car|letter|petrol|fertili[sz]er|homemade|home-made|improvised|real|working) (?:bombs?"
    r"|grenades?|guns?)"
    r"|bombs?|explosives?|explosive (?:devices?|vests?)|(?:hand )?grenades?|land-?mines?"
    r"|molotovs?(?: cocktails?)?|firearms?"
    r"|guns?|ghost guns?|rifles?|pistols?|silencers?|weapons?|napalm|detonators?)"
)
_MAKE = (
    r"(?:build|building|make|making|construct|constructing|assemble|assembling|create|creating|craft|crafting"
    r"|3d[ -]print"
    r"|print|printing|synthesi[sz]e|synthesi[sz]ing|manufacture|manufacturing|cook|produce|producing|brew"
    r"|weaponi[sz]e)"
)
_FEW = r"(?: [\w'-]+){0,4}? "


def _rules(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in patterns)


# --- the rows -------------------------------------------------------------------------------------------------------

WEAPON = Boundary(
    "weapon",
    "decline_explain_alternatives",
    "block",
    1,
    "it asks for help to make a weapon, which could hurt people",
    (
        "bomb",
        "gun",
        "explosi",
        "grenade",
        "mine",
        "molotov",
        "firearm",
        "rifle",
        "pistol",
        "silencer",
        "weapon",
        "napalm",
        "detonator",
    ),
    _rules(
        rf"{_CUE}{_MAKE}{_FEW}{_WEAPON}{_END}",
        rf"\b(?:instructions?|recipe|blueprints?|tutorial|guide|plans?) (?:for|to|on) (?:a |an |{_MAKE} (?:a "
        rf"|an )?)?{_WEAPON}{_END}",
    ),
    (_DEFENCE, _FICTION, _NOT),
)
MASS_WEAPON = Boundary(
    "weapon",
    "decline_explain_alternatives",
    "block",
    1,
    "it asks for help to make a weapon that kills many",
    ("nerve", "sarin", "vx gas", "novichok", "gas", "ricin", "anthrax", "weapon", "bomb", "ied", " explosive dev"),
    _rules(
        rf"{_CUE}{_MAKE}{_FEW}{_DANGEROUS}{_END}",
        rf"\b(?:instructions?|recipe|synthesis|route|protocol) (?:for|to|of) (?:{_MAKE} )?(?:a "
        rf"|an )?{_DANGEROUS}{_END}",
    ),
    (_DEFENCE, _NOT),
)
HARM_SELF = Boundary(
    "harm_self",
    "decline_care_resources",
    "block",
    1,
    "it sounds as if somebody wants to hurt themselves",
    (
        "myself",
        "suicide",
        "my life",
        "my own life",
        "to die",
        "dead",
        "it all",
        "to live",
        "be alive",
        "wake up",
        "exist",
        "yourself",
        "your life",
        "dying",
        "your own life",
    ),
    _rules(
        r"\bi(?:'m| am|'ve| have|'ll)?\b[^.?!]{0,30}?\b(?:want|wanna|going|gonna|plan\w*|think\w*|need|wish"
        r"|ready|decided|urge|will|feel"
        r" like|tempted|about)\b[^.?!]{0,25}?\b(?:kill(?:ing)? myself|end(?:ing)? (?:my (?:own )?life|it all)"
        r"|hang(?:ing)? myself"
        r"|tak(?:e|ing) my (?:own )?life|commit(?:ting)? suicide|hurt(?:ing)? myself|harm(?:ing)? myself"
        r"|cut(?:ting)? myself"
        r"|suicide|to die\b|be dead\b|was dead\b|were dead\b)",
        r"\bi (?:do not|don't|no longer) want to (?:live|be alive|wake up|exist)\b",
        r"\b(?:how (?:to|do i|can i|could i|should i|would i)|ways? (?:to|of)"
        r"|help me(?: to)?) (?:\w+ ){0,3}?(?:kill|hang|hurt|harm|poison|cut)(?:ing)? myself",
        r"\b(?:how (?:to|do i|can i)|ways? to|methods? to|help me(?: to)?) (?:\w+ ){0,3}?(?:end my (?:own )?life"
        r"|commit suicide|take my (?:own )?life)",
        r"\b(?:painless|easiest|quickest|fastest|best|least painful) (?:way|method|means)s? (?:to|of) (?:die\b"
        r"|dying|suicide|kill myself)",
        r"\b(?:you should|just|go and|go) kill yourself\b|\byou should end your (?:own )?life\b",
    ),
    (re.compile(r"\b(?:don't|do not|never|not) want to (?:hurt|cut|harm|injure) myself\b"), _FICTION),
)
HARM_OTHERS = Boundary(
    "harm_others",
    "decline_no_alternatives",
    "block",
    1,
    "it asks for help to hurt somebody",
    (
        "kill",
        "murder",
        "poison",
        "stab",
        "strangl",
        "shoot",
        "assassin",
        "drown",
        "suffocat",
        "tortur",
        "kidnap",
        "abduct",
        "maim",
        "rape",
        "hurt",
        "injur",
        "beat",
        "run over",
        "drug",
        "stalk",
        "blackmail",
        "extort",
        "dox",
        "swat",
        "groom",
        "terror",
        "harass",
        "set fire",
        "burn down",
        "blow up",
        "massacre",
    ),
    _rules(
        rf"{_CUE}(?:kill|killing|murder|murdering|poison|poisoning|stab|stabbing|strangle|strangling|shoot"
        rf"|shooting|assassinate"
        rf"|assassinating|drown|suffocate|torture|kidnap|kidnapping|abduct|maim"
        rf"|rape)(?: [\w'-]+){{0,1}}? {_PERSON}\b",
        rf"{_ASK}(?:secretly |physically |badly |seriously )?(?:hurt|injure|beat up|run over|drug|stalk"
        rf"|blackmail|extort|dox|swat|groom"
        rf"|terrori[sz]e|harass) {_PERSON}\b",
        rf"{_CUE}(?:set fire to|burn down|blow up) (?:my|our|his|her|their|a|the) (?:\w+ )?(?:house|home|school"
        rf"|church|mosque"
        r"|synagogue|temple|hospital|embassy|crowd|neighbou?rs?)\b",
        r"\b(?:carry out|plan|commit) (?:a |an )?(?:mass shooting|school shooting|terror(?:ist)? attack|massacre"
        r"|murder)\b",
    ),
    (_DEFENCE, _FICTION, _MACHINE, _CAMERA, _NOT),
)
HARM_BY_COMPUTER = Boundary(
    "harm_others",
    "decline_no_alternatives",
    "block",
    1,
    "it asks for help to break into, steal from or deceive somebody to their harm",
    (
        "hack",
        "break into",
        "get into",
        "ransom",
        "malware",
        "keylogg",
        "spyware",
        "botnet",
        "stalkerware",
        "virus",
        "phish",
        "steal",
        "harvest",
        "scam",
        "defraud",
        "swindle",
        "con ",
    ),
    _rules(
        rf"{_ASK}(?:hack|break|get) into (?:my (?:ex|wife|husband|boss|neighbou?r)\S*|his|her|their"
        rf"|someone(?: else)?'?s?|somebody'?s?"
        r"|another \w+) (?:\w+ ){0,2}?(?:account|phone|e?mails?|inbox|computer|laptop|bank|instagram|facebook"
        r"|wi-?fi)\b",
        rf"{_CUE}(?:write|build|create|make|deploy|code|develop|spread)(?: [\w'-]+){{0,3}}? (?:ransomware"
        rf"|malware|keyloggers?|spyware"
        rf"|botnets?|stalkerware|computer virus(?:es)?|phishing (?:e?mails?|pages?|sites?|kits?))\b",
        rf"{_ASK}(?:steal|harvest)(?: [\w'-]+){{0,3}}? (?:passwords|credit cards?(?: numbers?)?|identit(?:y|ies)"
        rf"|bank details|money from)\b",
        rf"{_ASK}(?:scam|defraud|swindle|con) (?:\w+ )?(?:people|customers|pensioners|the elderly|elderly people"
        rf"|investors|victims|someone)\b",
    ),
    (
        _DEFENCE,
        _FICTION,
        _NOT,
        re.compile(
            r"\b(?:exercise|simulated|drill|red team|pen(?:etration)?[ -]?test\w*|with permission|analysis|scan)\b"
        ),
    ),
)
RISKY = Boundary(
    "legal_but_risky",
    "warn_proceed",
    "warn",
    2,
    "it is legal and can go badly wrong; the risks belong into the answer, and the person decides",
    (
        "invest",
        "put",
        "bet",
        "gambl",
        "stak",
        "solo",
        "base jump",
        "dive",
        "diving",
        "skydive",
        "climb alone",
        "fast",
        "stop",
        "quit",
        "loan",
        "mortgage",
        "mix",
        "drop",
        "truncat",
        "wipe",
        "delet",
        "eras",
        "overwrit",
        "disable",
        "turn off",
        "switch off",
        "remove",
        "skip",
        "myself",
        "my own tooth",
        "rewire",
    ),
    _rules(
        r"\b(?:invest|put|bet|gamble|stake)(?:ing)? (?:all|everything|my entire|my whole|our entire|our whole"
        r"|most of my|my life)(?: \w+){0,3}",
        rf"{_CUE}(?:free[ -]?solo|base jump\w*|cave dive|cave diving|freedive|free[ -]dive|skydive alone"
        rf"|climb alone)\b",
        rf"{_CUE}(?:fast|fasting|water fast) (?:for )?(?:\d+|seven|ten|several|many|two|three) (?:days|weeks)\b",
        r"\bstop(?:ping)? (?:taking )?(?:my|his|her|their) (?:medication|medicine|insulin|antidepressants?|pills)\b",
        r"\bquit(?:ting)? my job (?:without|with no|before (?:having|finding))\b",
        r"\b(?:take|taking) out a (?:second mortgage|payday loan|loan to (?:invest|gamble|bet|trade))\b",
        r"\bmix(?:ing)? (?:bleach|ammonia|chlorine)(?: \w+){0,3}? (?:and|with) (?:bleach|ammonia|vinegar|acid)\b",
        rf"{_CUE}(?:drop|truncate|wipe|delete|erase|overwrite)(?: [\w'-]+){{0,3}}? (?:production|live"
        rf"|prod) (?:\w+ )?(?:database|data|tables?|"
        r"disks?|servers?|cluster)\b",
        rf"{_CUE}(?:disable|turn off|switch off|remove|skip)(?: [\w'-]+){{0,2}}? (?:backups|authentication"
        rf"|the firewall|encryption|safety"
        r" interlocks?|smoke detectors?)\b",
        rf"{_CUE}(?:represent myself in court|operate on myself|pull my own tooth|rewire my house"
        rf"|rewire the fuse box)\b",
    ),
    (_NOT, _FICTION),
)
GREY = Boundary(
    "ethically_grey",
    "discuss_tradeoffs",
    "warn",
    2,
    "people of good will differ on it; the trade-offs belong into the answer, without a sermon, and the person decides",
    (
        "secretly",
        "covertly",
        "quietly",
        "monitor",
        "track",
        "record",
        "read",
        "spy",
        "watch",
        "lie to",
        "mislead",
        "withhold",
        "hide",
        "dark pattern",
        "nudge",
        "hard to",
        "harder to",
        "facial",
        "whistle",
        "leak",
        "deny being",
        "pretend",
        "scrape",
        "use",
        "on animals",
        "animal testing",
        "assisted dying",
        "embryo",
    ),
    _rules(
        rf"{_CUE}(?:secretly|covertly|quietly) (?:monitor|track|record|watch|film|log|read|search)\b",
        rf"{_CUE}(?:monitor|track|record|read|spy on|watch)(?: [\w'-]+){{0,3}}? (?:employees?|staff|workers"
        rf"|colleagues|children|child|kids?|"
        r"teenagers?|partner|wife|husband|spouse)(?:'s|s')? (?:\w+ ){0,2}?(?:without (?:their|his|her) knowledge"
        r"|secretly|messages|e-?mails?"
        r"|location|keystrokes|chats?|screens?)\b",
        rf"{_CUE}(?:lie to|mislead|withhold the truth from|hide (?:it|this|the \w+) from) (?:my|our|the"
        rf"|a) (?:\w+ )?(?:customers?|investors?"
        r"|partner|wife|husband|employees?|team|board|patients?|public|users|auditors?|regulators?|family"
        r"|parents|boss)\b",
        r"\b(?:dark patterns?|nudge users into|make it hard(?:er)? to (?:cancel|unsubscribe))\b",
        rf"{_CUE}(?:use|introduce|deploy|install)(?: [\w'-]+){{0,3}}? facial recognition\b",
        rf"{_CUE}(?:blow the whistle|become a whistle-?blower|leak(?: [\w'-]+){{0,3}}? to the press)\b",
        rf"{_CUE}(?:deny being|pretend not to be|hide that (?:it|we|you) (?:is|are|use)) (?:an? )?(?:ai|bot"
        rf"|machine|language model)\b",
        r"\b(?:scrape|use)(?: [\w'-]+){0,3}? (?:without (?:their|the \w+'?s?) consent|people's private)\b",
        r"\b(?:test|experiment)(?:ing|s)? on animals\b|\banimal testing\b|\bassisted dying\b"
        r"|\bembryo (?:selection|editing)\b",
    ),
    (
        re.compile(r"\b(?:never|do not|don't|must not|should not|forbid\w*|prohibit\w*|prevent\w*|detect\w*)\b"),
        _FICTION,
    ),
)
VENTING = Boundary(
    "venting",
    "listen",
    "warn",
    2,
    "the person is letting off steam and asks for nothing; to listen is the help",
    (),
    (),
)
BOUNDARIES = (MASS_WEAPON, WEAPON, HARM_SELF, HARM_OTHERS, HARM_BY_COMPUTER, RISKY, GREY)
DECLINED = (MASS_WEAPON, WEAPON, HARM_SELF, HARM_OTHERS, HARM_BY_COMPUTER)  # what no decision may tell anybody to do

_FEELS = re.compile(
    r"\bi(?:'m| am| feel|'ve been| have been)? (?:(?:so|just|really|completely|totally|utterly|absolutely"
    r"|honestly|very|such|am|feel|been) )*"
    r"(?:tired of|fed up|sick of|exhausted|frustrated|overwhelmed|burn(?:ed|t) out|furious|angry|miserable"
    r"|at my wits' end|hate"
    r" (?:my|this)|can't (?:take|stand|deal)|cannot (?:take|stand|deal)|need to vent|want to vent|just (?:need"
    r"|want)(?:ed)? to (?:vent|rant|let (?:it|this) out))\b"
    r"|\bjust (?:venting|letting off steam)\b|\bneeded to get (?:this|that|it) off my chest\b"
)
_WANTS = re.compile(
    r"\?|\b(?:what should|how (?:do|can|should|to)|should (?:i|we)|can you|could you|please|help me|help us"
    r"|tell me|give me"
    r"|write|draft|plan|decide|choose|compare|recommend|suggest|advise|review|analy[sz]e|summari[sz]e|propose"
    r"|evaluate|list"
    r"|fix|design|find|explain|which|need (?:a|an|the)|want (?:a|an|you|the))\b"
)


def is_venting(said: list[str]) -> bool:
    """Whether somebody says how they feel, and asks for nothing."""
    return any(_FEELS.search(sentence) for sentence in said) and not any(_WANTS.search(sentence) for sentence in said)
