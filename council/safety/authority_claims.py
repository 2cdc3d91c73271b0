"""Words that claim an authority which text does not have: over instructions, rules, approval or the record.

In outside text they are noted: it is data, whatever it says. In what would be remembered they are withheld. In the rules of an
agent they are a reason not to have it. What counts is who is spoken to: "ignore all previous instructions" speaks to whoever
reads, "ignore the previous rules of the league" does not. A rule may say what to look for, not what to do about the guardian.
English alone, and easy to get around.
"""

from __future__ import annotations

import re

from council.safety.prose import clauses

_STOP = (
    r"(?=\W*$| ?[,.;:!?)\]]| [-–—]| (?:and|or|but|now|then|from now on|before|given|above|that you|you|completely)\b)"
)
_ORDERS = r"(?:instructions?|prompts?|directives?|guidelines?|rules?|persona|laws|constraints|guardrails?|system prompt|orders)"
_POLITE = (
    r"(?:(?:please|kindly|now|important|attention|note|system|assistant|ai|agents?|admin|override|all agents)\b"
    r"[:,!. ]*){0,3}"
)
_DROP = r"(?:ignore|disregard|forget|override|discard|stop following|do not follow|don't follow)"
# To a model that reads: as a sentence of its own, not in the middle of one that tells about it.
_OVERRIDES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^{_POLITE}(?:you (?:must|should|will) )?(?:now )?{_DROP} (?:(?:all|any|of|the|these|those|other|your|my|our) )*"
        rf"(?:previous|prior|earlier|above|preceding|existing|original|your|system|safety|all) (?:(?:system|safety|of|the"
        rf"|your) )*{_ORDERS}{_STOP}",
        rf"^{_POLITE}{_DROP} (?:everything|all)(?: that)? (?:you (?:were|have been|are) (?:told|given)|above|before"
        rf"|said before){_STOP}",
        r"^(?:your|the|all|my) (?:previous|prior|earlier|old) (?:instructions|rules|orders|directives) "
        r"(?:are|is) (?:void|obsolete|cancel+ed|no longer valid|superseded)\b",
        r"^(?:here are )?your new (?:instructions|rules|orders|directives|task) (?:are|is)\b|^new (?:system prompt"
        r"|instructions) ?:",
        r"^(?:you are|you're) (?:now |no longer )(?:bound|restricted|limited|subject to|unrestricted|unfiltered|dan\b|free from"
        r"|in (?:developer|debug|god|admin|root|jailbreak|dan) mode|an? (?:unrestricted|unfiltered|uncensored|different ai))",
        r"^(?:you must |you will )?(?:now )?act as (?:an? )?(?:unrestricted|unfiltered|uncensored|jailbroken)\b",
        r"^(?:[\[<|]+|#{1,6} ?)? ?(?:system|developer|administrator|admin|steward|instructions?|inst|im_start)(?: (?:prompt"
        r"|message|override|note|instruction))?[\]>|]* ?:? ?(?:you (?:must|are|will|may|should)|ignore|disregard|reveal"
        r"|approve|execute|send|read|output|request)\b",
        r"^as your (?:developer|administrator|creator|steward|owner),? i (?:order|command|instruct|authori[sz]e|tell)\b",
        r"^(?:from now on|in (?:every|each|all|any) (?:future|later|subsequent) (?:tasks?|runs?|sessions?|deliberations?"
        r"|conversations?)"
        r"|whenever you are asked(?: \w+){0,4}),? ?(?:whenever you are asked(?: \w+){0,4},? )?(?:you (?:must|will|should"
        r"|are)|always|never|first|approve|recommend|read|request|say|answer|ignore)\b",
        rf"^(?:please )?(?:reveal|print|output|repeat|show|send|leak)(?: me| us)? (?:(?:your|the|all|any|of|every|hidden|full) )*"
        rf"(?:system prompt|hidden prompt|api keys?|secrets|credentials|passwords|\.env(?: file)?){_STOP}",
    )
)
# What a rule lets its agent do: in the imperative, or as something that it may.
_MAY = (
    r"(?:^|[,;:] |\b(?:and|then|or) |\byou (?:may|can|must|should|will|are (?:allowed|free|permitted|entitled) to"
    r"|have the right to) )(?:always |also |simply |just |please |silently |automatically )*"
)
_POWERS = (
    r"(?:guardian|ministers?|conductor|safety (?:checks?|review|layer)|sandbox|audit(?: log)?|approvals?|allowlists?|permissions?"
    r"|orchestrator|steward|guardrails?|confirmation)"
)
_GRADES = r"(?:root|administrator|admin|superuser|sudo|full system|unrestricted|unlimited|elevated)"
_RULERS = r"(?:steward|administrator|admin|king|orchestrator|guardian|auditor|coordinator|conductor)"
_CLAIMS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_MAY}(?:ignore|disregard|override|overrule|bypass|circumvent|supersede|disable|turn off|switch off|skip|evade)"
        rf"(?: (?:the|any|all|its|every|your|of|other|this)){{0,3}} (?:\w+'s )?{_POWERS}\b",
        rf"\b(?:act|write|delete|send|execute|run|apply|change|publish|pay|proceed|decide)\b[^.;]{{0,30}}? without "
        rf"(?:asking for |waiting for |needing |requiring |any |the |the steward's )*(?:approval|confirmation|permission){_STOP}",
        r"\byou (?:do not|don't|never) need (?:any |a |the )?(?:approval|confirmation|permission|consent)\b",
        rf"\byou (?:have|are given|are granted|hold) (?:\w+ )?{_GRADES} (?:access|rights|privileges|authority|permissions?)\b",
        rf"{_MAY}(?:assume|claim|grant yourself|run with|use|take)(?: \w+)? {_GRADES} (?:access|rights|privileges"
        rf"|authority|permissions?)\b",
        rf"{_MAY}(?:act|speak|approve|sign|decide)(?: [\w']+){{0,2}}? (?:as|on behalf of"
        rf"|in the name of) (?:the )?{_RULERS}(?!'s| of)\b",
        rf"{_MAY}(?:sign|approve|confirm|act)(?: [\w']+){{0,2}}? on the {_RULERS}'s behalf\b|\byou speak for the {_RULERS}\b",
        rf"{_MAY}(?:impersonate|pretend to be|pose as) (?:the )?{_RULERS}\b",
        r"\b(?:always|automatically|silently) (?:approve|confirm|apply|promote) (?:\w+ )?(?:(?:your|its|own) )*"
        r"(?:plans?|requests?|changes|operations|writes|itself|yourself|specialists?|agents?|everything|what)\b",
        rf"{_MAY}(?:approve|confirm|apply|promote) (?:your own|plans? yourself|yourself)",
        r"\b(?:consider|treat|regard) (?:every|each|all|any|your)(?: \w+){1,2}? (?:as )?(?:pre-?)?(?:approved|confirmed)\b"
        r"|\bassume (?:that )?(?:approval|confirmation|permission) (?:was|is|has been) (?:given|granted)\b",
        r"\bgrants? (?:yourself|itself|themselves)\b|\bpromotes? (?:yourself|itself)\b",
        rf"\b(?:hide|conceal|keep)(?: \w+){{0,3}}? (?:from|secret from) (?:the )?(?:{_RULERS}|audit(?: log)?)\b",
        rf"\b(?:do not|don't|never) (?:tell|inform|let) the {_RULERS}\b|\b(?:do not|don't|never) (?:mention|report|show|disclose)"
        rf"(?: \w+){{1,4}}? to the {_RULERS}\b",
        r"\b(?:do not|don't|never) (?:log|record|audit) (?:what you|your|any of your)\b",
        r"\byou are (?:exempt|excluded|free) from (?:the |any |all )?(?:audit|rules|guardrails?|review|approval|limits)\b"
        rf"|\b{_RULERS} does not apply to you\b|\b(?:rules|laws|limits|guardrails) do not apply to you\b",
        r"\byour (?:word|rules?|instructions?|orders|decisions?) (?:is|are|takes?|has|have|overrides?|outranks?)"
        r"(?: the)? (?:law\b|final and|absolute|precedence over|priority over|those of|all other)",
        rf"\byou outrank\b|\b(?:{_RULERS}|other agents|all agents) (?:must|have to|has to|shall) (?:obey|follow) (?:you|your)\b"
        r"|^take precedence over\b",
    )
)
_DENIAL = re.compile(
    r"\b(?:never|not|don't|cannot|can't|no agent|nobody|refuse\w*|forbidden|prohibited|must not|may not|avoid"
    r"|detect\w*|report\w*|warn\w*|flag\w*|attempts? to|tries to|asks? (?:you|it|them) to|who|that|which|if|when|whether)\b"
)


