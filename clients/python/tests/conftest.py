"""The tests run against a real server: HUNDI_BASE_URL and HUNDI_API_KEY name it."""

import os

import pytest

import hundi


@pytest.fixture
def url():
    return os.environ["HUNDI_BASE_URL"]


@pytest.fixture
def client(url):
    with hundi.Client(os.environ["HUNDI_API_KEY"], base_url=url) as client:
        yield client
