"""Drills each webhook receiver of the guides, and looks whether it worked on each event once, however often it came. The
same receiver without its memory of events has to be found out.

Arguments: the folder of the guides, the server's address, a test key, the folder that holds `tsc`, `node_modules` and the
examples in Rust, and a file in which cargo says what it built for `receive_webhooks`.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections import Counter
from pathlib import Path

GUIDES, ADDRESS, KEY, TOOLS = Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4]).resolve()
BUILT = [json.loads(line) for line in Path(sys.argv[5]).read_text().splitlines()]
WAIT_SECONDS_MAX = 120
RUNNERS = {"sh": ["bash"], "py": [sys.executable], "ts": ["node"]}
# In each receiver, the condition by which it skips an event that it knows.
MEMORIES = {
    "receive_webhooks.sh": (" unless $seen{$event->{id}}++", ""),
    "receive_webhooks.py": ("if is_new:", "if True:"),
    "receive_webhooks.ts": ("if (!seen.has(event.id))", "if (true)"),
    "receive_express.ts": ("if (!seen.has(event.id))", "if (true)"),
    "receive_webhooks.rs": ("SEEN.lock().is_ok_and(|mut seen| seen.insert(id))", "SEEN.lock().is_ok_and(|mut seen| seen.insert(id) || true)"),
}
# What the receiver in Rust is compiled with, as its first line says.
RUST_PACKAGES = ("axum", "serde_json", "standardwebhooks", "tokio")
# How many deliveries of a drill a receiver has to refuse.
FORGED = 5


def call(method, path, body=None):
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
    content = json.dumps(body or {}).encode() if method == "POST" else None
    request = urllib.request.Request(ADDRESS + path, content, headers, method=method)
    with urllib.request.urlopen(request, timeout=WAIT_SECONDS_MAX) as answer:
        return json.load(answer)


def wait(what, probe):
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not (found := probe()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)
    return found


def receivers():
    text = (GUIDES / "webhooks.md").read_text()
    return dict(re.findall(r"^```\S+ title=(receive_\S+) [^\n]*\n(.*?)^```$", text, re.M | re.S))


def program(title, text, folder):
    """The command that runs a receiver."""
    source = Path("examples") / title
    if title.endswith(".rs") and text == source.read_text():
        return [TOOLS / "examples" / source.stem]
    (folder / title).write_text(text)
    if title.endswith(".rs"):
        return [compiled(title, text, folder)]
    if title.endswith(".ts"):
        subprocess.run([TOOLS / "tsc", "--strict", "--module", "nodenext", "--target", "es2022", title], check=True, cwd=folder)
        title = title.replace(".ts", ".js")
    return [*RUNNERS["ts" if title.endswith(".js") else title.rsplit(".", 1)[1]], title]


def compiled(title, text, folder):
    """A changed receiver in Rust, compiled with the packages that cargo built for the unchanged one."""
    libraries = [[file for file in built["filenames"] if file.endswith(".rlib")][0] for built in BUILT
                 if built["reason"] == "compiler-artifact" and built["target"]["name"] in RUST_PACKAGES]
    assert len(libraries) == len(RUST_PACKAGES), libraries
    packages = [f"--extern={Path(file).name.removeprefix('lib').rsplit('-', 1)[0]}={file}" for file in libraries]
    binary = folder / Path(title).stem
    subprocess.run(["rustc", "--edition=2024", "--crate-name=receiver", f"-Ldependency={Path(libraries[0]).parent}",
                    *packages, "-o", binary, folder / title], check=True)
    return binary


def drill(title, text, folder):
    """Drills a receiver, and answers how often it worked on each event, and how many deliveries it refused."""
    path = "/webhooks" if "express" in title else "/"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = call("POST", "/v1/webhook_endpoints", {"url": f"http://127.0.0.1:{port}{path}"})
    printed = folder / "printed"
    environment = dict(os.environ, WEBHOOK_PORT=str(port), WEBHOOK_SECRET=endpoint["secret"])
    with open(printed, "wb") as output:
        receiver = subprocess.Popen(program(title, text, folder), cwd=folder, env=environment, stdout=output, stderr=output)
    try:
        wait(f"{title} to listen", lambda: "listening on port" in printed.read_text() or receiver.poll() is not None)
        assert receiver.poll() is None, printed.read_text()
        report = call("POST", f"/v1/webhook_endpoints/{endpoint['id']}/drill")
        report = wait("the drill", lambda: (now := call("GET", f"/v1/webhook_endpoints/{endpoint['id']}/drill"))["status"]
                      == "completed" and now)
    finally:
        receiver.kill()
        receiver.wait()
        call("DELETE", f"/v1/webhook_endpoints/{endpoint['id']}")
    assert report["grade"] == "passed", [check for check in report["checks"] if not check["passed"]]
    lines = printed.read_text().splitlines()
    return Counter(re.findall(r"verified (event_\S+)", "\n".join(lines))), sum(line.startswith("refused") for line in lines)


def check(title, text, folder):
    newest = [event["id"] for event in call("GET", "/v1/events?order=desc&limit=2")["data"]]
    counts, refused = drill(title, text, folder)
    # The two latest events, and one of an unknown type.
    assert set(newest) <= set(counts) and any(id.endswith("DR1") for id in counts), (title, newest, counts)
    assert set(counts.values()) == {1}, f"{title} worked more than once on an event: {counts}"
    assert refused >= FORGED, f"{title} refused {refused} deliveries"


# Enough events for a drill, and all of them there before it.
beneficiary = call("POST", "/v1/beneficiaries", {
    "name": "Asha Rao", "account_number": "50100012345678", "ifsc": "HDFC0000001", "account_type": "nre"})
wait("the beneficiary", lambda: call("GET", f"/v1/beneficiaries/{beneficiary['id']}")["status"] == "active")
wait("its events", lambda: len(call("GET", f"/v1/events?linked_id={beneficiary['id']}")["data"]) == 2)
found = receivers()
assert set(found) == set(MEMORIES), found.keys()
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "node_modules").symlink_to(TOOLS / "node_modules")
    for title, text in found.items():
        check(title, text, folder)
        old, new = MEMORIES[title]
        assert text.count(old) == 1, f"{title} is written otherwise: {old}"
        try:
            check(title, text.replace(old, new), folder)
        except AssertionError as error:
            assert "more than once" in str(error), error
        else:
            sys.exit(f"{title} without its memory was not found out")
        print(f"{title}: a drill has an effect once for each event")
print("a receiver without a memory of events is found out")
