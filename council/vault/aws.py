"""The vault in AWS Secrets Manager, behind the same interface (extra `aws`). Region, endpoint and identity are boto3's own
configuration. AWS seals and rotates; whose a secret is, and when it ends, stands in tags. Audited here all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from council.audit.log import AuditLog
from council.errors import ConfigError, CredentialRefused
from council.ids import STEWARD, Clock, timestamp
from council.redaction import Secret
from council.vault import contract
from council.vault.sealing import CredentialPlace

_TIMEOUT_S = 10
_ATTEMPTS = 3
_MAX_PAGES = 1_000
_USER, _ROLE, _KEY, _VERSION, _EXPIRES = (f"council:{word}" for word in ("user", "role", "key", "version", "expires"))


class AwsVault(contract.Vault):
    """See `council.vault.contract.Vault`. `prefix` begins the name of every secret here: several homes may share an account."""

    def __init__(
        self, audit: AuditLog, prefix: str, clock: Clock, register: Callable[[Secret], None] = lambda secret: None
    ) -> None:
        """Raises ConfigError: boto3 is not installed, or knows no region."""
        self._audit = audit
        self._prefix = prefix
        self._clock = clock
        self._register = register
        self._client = _client()

    def set_all(self, given: Sequence[contract.NewCredential]) -> Sequence[contract.StoredCredential]:
        """See `Vault.set_all`; here one by one, in their order."""
        for one in given:
            contract.require_storable(one)
            self._register(one.value)
        entries = []
        for one in given:
            place, name, value = one.place, self._name(one.place), one.value.reveal()
            before = self._found(place)
            version = before.version + 1 if before is not None else 1
            entry = contract.StoredCredential(place, version, timestamp(self._clock.now()), one.expires_at, "aws")
            with self._audit.transaction() as transaction:  # first: AWS is in no transaction of ours
                transaction.record(
                    "effect", contract.CREDENTIAL_SET, STEWARD.id, contract.told_of(entry) | {"in": "aws"}
                )
            told = {_USER: place.user, _ROLE: place.role, _KEY: place.key}
            told |= {_VERSION: str(version), _EXPIRES: one.expires_at}
            tags = [{"Key": key, "Value": value} for key, value in told.items()]
            with _asking(place):
                if before is None:
                    self._client.create_secret(Name=name, SecretString=value, Tags=tags)
                else:
                    self._client.put_secret_value(SecretId=name, SecretString=value)
                    self._client.tag_resource(SecretId=name, Tags=tags)
            entries.append(entry)
        return entries

    def get(self, place: CredentialPlace, *, actor: str, purpose: str) -> Secret:
        with self._audit.transaction() as transaction:
            transaction.record("secret_read", "credential_read", actor, {"credential": str(place), "purpose": purpose})
        entry = self._found(place)
        if entry is None:
            raise contract.absent(place)
        if entry.expires_at and entry.expires_at <= timestamp(self._clock.now()):
            raise contract.expired(place, entry.expires_at)
        with _asking(place):
            value = Secret(self._client.get_secret_value(SecretId=self._name(place))["SecretString"])
        self._register(value)
        return value

    def list(self) -> Sequence[contract.StoredCredential]:
        entries = []
        request: dict[str, Any] = {"Filters": [{"Key": "name", "Values": [f"{self._prefix}/"]}], "MaxResults": 100}
        for _ in range(_MAX_PAGES):
            with _asking(None):
                page = self._client.list_secrets(**request)
            entries += [entry for found in page["SecretList"] if (entry := self._entry(found)) is not None]
            if "NextToken" not in page:
                break
            request["NextToken"] = page["NextToken"]
        return sorted(entries, key=lambda entry: (entry.place.user, entry.place.role, entry.place.key))

    def remove(self, place: CredentialPlace) -> None:
        if self._found(place) is None:
            raise contract.absent(place)
        with self._audit.transaction() as transaction:
            transaction.record(
                "effect", contract.CREDENTIAL_REMOVED, STEWARD.id, {"credential": str(place), "in": "aws"}
            )
        with _asking(place):
            self._client.delete_secret(SecretId=self._name(place), ForceDeleteWithoutRecovery=True)

    def _name(self, place: CredentialPlace) -> str:
        return f"{self._prefix}/{place.user}/{place.role or '-'}/{place.key}"

    def _found(self, place: CredentialPlace) -> contract.StoredCredential | None:
        from botocore.exceptions import ClientError

        with _asking(place):
            try:
                found = self._client.describe_secret(SecretId=self._name(place))
            except ClientError as error:
                if error.response["Error"]["Code"] == "ResourceNotFoundException":
                    return None
                raise
        entry = self._entry(found)
        if entry is None or entry.place != place:
            message = f"the secret {self._name(place)} does not have the tags that Council wrote."
            fix = "set it again with `council vault set`"
            raise CredentialRefused(message, reason="tampered", fix=fix)
        return entry

    def _entry(self, found: Mapping[str, Any]) -> contract.StoredCredential | None:
        tags = {tag["Key"]: tag["Value"] for tag in found.get("Tags", ())}
        version = tags.get(_VERSION, "")
        if not version.isdecimal() or _USER not in tags or _KEY not in tags or "DeletedDate" in found:
            return None
        place = CredentialPlace(tags[_USER], tags.get(_ROLE, ""), tags[_KEY])
        created = found.get("LastChangedDate") or found.get("CreatedDate")
        return contract.StoredCredential(
            place, int(version), timestamp(created) if created else "", tags.get(_EXPIRES, ""), "aws"
        )


def _client() -> Any:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import NoRegionError
    except ImportError:
        fix = "pip install 'council[aws]'"
        raise ConfigError('vault = "aws" is set, but boto3 is not installed.', fix=fix) from None
    retries = {"max_attempts": _ATTEMPTS}
    config = Config(connect_timeout=_TIMEOUT_S, read_timeout=_TIMEOUT_S, retries=retries)
    try:
        return boto3.client("secretsmanager", config=config)
    except NoRegionError:
        raise ConfigError('vault = "aws" is set, but boto3 has no region.', fix="set AWS_DEFAULT_REGION") from None


@contextmanager
def _asking(place: CredentialPlace | None) -> Iterator[None]:
    """An answer of AWS may repeat what it was asked, so only its code is told."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise _unavailable(place, str(error.response["Error"]["Code"])) from None
    except BotoCoreError as error:
        raise _unavailable(place, type(error).__name__) from None


def _unavailable(place: CredentialPlace | None, reason: str) -> CredentialRefused:
    what = f"the credential {place}" if place is not None else "the list of credentials"
    return CredentialRefused(
        f"AWS Secrets Manager does not give {what}: {reason[:100]}.",
        reason="unavailable",
        fix="check the identity that boto3 uses, its permissions, and the region",
    )
