"""Rows of the original's `user_credentials` (source document, section 4), whose values Fernet sealed."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.ids import timestamp
from council.redaction import Secret
from council.storage.files import read_limited
from council.vault.contract import NewCredential
from council.vault.sealing import place_of

_MAX_BYTES = 64 << 20
_MAX_ROWS = 100_000


def read_rows(file: Path, key: Secret) -> list[NewCredential]:
    """All rows, opened. Raises UsageError naming the first that cannot be: then none is returned; StorageFailed."""
    try:
        text = read_limited(file, _MAX_BYTES).decode("utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        raise UsageError(f"{file} does not exist, or is not UTF-8.", fix="name an export of user_credentials") from None
    rows: Any
    if text.lstrip().startswith("["):
        try:
            rows = json.loads(text)
        except ValueError as error:
            raise UsageError(f"{file} is not JSON: {error}.", fix="export the rows again") from None
    else:
        rows = list(csv.DictReader(io.StringIO(text)))
    if not rows or len(rows) > _MAX_ROWS or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{file} has no rows, or more than {_MAX_ROWS}.", fix="export user_credentials")
    return [_opened(number, row, key) for number, row in enumerate(rows, start=1)]


def _opened(number: int, row: dict[str, Any], key: Secret) -> NewCredential:
    from cryptography.fernet import Fernet, InvalidToken

    try:
        place = place_of(str(row["user_id"]), str(row["specialist_role"]), str(row["credential_key"]))
        opened = Fernet(key.reveal().encode()).decrypt(str(row["encrypted_value"]).encode()).decode()
        expires = str(row.get("expires_at") or "")
        moment = datetime.fromisoformat(expires) if expires else None
    except KeyError as error:
        raise UsageError(f"row {number} has no {error}.", fix="export all columns of user_credentials") from None
    except InvalidToken:
        fix = "name its variable with --key-variable"
        raise UsageError(f"row {number} does not open with this key.", fix=fix) from None
    except UsageError as error:
        raise UsageError(f"row {number}: {error.message}", fix=error.fix) from None
    except ValueError:
        fix = "check the row and the key"
        raise UsageError(f"row {number} cannot be read, or the key is not valid.", fix=fix) from None
    if moment is None:
        return NewCredential(place, Secret(opened), "")
    return NewCredential(place, Secret(opened), timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC)))
