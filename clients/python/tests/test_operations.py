"""Each operation of the API's document has a method. clients/methods.json names it, for each language."""

import copy
import json
import os
from pathlib import Path

import hundi
from hundi import types
from typing_extensions import Unpack, get_type_hints

METHODS = json.loads((Path(__file__).parents[2] / "methods.json").read_text())
DOCUMENT = json.loads(Path(os.environ["HUNDI_OPENAPI"]).read_text())
ID = "an_id"


def operations(document):
    for path, item in document["paths"].items():
        for verb, operation in item.items():
            if "operationId" in operation:
                yield operation["operationId"], verb.upper(), path


def request_of(name, path):
    """The request that the method sends."""
    sent = []

    def request(verb, path, **_):
        sent.append((verb, path))
        return {"data": [], "has_next": False}

    with hundi.Client("sk_test_of_no_account") as client:
        client.request = request
        method = client
        for part in name.split("."):
            method = getattr(method, part)
        answer = method(*([ID] if "{id}" in path else [1] if name == "test_helpers.clock.advance" else []))
        if isinstance(answer, hundi.Pager):
            list(answer)
    return sent


def faults(document):
    found = []
    for operation, verb, path in operations(document):
        name = METHODS.get(operation)
        if name is None:
            found.append(f"{operation} has no method")
        elif (sent := request_of(name, path)) != [(verb, path.replace("{id}", ID))]:
            found.append(f"{name} sends {sent}, and {operation} is {verb} {path}")
    known = {operation for operation, _, _ in operations(document)}
    return found + [f"the document has no {operation}" for operation in METHODS if operation not in known]


def test_each_operation_has_a_method():
    assert faults(DOCUMENT) == []


def test_each_list_takes_the_filters_of_its_operation():
    lists = [operation for operation in METHODS if operation.startswith("list_")]
    assert len(lists) > 9
    for operation in lists:
        *parts, name = METHODS[operation].split(".")
        with hundi.Client("sk_test_of_no_account") as client:
            owner = client
            for part in parts:
                owner = getattr(owner, part)
        filters = getattr(types, "".join(word.capitalize() for word in operation.split("_")))
        assert get_type_hints(getattr(owner, name))["query"] == Unpack[filters], operation


def test_a_new_or_moved_operation_is_noticed():
    document = copy.deepcopy(DOCUMENT)
    document["paths"]["/v1/news"] = {"get": {"operationId": "list_news"}}
    document["paths"]["/v1/funds"] = document["paths"].pop("/v1/balance")
    assert faults(document) == [
        "list_news has no method",
        "balance.retrieve sends [('GET', '/v1/balance')], and get_balance is GET /v1/funds",
    ]
