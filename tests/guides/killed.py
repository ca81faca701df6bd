"""Kills the programs of the guide on events again and again while events come, and looks whether each had its effect once.
A program that keeps its place apart from the effect has to be found out.

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
from contextlib import closing
from pathlib import Path

GUIDES, ADDRESS, KEY, TOOLS = Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4]).resolve()
ENVIRONMENT = dict(os.environ, HUNDI_BASE_URL=ADDRESS, HUNDI_API_KEY=KEY)
TRANSFERS, WAIT_SECONDS_MAX = 3, 120
SQLITE, FILE = "followed.db", "followed.json"


def code(title):
    text = (GUIDES / "events.md").read_text()
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


def begin(command, folder):
    return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


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
        if title.endswith(".ts"):
            subprocess.run([TOOLS / "tsc", "--strict", "--module", "nodenext", "--target", "es2022", title], check=True, cwd=place)
            command = ["node", "follow_events.js"]
        else:
            command = [sys.executable, title]
        kills = go_through(command, place)
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
