"""Client of the hundi API, which pays Indian rupees into NRE accounts."""

from .async_client import AsyncClient, AsyncPager
from .client import Client, Pager
from .errors import (
    ApiError,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    ConnectionFailed,
    ConnectionTimedOut,
    HundiError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    ServerError,
    WebhookVerificationError,
)
from .webhooks import verify_webhook
from .wire import Page, Response

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncPager",
    "AuthenticationError",
    "BadRequestError",
    "Client",
    "ConflictError",
    "ConnectionFailed",
    "ConnectionTimedOut",
    "HundiError",
    "NotFoundError",
    "Page",
    "Pager",
    "PermissionDeniedError",
    "RateLimitError",
    "Response",
    "ServerError",
    "WebhookVerificationError",
    "verify_webhook",
]
