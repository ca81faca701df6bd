"""Kills the programs of the guide on events again and again while events come, and looks whether each had its effect once.
A program that keeps its place apart from the effect has to be found out. Then it ends the programs that pay once behind
each answer, before they keep it, and looks whether everything was made once. One that keeps no key has to be found out.
Started with other details, or after the time for the deposit, they have to stop and send nothing.

Arguments: the folder of the guides, the server's address, a test key, and the folder that holds `tsc` and `node_modules`.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from contextlib import closing
from pathlib import Path

GUIDES, ADDRESS, KEY, TOOLS = Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4]).resolve()
ENVIRONMENT = dict(os.environ, HUNDI_BASE_URL=ADDRESS, HUNDI_API_KEY=KEY)
TRANSFERS, WAIT_SECONDS_MAX, LATE_SECONDS = 3, 120, 1900
# What the programs that pay once make, in how many steps, and how they end in this test.
PAID, PAY_STEPS, ENDED = ("beneficiaries", "senders", "transfers", "payouts", "deposits"), 5, 9
SQLITE, FILE = "followed.db", "followed.json"


def code(title, guide="events.md"):
    text = (GUIDES / guide).read_text()
    return re.search(rf"^```\S+ title={re.escape(title)}\n(.*?)^```$", text, re.M | re.S).group(1)


def kept(folder):
    """How many events the program went through, and the transfers that it knows as settled."""
    if (folder / FILE).exists():
        followed = json.loads((folder / FILE).read_text())
        return followed["count"], followed["settled"]
    if (folder / SQLITE).exists():
        with closing(sqlite3.connect(folder / SQLITE, timeout=30)) as database:
            tables = {name for name, in database.execute("SELECT name FROM sqlite_master")}
            if {"place", "settled"} <= tables:
                count = database.execute("SELECT count FROM place").fetchone() or (0,)
                return count[0], [id for id, in database.execute("SELECT transfer_id FROM settled")]
    return 0, []


def program(title, folder):
    """The command that runs a program of a guide."""
    if title.endswith(".py"):
        return [sys.executable, title]
    subprocess.run([TOOLS / "tsc", "--strict", "--module", "nodenext", "--target", "es2022", title], check=True, cwd=folder)
    return ["node", title.replace(".ts", ".js")]


def begin(command, folder):
    return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def swap(text, old, new):
    assert text.count(old) == 1, f"the guide's program is written otherwise: {old}"
    return text.replace(old, new)


def made(name):
    """How many objects of a kind there are."""
    count, query = 0, "limit=100"
    while True:
        request = urllib.request.Request(f"{ADDRESS}/v1/{name}?{query}", headers={"Authorization": f"Bearer {KEY}"})
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS_MAX) as answer:
            page = json.load(answer)
        count += len(page["data"])
        if not page["has_next"]:
            return count
        query = f"limit=100&starting_after={page['data'][-1]['id']}"


def pay_once(command, folder):
    """Runs a program that ends once behind each answer, until it prints what it has to."""
    before = [made(name) for name in PAID]
    for ends in range(PAY_STEPS + 1):
        run = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX)
        if run.returncode != ENDED:
            break
    assert run.returncode == 0 and run.stdout.startswith("paid once, UTR ") and ends == PAY_STEPS, (run, ends)
    after = [made(name) for name in PAID]
    assert after == [count + 1 for count in before], (PAID, before, after)


def refuse(command, folder, words):
    """Runs a program that has to stop with these words, and to make nothing."""
    before = [made(name) for name in PAID]
    run = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX)
    assert run.returncode == 1 and words in run.stderr and "Traceback" not in run.stderr, run
    assert [made(name) for name in PAID] == before, run


def come_too_late(command, folder):
    """Ends a program behind the answer to its transfer, and starts it when the time for the deposit is over."""
    for _ in range(PAY_STEPS - 1):
        run = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX)
        assert run.returncode == ENDED, run
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
    body = json.dumps({"advance_seconds": LATE_SECONDS}).encode()
    request = urllib.request.Request(f"{ADDRESS}/v1/test_helpers/clock", body, headers)
    urllib.request.urlopen(request, timeout=WAIT_SECONDS_MAX).close()
    refuse(command, folder, "takes no more money, so none is sent")


def settle():
    """Makes a payment in test mode, to the end."""
    made = subprocess.run(["hundi", "quickstart"], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert "UTR" in made.stdout, made


def go_through(command, folder):
    kills = 0
    for _ in range(TRANSFERS):
        settle()
        # Killed as soon as it knows of one more transfer: where it hurts.
        before = len(kept(folder)[1])
        program, end = begin(command, folder), time.monotonic() + WAIT_SECONDS_MAX
        while len(kept(folder)[1]) == before and program.poll() is None and time.monotonic() < end:
            time.sleep(0.002)
        program.kill()
        program.wait()
        assert len(kept(folder)[1]) > before, "the program kept nothing"
        kills += 1
    program = begin(command, folder)
    printed, _ = program.communicate(timeout=WAIT_SECONDS_MAX)
    assert printed == "nothing is missing\n", printed
    return kills


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "node_modules").symlink_to(TOOLS / "node_modules")
    for title in ("follow_events.py", "follow_events.ts"):
        place = folder / title.replace(".", "_")
        place.mkdir()
        (place / title).write_text(code(title))
        kills = go_through(program(title, place), place)
        _, settled = kept(place)
        assert len(settled) == len(set(settled)) >= TRANSFERS, settled
        print(f"{title}: killed {kills} times, it knows each of {len(settled)} settled transfers once")
    place, whole = folder / "control", code("follow_events.py")
    place.mkdir()
    apart = whole.replace("            handle(event)\n", "            handle(event)\n            database.commit()\n            time.sleep(0.5)\n")
    assert apart != whole, "the guide's program is written otherwise"
    (place / "apart.py").write_text(apart)
    try:
        go_through([sys.executable, "apart.py"], place)
    except AssertionError:
        print("a program that keeps its place apart from the effect is found out")
    else:
        sys.exit("a program that keeps its place apart from the effect was not found out")

    python = code("pay_once.py", "idempotency.md")
    python = swap(python, "        if not reply.ok:", f"""\
        if not os.path.exists(name):
            open(name, "w").close()
            os._exit({ENDED})
        if not reply.ok:""")
    typescript = code("pay_once.ts", "idempotency.md")
    typescript = swap(typescript, "    if (!reply.ok) {", f"""\
    if (!existsSync(name)) {{
      writeFileSync(name, "");
      process.exit({ENDED});
    }}
    if (!reply.ok) {{""")
    for title, text in (("pay_once.py", python), ("pay_once.ts", typescript)):
        place = folder / title.replace(".", "_")
        place.mkdir()
        (place / title).write_text(text)
        pay_once([*program(title, place), title], place)
        print(f"{title}: ended behind each of {PAY_STEPS} answers, it made everything once")
    place = folder / "keyless"
    place.mkdir()
    keyless = swap(python, '"Idempotency-Key": key', '"Idempotency-Key": str(uuid.uuid4())')
    (place / "keyless.py").write_text(keyless)
    try:
        pay_once([sys.executable, "keyless.py", "keyless.py"], place)
    except AssertionError:
        print("a program that keeps no key is found out")
    else:
        sys.exit("a program that keeps no key was not found out")

    # Last, because the account's clock is ahead afterwards.
    for title, text in (("pay_once.py", python), ("pay_once.ts", typescript)):
        place = folder / title.replace(".", "_")
        (place / title).write_text(swap(text, "Asha Rao", "Asha Roa"))
        refuse([*program(title, place), title], place, f"order {title} was begun with other details")
        place = folder / f"late_{title.replace('.', '_')}"
        place.mkdir()
        (place / title).write_text(text)
        come_too_late([*program(title, place), "late"], place)
        print(f"{title}: started with other details, or too late for the deposit, it sent nothing")
