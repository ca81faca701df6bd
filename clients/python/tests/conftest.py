"""The tests run against a real server: HUNDI_URL and HUNDI_KEY name it."""

import os

import pytest

import hundi


@pytest.fixture
def url():
    return os.environ["HUNDI_URL"]


@pytest.fixture
def client(url):
    with hundi.Client(os.environ["HUNDI_KEY"], base_url=url) as client:
        yield client
