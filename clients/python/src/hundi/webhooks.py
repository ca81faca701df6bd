"""Verifies deliveries."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping

from .errors import WebhookVerificationError
from .types import Event

#: How far a delivery's timestamp may be from now, in seconds.
TOLERANCE_SECONDS = 300


def verify_webhook(
    body: bytes, headers: Mapping[str, str], secret: str, *, now: float | None = None
) -> Event:
    """Returns the event of a delivery. `body` is what arrived, byte for byte.

    Raises WebhookVerificationError if the signature is wrong, or the timestamp is more than five minutes away.
    """
    named = {name.lower(): value for name, value in headers.items()}
    try:
        event_id, timestamp = named["webhook-id"], named["webhook-timestamp"]
        signatures = named["webhook-signature"].split(" ")
        sent_at = int(timestamp)
    except (KeyError, ValueError) as error:
        raise WebhookVerificationError("a webhook header is missing or malformed") from error
    signed = f"{event_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(secret.encode(), signed, hashlib.sha256).digest())
    # Every entry is compared, so that the time taken tells nothing.
    matches = [
        hmac.compare_digest(expected, entry.removeprefix("v1,").encode()) for entry in signatures
    ]
    if not any(matches):
        raise WebhookVerificationError("no signature matches")
    if abs((time.time() if now is None else now) - sent_at) > TOLERANCE_SECONDS:
        raise WebhookVerificationError("the timestamp is more than five minutes away")
    event: Event = json.loads(body)
    return event
