"""What can go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class HundiError(Exception):
    """The base of all errors of this package."""


class ApiError(HundiError):
    """The service refused the request, or answered with an error to the last attempt.

    Branch on `codes`: they never change. `request_id` finds the request in the operator's log. Behind a status of 500
    or more the outcome is unknown: send the request again with the same `idempotency_key`.
    """

    def __init__(
        self,
        status: int,
        body: Any,
        request_id: str | None,
        idempotency_key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        errors = body.get("errors", []) if isinstance(body, dict) else []
        self.status = status
        self.errors: list[dict[str, Any]] = errors
        self.request_id = request_id
        self.idempotency_key = idempotency_key
        self.headers: Mapping[str, str] = headers or {}
        said = "; ".join(f"{error.get('code')}: {error.get('message')}" for error in errors)
        unread = "the answer is not JSON" if 200 <= status < 300 else f"HTTP status {status}"
        super().__init__(f"{said or unread} ({request_id})")

    @property
    def codes(self) -> list[str]:
        return [error["code"] for error in self.errors]

    @property
    def new_key_required(self) -> bool:
        """Whether the cause can heal, and the request then needs a new idempotency key."""
        return any(error.get("metadata", {}).get("new_key_required") for error in self.errors)


class BadRequestError(ApiError):
    """400: a field is wrong, or a rule of business forbids it."""


class AuthenticationError(ApiError):
    """401: the API key is missing, wrong or has expired."""


class PermissionDeniedError(ApiError):
    """403: the API key may not do this."""


class NotFoundError(ApiError):
    """404: the object, or one that the body names, does not exist for this key."""


class ConflictError(ApiError):
    """409: the idempotency key belongs to another request, or to one that still runs."""


class RateLimitError(ApiError):
    """429: too many requests, also behind all retries."""


class ServerError(ApiError):
    """500 or more, also behind all retries. The outcome is unknown."""


def error_of(
    status: int, body: Any, request_id: str | None, idempotency_key: str | None, headers: Mapping[str, str]
) -> ApiError:
    """The error of a status."""
    kinds: dict[int, type[ApiError]] = {
        400: BadRequestError,
        401: AuthenticationError,
        403: PermissionDeniedError,
        404: NotFoundError,
        409: ConflictError,
        429: RateLimitError,
    }
    kind = kinds.get(status, ServerError if status >= 500 else ApiError)
    return kind(status, body, request_id, idempotency_key, headers)


class ConnectionFailed(HundiError):
    """No attempt got an answer. The outcome is unknown: send the request again with the same key."""

    def __init__(self, cause: Exception, idempotency_key: str | None) -> None:
        self.idempotency_key = idempotency_key
        super().__init__(f"no answer after all attempts: {cause!r}")


class ConnectionTimedOut(ConnectionFailed):
    """The last attempt had no answer in time."""


class WebhookVerificationError(HundiError):
    """A delivery is not from the service, or too old. Answer it with 400."""
