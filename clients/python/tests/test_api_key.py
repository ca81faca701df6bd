"""Where the client takes its API key from."""

import pytest

import hundi


def header(client):
    return client._headers["Authorization"]


def test_the_key_is_an_argument_or_a_variable_or_in_a_file(monkeypatch, tmp_path):
    monkeypatch.delenv("HUNDI_API_KEY", raising=False)
    monkeypatch.delenv("HUNDI_API_KEY_FILE", raising=False)
    with pytest.raises(hundi.HundiError, match="HUNDI_API_KEY_FILE"):
        hundi.Client()
    (tmp_path / "key").write_text("sk_test_file\n")
    monkeypatch.setenv("HUNDI_API_KEY_FILE", str(tmp_path / "key"))
    assert header(hundi.Client()) == "Bearer sk_test_file"
    monkeypatch.setenv("HUNDI_API_KEY", "sk_test_variable")
    assert header(hundi.Client()) == "Bearer sk_test_variable"
    client = hundi.Client("sk_test_argument")
    assert header(client) == "Bearer sk_test_argument"
    assert "sk_test" not in repr(client) + repr(client._headers)
