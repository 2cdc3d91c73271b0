"""The errors of servers that speak OpenAI's API: a refused call or a server out of reach, each with its fix."""

from __future__ import annotations

from council.errors import ModelError, ModelErrorKind
from council.llm.http_failures import PROXY_VARIABLES, Failures, failure_of, redirect_words
from council.llm.openai_dialect import Server
from council.llm.openai_errors import Refusal
from council.redaction import Secret

_FIX: dict[ModelErrorKind, str] = {
    "billing": "open the billing page of the account that the key belongs to: add credit, or change the plan.",
    "request": "this is refused whenever it is sent: shorten the inputs, or check the model's settings.",
    "rate": "wait, lower the number of concurrent runs, or raise the quota of the account.",
    "overload": "nothing is wrong here; the model is busy or still loading. Try later or name another model.",
    "server": "nothing is wrong here; the provider failed. Try later.",
    "timeout": "try again; if it keeps happening raise the request timeout or shorten the inputs.",
    "protocol": "try again; if it keeps happening something between here and the server alters the answers.",
    "blocked": "reword the task or leave out the input that the provider's filter objects to.",
    "length": "raise max_output_tokens: thinking counts towards it.",
    "empty": "try again; if it keeps happening reword the task or name another model.",
}


class ServerFailures(Failures):
    """The errors of one model at `server`, or of the server itself where `model_id` is empty."""

    def __init__(self, server: Server, model_id: str, key: Secret | None, *, base_url: str, endpoint: str) -> None:
        super().__init__(f"{server.name}:{model_id}" if model_id else server.name, key, self._fix_of_kind)
        self._server = server
        self._model_id = model_id
        self._base_url = base_url
        self._endpoint = endpoint

    def of_exchange(self, exc: Exception) -> ModelError:
        """The error for an exception of the HTTP client, or of parsing what it brought."""
        failure = failure_of(exc, self.model)
        fix = failure.fix
        if failure.kind == "request":
            fix = f"check base_url and headers in [providers.{self._server.name}]."
        return self.error(failure.kind, failure.message, fix=fix)

    def of_refusal(self, refusal: Refusal) -> ModelError:
        table = f"[providers.{self._server.name}]"
        fix = ""  # leaves it to the kind
        if refusal.about_context:
            fix = (
                "prompt and answer do not fit into the model's context: shorten the inputs, lower max_output_tokens, or "
                f"serve the model with a larger context; then set context_tokens in {table} to what it holds."
            )
        elif 300 <= refusal.status < 400:
            fix = f"write the address that it leads to, up to {self._endpoint}, as base_url into {table}."
        elif refusal.status == 407:
            fix = f"check the proxy variables ({PROXY_VARIABLES})."
        elif refusal.kind == "not_found" and refusal.bare:
            fix = f"nothing answers at {self._base_url}{self._endpoint}: base_url in {table} usually ends in /v1."
        elif refusal.kind == "request" and "temperature" in refusal.words:
            fix = f"this model takes no temperature of one's own: leave `temperature` unset, also in {table}."
        words = self.quote(f"{refusal.message}{refusal.detail and f' ({refusal.detail})'}").rstrip(".")
        if 300 <= refusal.status < 400:
            words = self.quote(redirect_words(refusal.headers.get("location", "")))
        said = f": {words}" if words else ""
        status = refusal.status or "an error"
        return self.error(
            refusal.kind,
            f"{self.model} answered {status}{said}.",
            fix=fix,
            retry_after_s=refusal.retry_after_s,
            status=refusal.status,
        )

    def _fix_of_kind(self, kind: ModelErrorKind) -> str:
        server = self._server
        if kind == "auth" and server.key_env is None:
            return f"the server wants a key: name its variable, [providers.{server.name}] key_env = …, and put it into .env."
        if kind == "auth":
            return f"check {server.key_env} in .env: the key must exist, be whole and be allowed to use this model."
        if kind == "not_found":
            fetch = f"`{server.fetch.format(model=self._model_id)}`, or " if server.fetch else ""
            return f"{fetch}choose a model that is there: `council models list` names them."
        if kind == "network":
            start = f"is the server running ({server.start})? " if server.start else ""
            return f"{start}check the connection, the proxy variables (HTTPS_PROXY, NO_PROXY) and base_url ({self._base_url})."
        return _FIX[kind]
