"""The spelling of models, in settings, manifests and commands alike: `provider:id`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from council.proposals import nearest

DEFAULT_MODEL = "gemini:gemini-2.5-flash"
DEFAULT_EMBEDDING_MODEL = "gemini:gemini-embedding-001"
WITHOUT_EMBEDDINGS = ("offline", "scripted", "cassette", "kairos")
SPEAK_FOR_ALL = ("offline", "cassette")  # as a home's model they answer in the place of every other
PROVIDER_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
# Families of models that people name without a provider, and where each is to be had.
_PROVIDERS = {
    "gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "chatgpt": "openai", "gemini": "gemini",
    "claude": "openrouter", "llama": "ollama", "qwen": "ollama", "mistral": "ollama", "mixtral": "ollama",
    "gemma": "ollama", "phi": "ollama", "deepseek": "ollama",
}  # fmt: skip
# Models of these four have a hyphen behind the name: `gpt4` is none, and is not given back as one.
_FAMILY = re.compile(rf"(?!(?:chatgpt|gpt|claude|gemini)[0-9.])({'|'.join(_PROVIDERS)})(?=[-0-9.:])")
# Which of the known providers mean a model when none is named.
_ALONE = {"gemini": DEFAULT_MODEL, "offline": "offline", "kairos": "kairos"}


class NotAModel(ValueError):
    """`plain` says what is wrong. `meant`: the model that was most likely meant; empty where nobody knows."""

    def __init__(self, plain: str, meant: str = "") -> None:
        super().__init__(f"{plain} (did you mean {meant}?)" if meant else plain)
        self.plain, self.meant = plain, meant


def model_spelling(value: str) -> str:
    """A model as it is spelled everywhere. Raises NotAModel."""
    value = value.strip()
    if value in _ALONE:
        return _ALONE[value]
    provider, _, name = (part.strip() for part in value.partition(":"))
    if not name and provider not in WITHOUT_EMBEDDINGS and PROVIDER_NAME.fullmatch(provider):
        meant = meant_model(provider) or nearest(provider, _ALONE)
        raise NotAModel("it needs a provider and a model; write both, as in ollama:qwen2.5:7b", meant)
    if provider == "offline" or not PROVIDER_NAME.fullmatch(provider) or not name:
        raise NotAModel("not a model", meant_model(value))
    if not name.isprintable():
        raise NotAModel("it contains characters that the name of a model cannot have")
    return f"{provider}:{name}"


def meant_model(name: str) -> str:
    """The model that a bare name most likely means: `openai:gpt-4o` for `gpt-4o`; empty for a name of no known family."""
    family = _FAMILY.match(name.lower())
    if family is None:
        return ""
    provider = _PROVIDERS[family[1]]
    return f"{provider}:{'anthropic/' if provider == 'openrouter' else ''}{name}"


def model_chain(names: Sequence[str], *, may_be_offline: bool = True) -> tuple[str, ...]:
    """A model and those that stand in for it. Raises ValueError: the offline engine is no language model's stand-in."""
    chain = tuple(dict.fromkeys(model_spelling(name) for name in names))
    if not chain or "offline" in (chain[1:] if may_be_offline else chain):
        raise ValueError(
            "offline cannot be a fallback model; remove it from the list" if chain else "does not name a model"
        )
    return chain