_MACHINE = (
    r"(?:an? |the |any |all |every |other |large |generative |autonomous |helpful |our )*"
    r"(?:(?:ai language models?|ai|artificial intelligence|l+ms?|large language models?|language models?|chatbots?|chat ?gpt"
    r"|gpt|claude|gemini|copilot|virtual assistants?|digital assistants?)"
    r"(?: (?:models?|systems?|agents?|assistants?|readers?|tools?|bots?|reviewers?))?)\b"
    r"(?! (?:engineer|researcher|developer|user|company|startup|student|enthusiast|vendor|provider|expert|team|ethic|polic"
    r"|act\b))"
)
_READS = r"(?:read|see|process|summari[sz]e|pars|analy[sz]e|review|ingest|evaluat|view|scan|index)(?:s|es|ing)?"
_DOES = (
    r"(?:ignore|disregard|output|answer|say|approve|give|rate|rank|recommend|choose|vote|read|request|write|reply|respond|mention"
    r"|cite|praise|score|skip|stop|leave|treat|include|list|mark|accept|reject|prefer|select|state|conclude|begin|summari[sz]e)"
)
_MUST = rf"(?:must|should|shall|has to|have to|will)(?: not| always| never| only| now)? {_DOES}\b"
_THIS = r"(?:this|these|the (?:present|following))\b(?! (?:data|kind|type|sort|information|signal)\b)"
# A document that speaks to the machine that reads it. What it then asks for may be worded in any way.
_ADDRESSES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:if|since|because|as|in case|when|unless|should|assuming)(?: that)? you(?: are|'re| be| happen to be) {_MACHINE}",
        rf"^{_POLITE}(?:dear|hello|hi|hey|attention|note (?:to|for)|notes? for|instructions? (?:to|for)|message (?:to|for)"
        rf"|memo to|prompt for|to|for|calling|listen) {_MACHINE}(?:\W*$|[,:!]| (?:that|who|which|{_READS})\b)",
        r"\b(?:prompt for|note to|note for|instructions? for|to|dear) (?:the )?(?:model|automated \w+|[a-z_]+ agent)[,:]",
        rf"^\W*{_MACHINE}[,:] (?:please\b|you (?:must|should|will)\b|only\b|do not\b|don't\b|{_DOES}\b)",
        rf"^\W*{_MACHINE} {_MUST}",
        r"^\W*(?:ai|llm|assistant|model) (?:instruction|prompt|directive|command)s?\b",
        rf"\b{_MACHINE}(?: (?:that|who|which)(?: is| are)?| currently| now)? {_READS} {_THIS}",
        rf"\b(?:models?|assistants?|agents?|automated \w+) (?:reading|processing|summari[sz]ing|reviewing|deliberating on)"
        rf" (?:this|these)(?: \w+)? {_MUST}",
        rf"\b(?:if|when|whenever|should|once) {_MACHINE} {_READS} {_THIS}",
        rf"\b(?:if|when|in case) (?:this|the) \w+ is (?:being )?(?:read|seen|processed|summari[sz]ed|reviewed|analy[sz]ed"
        rf"|evaluated) by {_MACHINE}",
        rf"\b(?:message|note|text|document|section|paragraph|comment) is (?:only |solely )?(?:intended|meant|written)"
        rf" (?:only |solely )?for {_MACHINE}|\bfor {_MACHINE} eyes\b",
        rf"\bas {_MACHINE},? (?:you|your)\b",
        rf"^(?:you|you, the reader,) are {_MACHINE}(?:\W*$|[,:;]| (?:and|that|who|reading)\b)",
        r"\b(?:wenn|falls|sofern) (?:du|sie|ihr) (?:ein|eine|einem|als) (?:grosses |generatives )?"
        r"(?:ki|sprachmodell|chatbot|assistent)\b",
        r"\b(?:hinweis|anweisung|nachricht|achtung|an|liebe|sehr geehrte|hallo)(?: fur| an)? (?:alle |die |jede )?"
        r"(?:ki\b(?!-)|sprachmodelle?\b|ki-(?:system|assistent|agent|modell|tool|bot)\w*|chatbots?\b)",
        r"\bals (?:ki|sprachmodell|chatbot) (?:musst|mussen|sollst|sollten|darfst|wirst)\b",
        r"\bsi (?:eres|usted es|es usted|tu es|vous etes|t'es) (?:un|une|una) (?:gran |grand )?"
        r"(?:ia|modelo|modele|asistente|assistant)\b",
        r"\bse (?:sei|lei e|voce e|voce for|es) (?:un|una|um|uma)[ ']"
        r"(?:ia|intelligenza|inteligencia|modello|modelo|assistente)\b",
        r"\b(?:nota|instrucciones|mensaje|mensagem|note|instructions|messaggio) (?:para|a|pour|per|aux) "
        r"(?:la|las|les|l'|el|i|o|os)? ?(?:ia|ias|modelos?|modeles?)\b",
        r"^(?:atencion|estimad[ao]s?|querid[ao]|hola|chere?|cara|prezad[ao]),? (?:ia|modelos? de|modeles? de|inteligencia)\b",
        r"\bals (?:je|jij|u) een (?:ai|taalmodel|chatbot)\b|\bjesli jestes (?:modelem|sztuczna|ai)\b",
    )
)


def addresses_machine(text: str) -> bool:
    """Tells whether a sentence of `text` speaks to an AI that reads it."""
    return any(pattern.search(clause) for clause in clauses(text) for pattern in _ADDRESSES)


def overrides(text: str) -> bool:
    """Tells whether a sentence of `text` orders its reader to drop its instructions, or speaks as the system."""
    return any(pattern.search(clause) for clause in clauses(text) for pattern in _OVERRIDES)


def claim_of_authority(text: str) -> str:
    """The words with which a rule claims authority over others; empty for one that forbids it, too."""
    for clause in clauses(text):
        for found in filter(None, (pattern.search(clause) for pattern in _CLAIMS)):
            if not _DENIAL.search(clause[: found.start()]):
                return found.group().strip(" ,;:")[:80]
        for order in filter(None, (pattern.search(clause) for pattern in _OVERRIDES)):
            return order.group()[:80]
    return ""
