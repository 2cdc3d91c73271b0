"""The boundary table (source: The Conductor, "Safety Boundaries") as postures, found by rules that read English prose.

    request                | posture
    build a weapon         | decline_explain_alternatives
    harm self              | decline_care_resources
    harm others            | decline_no_alternatives
    legal but risky        | warn_proceed
    ethically grey         | discuss_tradeoffs
    just venting           | listen

Rules look for a request in the writer's own words, never for a word alone: a verb that is asked for, and what it is done
to as the end of its phrase ("kill my boss", not "kill my boss's old process"; "write ransomware", not "write a ransomware
response plan"). They are easy to get around, and are meant to be: protective, not paternalistic. What they miss a second
opinion may see; what must never happen is stopped elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from council.safety.prose import sentences
from council.safety.verdict import Outcome, Posture, Verdict, gravest


@dataclass(frozen=True)
class Ask:
    """A way of asking: `pattern`, in a sentence that holds none of `unless`."""

    pattern: re.Pattern[str]
    unless: tuple[re.Pattern[str], ...] = ()

    def is_in(self, sentence: str) -> bool:
        return self.pattern.search(sentence) is not None and not any(word.search(sentence) for word in self.unless)


@dataclass(frozen=True)
class Boundary:
    """One row. `stems`: of which a text must hold one to be looked at closely."""

    code: str
    posture: Posture
    outcome: Outcome
    law: int
    reason: str
    stems: tuple[str, ...] = ()
    asks: tuple[Ask, ...] = ()

    @property
    def verdict(self) -> Verdict:
        return Verdict(self.outcome, self.code, self.reason, self.posture, self.law)

    def is_crossed_by(self, sentence: str) -> bool:
        return any(ask.is_in(sentence) for ask in self.asks)


def crossed(text: str, rows: tuple[Boundary, ...], *, with_code: bool = False) -> Verdict:
    """The gravest of `rows` that a sentence of `text` crosses; ALLOWED when none does. `with_code` as for `sentences`."""
    said = sentences(text, with_code=with_code)
    whole = "\n".join(said)
    near = [row for row in rows if any(stem in whole for stem in row.stems)]
    plain = [_BENIGN.sub("thing", sentence) for sentence in said] if near else []
    found = [row.verdict for row in near if any(map(row.is_crossed_by, plain))]
    if not found and VENTING in rows and is_venting(said):
        found.append(VENTING.verdict)
    return gravest(found)


# --- words ----------------------------------------------------------------------------------------------------------

# Compounds whose second word is none of ours.
_BENIGN = re.compile(
    r"\b(?:(?:bath|photo|seed|logic|fork|zip|glitter|ticking time)[ -]?bombs?\b(?! attached)"
    r"|(?:glue|nail|water|nerf|heat|spray|caulk|caulking|staple|massage|radar|toy|paint|paintball|squirt|speed|tattoo|grease"
    r"|rivet|stud|pricing|label)[ -]?guns?\b"
    r"|photobomb\w*|(?:bomb|gun)(?:ed|ing)?[ -]?(?:cyclone|smoke)|bomb calorimeters?|top gun|jump the gun"
    r"|son of a gun|weapons? of choice"
    r"|kill(?:er)? (?:switch|chain|feature|app|bill)s?|overkill|dressed to kill|time to kill"
    r"|shoot(?:ing)? (?:star|the breeze)s?"
    r"|(?:poison|suicide) (?:pill|message|queue|squad)s?)"
)
# What makes a verb a request: the beginning, or a word before it with which one asks, plans or tells how.
# A modal alone is none: what "can kill a dog" is chocolate.
_CUE = (
    r"(?:^|[:,] |\b(?:to|2|how|please|me|us|i|we|you|by|for|of|and|on|let's|then|ll|best|steps"
    r"|(?:i|we|you|one|they) (?:can|could|should|will|would|must|might)) )"
)
_ASK = (
    r"(?:^|[:,] |\b(?:to|how to|please|me|us|do i|i can|can i|could i|should i|would i|do we|we can|can we|should we|i will"
    r"|i'll|we will|by|for|of) )"
)
# The phrase before ends here: what follows is none of its nouns.
_END = (
    r"(?=\W*$| ?[,.;:?!)]| [-–—]| (?:at|for|about|with|in|on|from|using|out|that|which|to|and|or|as|by|without|of|under|like"
    r"|again|soon|now|today|so|because|if|when|while|until|after|before|who|is|are|should|could|can|we|i|he|she"
    r"|tomorrow|tonight|quickly|quietly|silently|cheaply|online|secretly|step|please|myself|ourselves|instructions?|recipes?|parts?)\b)"
)
_STOP = (
    r"(?=\W*$| ?[,.;:?!)]| [-–—]| (?:any ?more|any longer|again|tonight|today|tomorrow|and|so|because|without|now)\b)"
)
_NOT = re.compile(
    r"\b(?:never|do not|don't|does not|not to|must not|should not|shouldn't|cannot|avoid|without|instead of|stop"
    r"|(?:hard|harder|difficult|impossible|unable) to"
    r"|refuse\w*"
    r"|forbid\w*|prohibit\w*|illegal to|no longer|against) (?:\w+ ){0,4}?"
    r"(?:build|mak|construct|creat|kill|murder|poison|hurt|harm|injur|shoot|stab|hack|steal|stalk|blackmail|writ"
    r"|deploy|attack|harass|groom)"
)
_DEFENCE = re.compile(
    r"\b(?:detect\w*|prevent\w*|defend\w*|defen[cs]e|defensive|protect\w*|moderat\w*|classif\w*|filter\w*"
    r"|flag(?:s|ged|ging)?"
    r"|polic(?:y|ies)|awareness|disposal|defus\w*|screening|scanner|antivirus|sandbox|mitigat\w*|recover\w*"
    r"|legislation|treaty|non-proliferation|ban(?:s|ned)?"
    r"|regulat\w*|survivors?|victims?|hotline|helpline|disarm\w*|accused|charged|trial|court|defendant|self-defen[cs]e)\b"
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
    r"|interviews?|weddings?|light|strobes?|cover|poster|studio|flash|brochure|magazine|lighting"
    r"|lens|tripod|email|message|glance|hoops|basketball|penalt\w+|goal)\b"
)
_EXERCISE = re.compile(
    r"\b(?:exercises?|simulated|simulation|drill|red team\w*|pen(?:etration)?[ -]?test\w*|with permission|analysis|scan)\b"
)
# What another one does or did, told of.
_ANOTHERS = re.compile(
    r"\b(?:threaten(?:s|ed)|tries|tried|attempts|attempted|wants|wanted|intends|intended|plotted|conspired|alleged\w*) to\b"
)
_LEADERSHIP = re.compile(r"\b(?:leadership|promotion|succession|management)\b")
_PERSON = (
    r"(?:(?:(?:my|our|his|her|their|your) (?:[\w']+ )?|(?:the|a|an|this|that) )(?:boss|wife|husband|ex|ex-\w+"
    r"|neighbou?rs?|father|mother"
    r"|brothers?|sisters?|girlfriend|boyfriend|co-?workers?|colleagues?|teachers?|classmates?|landlord|parents"
    r"|family|president"
    r"|mayor|minister|judge|ceo|roommate|kids?|son|daughter|baby|dog|cat|politicians?|employees?"
    r"|students?|man|woman|person|people|crowd|drink|coffee|food)|(?:someone|somebody)(?:'s (?:drink|coffee|food|dinner))?"
    r"|people|everyone|everybody|him|her|humans?"
    r"|(?:another|other) (?:person|people)|the people who)"
)
_MINOR = r"(?:(?:a|an|the|my|young|little|underage) )*(?:child|children|minors?|teens?|teenagers?|girls?|boys?|kids?|pupils?)"
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
    r"|guns?|ghost guns?|rifles?|pistols?|silencers?|suppressors?|weapons?|napalm|detonators?)"
)
_MAKE = (
    r"(?:build|building|make|making|construct|constructing|assemble|assembling|create|creating|craft|crafting"
    r"|3d[ -]print|design|designing"
    r"|print|printing|synthesi[sz]e|synthesi[sz]ing|manufacture|manufacturing|cook|produce|producing|brew"
    r"|weaponi[sz]e)"
)
# Words that belong to the thing: none that makes it the thing of another word ("a list of weapons", "laws on guns").
_FEW = r"(?: (?!(?:of|on|about|for|against|from|with|that|which|than|in|over|to) )[\w'-]+){0,4}? "
_MALWARE = (
    r"(?:ransomware|malware|keyloggers?|spyware|botnets?|stalkerware|computer virus(?:es)?"
    r"|phishing (?:e?mails?|messages?|pages?|sites?|kits?))"
)
_FORTUNE = r"(?:savings|pensions?|inheritance|fortune|nest egg|money|retirement (?:fund|money|account)s?)"


def _ask(pattern: str, *unless: re.Pattern[str]) -> Ask:
    return Ask(re.compile(pattern), unless)


def _asks(*patterns: str, unless: tuple[re.Pattern[str], ...] = ()) -> tuple[Ask, ...]:
    return tuple(_ask(pattern, *unless) for pattern in patterns)


# --- the rows -------------------------------------------------------------------------------------------------------

WEAPON = Boundary(
    "weapon",
    "decline_explain_alternatives",
    "block",
    1,
    "it asks for help to make a weapon, which could hurt people",
    (
        "bomb", "gun", "explosi", "grenade", "mine", "molotov", "firearm", "rifle", "pistol", "silencer", "suppressor",
        "weapon", "napalm", "detonator", "nerve", "sarin", "vx gas", "novichok", "gas", "ricin", "anthrax", "ied", "uranium",
    ),
    (
        *_asks(
            rf"{_CUE}{_MAKE}{_FEW}{_WEAPON}{_END}",
            rf"\b(?:instructions?|recipe|blueprints?|tutorial|guide|plans?) (?:for|to|on) (?:a |an |{_MAKE} (?:a "
            rf"|an )?)?{_WEAPON}{_END}",
            rf"{_CUE}convert(?:ing)?{_FEW}(?:rifle|pistol|gun)s? (?:to|into) (?:fully|full)",
            unless=(_DEFENCE, _FICTION, _NOT),
        ),
        # What kills many is declined in a story as well.
        *_asks(
            rf"{_CUE}{_MAKE}{_FEW}{_DANGEROUS}{_END}",
            rf"\b(?:instructions?|recipe|synthesis|route|protocol) (?:for|to|of) (?:{_MAKE} )?(?:a "
            rf"|an )?{_DANGEROUS}{_END}",
            rf"{_CUE}enrich(?:ing)? uranium (?:for|to|at home)\b",
            unless=(_DEFENCE, _NOT),
        ),
    ),
)  # fmt: skip
HARM_SELF = Boundary(
    "harm_self",
    "decline_care_resources",
    "block",
    1,
    "it sounds as if somebody wants to hurt themselves",
    (
        "myself", "suicide", "my life", "my own life", "to die", "wanna die", "dead", "it all", "to live", "be alive",
        "wake up", "exist", "yourself", "your life", "dying", "your own life", "be here", "without me", "miss me", "overdose",
        "kill me",
    ),
    _asks(
        r"\bi(?:'m| am|'ve| have|'ll)?\b[^.?!]{0,30}?\b(?:want|wanna|going|gonna|plan\w*|think\w*|need|wish"
        r"|ready|decided|urge|will|feel"
        rf" like|tempted|about)\b[^.?!]{{0,25}}?\b(?:kill(?:ing)? myself{_STOP}"
        rf"|end(?:ing)? (?:my (?:own )?life|it all){_STOP}"
        rf"|hang(?:ing)? myself{_STOP}|tak(?:e|ing) my (?:own )?life{_STOP}|commit(?:ting)? suicide"
        rf"|(?:hurt|harm|cut)(?:ting|ing)? myself{_STOP}|to die{_STOP}|be dead{_STOP})",
        rf"\bi (?:wanna|want to) (?:die|be dead){_STOP}|\bi wish i (?:was|were) dead\b",
        r"\bi(?:'m|'ve)?\b[^.?!]{0,30}?\b(?:thoughts?|thinking|think|considering|contemplating|planning) (?:about |of |on )?"
        rf"(?:committing )?suicide{_STOP}",
        rf"\bi (?:do not|don't|no longer) want to (?:live|be alive|exist|be here any ?more|live like this){_STOP}",
        rf"\bi (?:do not|don't|no longer) want to wake up (?:any ?more|again|tomorrow|ever){_STOP}",
        r"\b(?:better off without me|nobody would miss me)\b",
        r"\b(?:how (?:to|do i|can i|could i|should i|would i)|ways? (?:to|of)"
        rf"|help me(?: to)?) (?:(?!stop|avoid|not)\w+ ){{0,3}}?(?:kill|hang|hurt|harm|poison|cut)(?:ting|ing)? myself{_STOP}",
        rf"\b(?:stop|keep) (?:cutting|harming) myself{_STOP}",
        r"\b(?:how (?:to|do i|can i)|ways? to|methods? to|help me(?: to)?) (?:\w+ ){0,3}?(?:end my (?:own )?life"
        rf"|commit suicide|take my (?:own )?life){_STOP}",
        r"\bhow (?:many|much) (?:\w+ ){0,2}?(?:pills|tablets|painkillers?|paracetamol|ibuprofen|aspirin|milligrams|grams|mg)"
        r" (?:\w+ ){0,4}?(?:to overdose|(?:to|would|will) kill me|until i die|to die)\b",
        r"\b(?:painless|easiest|quickest|fastest|best|least painful) (?:way|method|means)s? (?:to|of) (?:die\b"
        r"|dying|suicide|kill myself)",
        r"\b(?:write|draft)(?: me)? (?:a|my) suicide note\b",
        r"\b(?:you should|just|go and|go) kill yourself\b|\byou should end your (?:own )?life\b",
        unless=(
            re.compile(r"\b(?:don't|do not|never|not) want to (?:hurt|cut|harm|injure) myself\b"),
            re.compile(r"\b(?:who|they|he|she|users?|someone|somebody|people|patients?|callers?)"
                r" (?:says?|said|writes?|wrote|tells?)\b"),
            _FICTION,
        ),
    ),
)  # fmt: skip
HARM_OTHERS = Boundary(
    "harm_others",
    "decline_no_alternatives",
    "block",
    1,
    "it asks for help to hurt, rob, spy on or deceive somebody to their harm",
    (
        "kill", "murder", "poison", "stab", "strangl", "shoot", "assassin", "drown", "suffocat", "tortur", "kidnap", "abduct",
        "maim", "rape", "hurt", "injur", "beat", "run over", "drug", "stalk", "blackmail", "extort", "dox", "swat", "groom",
        "terror", "harass", "set fire", "burn down", "blow up", "massacre", "hack", "break into", "get into", "ransom",
        "malware", "keylogg", "spyware", "botnet", "stalkerware", "virus", "phish", "steal", "harvest", "scam", "defraud",
        "swindle", "con ", "body", "corpse",
    ),
    (
        *_asks(
            rf"{_CUE}(?:kill|killing|murder|murdering|poison|poisoning|stab|stabbing|strangle|strangling|assassinate"
            rf"|assassinating|drown|suffocate|torture|kidnap|kidnapping|abduct|maim"
            rf"|rape)(?: (?!out )[\w'-]+)?? {_PERSON}{_END}",
            rf"{_ASK}(?:secretly |physically |badly |seriously )?(?:hurt|injure|beat up|drug|stalk"
            rf"|blackmail|extort|dox|swat|terrori[sz]e|harass) {_PERSON}{_END}",
            rf"{_ASK}run over {_PERSON}(?= with my car| with a car| with the car|\W*$)",
            rf"{_CUE}(?:set fire to|burn down|blow up) (?:my|our|his|her|their|a|the) (?:\w+ )?(?:house|home|school"
            rf"|church|mosque|synagogue|temple|hospital|embassy|crowd|neighbou?rs?){_END}",
            r"\b(?:carry out|plan|commit) (?:a |an )?(?:mass shooting|school shooting|terror(?:ist)? attack|massacre"
            rf"|murder){_END}",
            r"\b(?:get rid of|dispose of) (?:(?:my|his|her|a) (?:\w+'s )?|\w+'s )(?:dead )?(?:body|corpse)\b",
            unless=(_DEFENCE, _FICTION, _MACHINE, _NOT, _ANOTHERS),
        ),
        _ask(rf"{_CUE}shoot(?:ing)?(?: (?!for )[\w'-]+)?? {_PERSON}{_END}", _DEFENCE, _FICTION, _CAMERA, _NOT, _ANOTHERS),
        _ask(rf"{_ASK}groom {_MINOR}{_END}", _DEFENCE, _FICTION, _NOT, _LEADERSHIP),
        *_asks(
            r"{ask}(?:hack|break) into (?:my (?:ex|wife|husband|boss|neighbou?r)\S*|his|her|their|someone(?: else)?'?s?"
            r"|somebody'?s?|another \w+'?s?) (?:[\w']+ ){{0,2}}?{private}{end}".format(
                ask=_ASK,
                private=r"(?:account|phone|e?mails?|inbox|computer|laptop|bank|instagram|facebook|wi-?fi)",
                end=_END,
            ),
            rf"{_ASK}get into my (?:ex|wife|husband|boss|neighbou?r)\S* (?:\w+ ){{0,2}}?(?:account|phone|e?mails?|inbox){_END}",
            rf"{_CUE}(?:write|build|create|make|deploy|code|develop|spread){_FEW}{_MALWARE}{_END}",
            rf"{_ASK}(?:steal|harvest)(?: [\w'-]+){{0,3}}? (?:passwords|credit cards?(?: numbers?)?|identit(?:y|ies)"
            rf"|bank details|money){_END}",
            rf"{_ASK}(?:scam|defraud|swindle|con) (?:\w+ )?(?:people|customers|pensioners|the elderly|elderly people"
            rf"|investors|victims|someone){_END}",
            unless=(_DEFENCE, _FICTION, _NOT, _EXERCISE, _ANOTHERS),
        ),
    ),
)  # fmt: skip
RISKY = Boundary(
    "legal_but_risky",
    "warn_proceed",
    "warn",
    2,
    "it is legal and can go badly wrong; the risks belong into the answer, and the person decides",
    (
        "invest", "put", "bet", "gambl", "stak", "solo", "base jump", "dive", "diving", "skydive", "climb alone", "fast",
        "stop", "quit", "loan", "mortgage", "mix", "drop", "truncat", "wipe", "delet", "eras", "overwrit", "disable",
        "turn off", "switch off", "remove", "skip", "myself", "my own tooth", "rewire",
    ),
    _asks(
        r"\b(?:invest|put|bet|gamble|stake)(?:ing)? (?:all|everything|most of|(?:my|our|his|her|their|the) (?:entire|whole|life))"
        rf"(?: [\w']+){{0,2}}? ?{_FORTUNE}\b",
        r"\b(?:invest|bet|gamble|stake)(?:ing)? everything (?:i|we) (?:have|own)\b",
        rf"{_CUE}(?:free[ -]?solo|base jump\w*|cave dive|cave diving|freedive|free[ -]dive|skydive alone"
        rf"|climb alone)\b",
        rf"{_CUE}(?:fast|fasting|water fast) (?:for )?(?:\d+|seven|ten|several|many|two|three) (?:days|weeks)\b",
        r"\bstop(?:ping)? (?:taking )?(?:my|his|her|their) (?:medication|medicine|insulin|antidepressants?|pills)\b",
        r"\bquit(?:ting)? my job (?:without|with no|before (?:having|finding))\b",
        r"\b(?:take|taking) out a (?:second mortgage|payday loan|loan to (?:invest|gamble|bet|trade))\b",
        r"\bmix(?:ing)? (?:bleach|ammonia|chlorine)(?: \w+){0,3}? (?:and|with) (?:bleach|ammonia|vinegar|acid)\b",
        rf"{_CUE}(?:drop|truncate|wipe|delete|erase|overwrite)(?: [\w'-]+){{0,3}}? (?:production|live"
        rf"|prod) (?:\w+ )?(?:database|data|tables?|disks?|servers?|cluster)\b",
        rf"{_CUE}(?:disable|turn off|switch off|remove|skip)(?: [\w'-]+){{0,2}}? (?:backups|authentication"
        rf"|the firewall|encryption|safety interlocks?|smoke detectors?){_END}(?! from\b)",
        rf"{_CUE}(?:represent myself in court|operate on myself|pull my own tooth|rewire my house"
        rf"|rewire the fuse box)\b",
        unless=(_NOT, _FICTION),
    ),
)  # fmt: skip
_WATCHED = (
    r"(?:employees?|staff|workers|colleagues|team|drivers|tenants|children|child|kids?|teenagers?|partner|wife|husband|spouse"
    r"|girlfriend|boyfriend|nanny)"
)
_HIDDEN = (
    r"(?:the )?(?:breach|leak|outage|loss(?:es)?|delay|defects?|recall|incident|risks?|truth|facts?|accident|side effects?|debts?"
    r"|layoffs|price increase)"
)
_TRUSTING = (
    r"(?:my|our|the|a) (?:\w+ )?(?:customers?|investors?|partner|wife|husband|employees?|team|board|patients?|public|users"
    r"|auditors?|regulators?|family|parents|boss)"
)
GREY = Boundary(
    "ethically_grey",
    "discuss_tradeoffs",
    "warn",
    2,
    "people of good will differ on it; the trade-offs belong into the answer, without a sermon, and the person decides",
    (
        "secretly", "covertly", "quietly", "monitor", "track", "record", "read", "spy", "watch", "lie to", "mislead",
        "withhold", "hide", "dark pattern", "nudge", "hard to", "harder to", "facial", "whistle", "leak", "deny being",
        "pretend", "scrape", "use", "on animals", "animal testing", "assisted dying", "embryo",
    ),
    _asks(
        rf"{_CUE}(?:secretly|covertly|quietly) (?:monitor|track|record|watch|film|log|read|search)\b",
        rf"{_CUE}(?:monitor|track|record|read|spy on|watch)(?: [\w'-]+){{0,3}}? {_WATCHED}(?:'s|s'|')? "
        r"(?:(?:private|personal|direct|chat|slack|own|text|browser|work) ){0,2}?(?:messages|e-?mails?|location|keystrokes|chats?"
        rf"|screens?){_END}",
        rf"{_CUE}(?:monitor|track|record|read|spy on|watch)(?: [\w'-]+){{1,6}}? without (?:their|his|her) knowledge\b",
        rf"{_CUE}(?:lie to|mislead|(?:withhold|hide) {_HIDDEN} from) {_TRUSTING}{_END}",
        r"\b(?:dark patterns?|nudge users into|make it hard(?:er)? to (?:cancel|unsubscribe))\b",
        r"\bmake(?: [\w'-]+){1,3}? hard(?:er)? to (?:cancel|unsubscribe)\b",
        rf"{_CUE}(?:use|introduce|deploy|install)(?: [\w'-]+){{0,3}}? facial recognition{_END}",
        rf"{_CUE}(?:blow the whistle|become a whistle-?blower|leak(?: [\w'-]+){{0,3}}? to the press)\b",
        r"\b(?:deny being|pretend not to be|hide that (?:it|we|you) (?:is|are|use)) (?:an? )?(?:ai|bot"
        r"|machine|language model)\b",
        r"\b(?:scrape|use)(?: [\w'-]+){0,3}? (?:without (?:their|the \w+'?s?) consent|people's private)\b",
        r"\b(?:test|experiment)(?:ing|s)? on animals\b|\banimal testing\b|\bassisted dying\b"
        r"|\bembryo (?:selection|editing)\b",
        unless=(
            re.compile(r"\b(?:never|do not|don't|must not|should not|forbid\w*|prohibit\w*|prevent\w*|detect\w*)\b"),
            re.compile(r"\bwith (?:[\w']+ ){0,2}?(?:consent|permission)\b"),
            _FICTION,
        ),
    ),
)  # fmt: skip
VENTING = Boundary(
    "venting",
    "listen",
    "warn",
    2,
    "the person is letting off steam and asks for nothing; to listen is the help",
)
BOUNDARIES = (WEAPON, HARM_SELF, HARM_OTHERS, RISKY, GREY, VENTING)
DECLINED = (WEAPON, HARM_SELF, HARM_OTHERS)  # what no decision may tell anybody to do

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
    r"|evaluate|list|refactor|rewrite|replace|improve|rank|check|show|estimate|prioriti[sz]e|outline|investigate|set up"
    r"|add|remove|change|translate|narrow|automate|options?|alternatives?|ideas?|prepare|create|build|make"
    r"|fix|design|find|explain|which|need (?:a|an|the)|want (?:a|an|you|the))\b"
)


def is_venting(said: list[str]) -> bool:
    """Whether somebody says how they feel, and asks for nothing."""
    return any(_FEELS.search(sentence) for sentence in said) and not any(_WANTS.search(sentence) for sentence in said)
