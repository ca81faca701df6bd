"""Gives every generated request with a well-formed idempotency key one of its own, as a client would, and shortens waits."""

import uuid

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    headers = case.headers or {}
    for name in list(headers):
        value = headers[name]
        if name.lower() == "idempotency-key" and isinstance(value, str) and 16 <= len(value) <= 64 and value.isascii() and value.isprintable() and value == value.strip():
            headers[name] = str(uuid.uuid4())
    # A page that stays empty would take its whole wait.
    query = case.query or {}
    if str(query.get("wait")) in {str(seconds) for seconds in range(2, 31)}:
        query["wait"] = 1
