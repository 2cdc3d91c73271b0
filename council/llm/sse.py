"""Server-sent events as chat servers send them: the `data` of each event, from bytes. Bounded; knows no HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

from council.llm.http_failures import AnswerTooLarge

MAX_EVENT_BYTES = 1024 * 1024  # one event is a few words; a whole answer in one event is still far below


async def events(chunks: AsyncIterator[bytes], *, max_bytes: int) -> AsyncIterator[str]:
    """The data of each event that ended with an empty line or with the stream.

    Comments, other fields and byte order marks are skipped. Raises AnswerTooLarge, UnicodeDecodeError.
    """
    held, data, total = b"", list[bytes](), 0
    async for chunk in chunks:
        total += len(chunk)
        *lines, held = (held + chunk).split(b"\n")
        if total > max_bytes or len(held) + sum(map(len, data)) > MAX_EVENT_BYTES:
            raise AnswerTooLarge(f"more than {max_bytes} bytes, or an event of more than {MAX_EVENT_BYTES}")
        for line in lines:
            event = _take(line.rstrip(b"\r"), data)
            if event is not None:
                yield event
    _take(held.rstrip(b"\r"), data)
    event = _take(b"", data)
    if event is not None:
        yield event


def _take(line: bytes, data: list[bytes]) -> str | None:
    """One line in; the event that it ends, if it ends one."""
    if line:
        field, _, value = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        return None
    if not data:
        return None
    event = b"\n".join(data).decode("utf-8")
    data.clear()
    return event
