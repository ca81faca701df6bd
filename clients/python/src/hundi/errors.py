"""What can go wrong."""

from __future__ import annotations

from typing import Any


class HundiError(Exception):
    """The base of all errors of this package."""


class ApiError(HundiError):
    """The service refused the request, or answered with an error to the last attempt.

    Branch on `codes`: they never change. `request_id` finds the request in the operator's log.
    """

    def __init__(self, status: int, body: Any, request_id: str | None) -> None:
        errors = body.get("errors", []) if isinstance(body, dict) else []
        self.status = status
        self.errors: list[dict[str, Any]] = errors
        self.request_id = request_id
        said = "; ".join(f"{error.get('code')}: {error.get('message')}" for error in errors)
        super().__init__(f"{said or f'HTTP status {status}'} ({request_id})")

    @property
    def codes(self) -> list[str]:
        return [error["code"] for error in self.errors]

    @property
    def new_key_required(self) -> bool:
        """Whether the cause can heal, and the request then needs a new idempotency key."""
        return any(error.get("metadata", {}).get("new_key_required") for error in self.errors)


class ConnectionFailed(HundiError):
    """No attempt got an answer. The outcome is unknown: send the request again with the same key."""

    def __init__(self, cause: Exception, idempotency_key: str | None) -> None:
        self.idempotency_key = idempotency_key
        super().__init__(f"no answer after all attempts: {cause}")


class WebhookVerificationError(HundiError):
    """A delivery is not from the service, or too old. Answer it with 400."""
