"""Client of the hundi API, which pays Indian rupees into NRE accounts."""

from .client import Client
from .errors import ApiError, ConnectionFailed, HundiError, WebhookVerificationError
from .webhooks import verify_webhook

__all__ = ["ApiError", "Client", "ConnectionFailed", "HundiError", "WebhookVerificationError", "verify_webhook"]
