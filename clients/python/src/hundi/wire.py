"""What both clients share: how values travel, and which answers are worth a retry."""

from __future__ import annotations

import os
import platform
import random
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx

from . import types as t
from .errors import HundiError, error_of

T = TypeVar("T")

ATTEMPTS_MAX = 6
PAUSE_SECONDS_FIRST = 0.5
PAUSE_SECONDS_MAX = 30.0
TIMEOUT_SECONDS = 30.0
PAGE_OBJECTS = 100
BASE_URL = "http://127.0.0.1:8080"
JSON, PDF, CSV = "application/json", "application/pdf", "text/csv"


@dataclass(frozen=True)
class Response:
    """An answer as it came. `data` is what the method returned."""

    status: int
    headers: httpx.Headers
    data: Any

    @property
    def request_id(self) -> str | None:
        """Finds the request in the operator's log."""
        found: str | None = self.headers.get("Request-Id")
        return found

    @property
    def is_replayed(self) -> bool:
        """Whether this is the stored answer to an earlier request with the same idempotency key."""
        return bool(self.headers.get("Idempotent-Replayed") == "true")


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list."""

    data: list[T]
    has_next: bool


#: The last answer in this thread, or in this task.
last_response: ContextVar[Response | None] = ContextVar("hundi_last_response", default=None)


def to_wire(value: Any) -> Any:
    """Amounts become text; a float is never one."""
    if isinstance(value, float):
        raise TypeError("an amount is a Decimal or a text, never a float")
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        return {name: to_wire(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_wire(inner) for inner in value]
    return value


def from_wire(value: Any, name: str = "") -> Any:
    """Amounts become decimals, but for what the caller's own metadata holds."""
    if name == "metadata":
        return value
    if isinstance(value, dict):
        return {inner: from_wire(held, inner) for inner, held in value.items()}
    if isinstance(value, list):
        return [from_wire(held) for held in value]
    return Decimal(value) if name in t.DECIMAL_FIELDS and isinstance(value, str) else value


def to_query(query: dict[str, Any] | None) -> dict[str, Any]:
    """The parameters of a URL: `created={"gte": 1}` becomes `created.gte=1`, and None is left out."""
    flat: dict[str, Any] = {}
    for name, value in (query or {}).items():
        for inner, held in value.items() if isinstance(value, dict) else [("", value)]:
            if held is not None:
                flat[f"{name}.{inner}" if inner else name] = f"{held:f}" if isinstance(held, Decimal) else held
    return flat


def segment(id: str) -> str:
    """An ID as a part of a path. An empty one would lead to the list."""
    if not id:
        raise ValueError("the ID is empty")
    return quote(id, safe="")


def parse(answer: httpx.Response) -> Any:
    if answer.is_success and answer.headers.get("Content-Type", "").startswith(PDF):
        return answer.content
    if answer.is_success and answer.headers.get("Content-Type", "").startswith(CSV):
        return answer.text
    try:
        return from_wire(answer.json())
    except ValueError:
        return None


def is_worth_a_retry(answer: httpx.Response) -> bool:
    """The specification's table: 5xx, 429, and 409 while the first request runs."""
    if answer.status_code == 409:
        body = parse(answer) or {}
        return any(error.get("code") == "resource_locked" for error in body.get("errors", []))
    return answer.status_code == 429 or answer.status_code >= 500


def pause_after(attempt: int, answer: httpx.Response | None) -> float:
    """How long to wait behind an attempt, in seconds: longer each time, and as long as `Retry-After` says."""
    pause: float = min(PAUSE_SECONDS_MAX, PAUSE_SECONDS_FIRST * 2 ** (attempt - 1))
    pause *= random.uniform(0.5, 1)
    told: str = answer.headers.get("Retry-After", "") if answer is not None else ""
    return max(pause, float(told)) if told.isdigit() else pause


def take(answer: httpx.Response, idempotency_key: str | None) -> Any:
    """What an answer holds that a retry would not change; raises what it refuses."""
    data = parse(answer)
    response = Response(answer.status_code, answer.headers, data)
    last_response.set(response)
    if answer.is_success and data is not None:
        return data
    raise error_of(answer.status_code, data, response.request_id, idempotency_key, answer.headers)


def find_key(given: str | None) -> str:
    file = os.environ.get("HUNDI_API_KEY_FILE")
    key = given or os.environ.get("HUNDI_API_KEY") or (Path(file).read_text() if file else "")
    if not key.strip():
        raise HundiError("no API key: pass api_key, or set HUNDI_API_KEY or HUNDI_API_KEY_FILE")
    return key.strip()


def find_url(given: str | None) -> str:
    return (given or os.environ.get("HUNDI_BASE_URL") or BASE_URL).rstrip("/")


def headers_of(api_key: str, app_info: str | None) -> httpx.Headers:
    agent = f"hundi-python/{version('hundi')} python/{platform.python_version()}"
    return httpx.Headers({"Authorization": f"Bearer {api_key}", "User-Agent": f"{agent} {app_info}" if app_info else agent})
