"""Runs the code of the callers' guides as a reader would, and compares what it prints with what the guides say.

Arguments: the folder of the guides, the server's address, a test key, and the folder that holds `tsc`, `node_modules` and the
examples in Rust. A guide whose code comes in several languages is gone through once for each of them.

Code with a title is a file that is run; `background=WEBHOOK_PORT` means that it goes on running and listens on the port in
that variable, and `background=-` that it goes on running. What code with `pasted=yes` prints is typed into the shell. Other bash
code is typed into one shell. A `text` block after code is what was printed; IDs, numbers and references may differ.
`json` with `answer=NAME` is what the server answers to a request that `ANSWERS` has.

Every block has to be run or compared. One that cannot be says why behind its language: `unrun=` and the reason.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

GUIDES, ADDRESS, KEY, TOOLS = Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4]).resolve()
ADDRESS_IN_GUIDES = "http://127.0.0.1:8080"
KEY_IN_GUIDES = "sk_test_..."
WAIT_SECONDS_MAX = 60
FENCE = re.compile(r"^```(\S*)([^\n]*)\n(.*?)^```$", re.M | re.S)
PROGRAMS = ("python", "typescript", "rust")
NEEDS_NO_VARIABLES = "verify_by_hand"


class Block:
    def __init__(self, match):
        self.language, info, self.text = match.group(1), match.group(2), match.group(3)
        options = dict(word.split("=", 1) for word in info.split() if "=" in word)
        self.title, self.background, self.is_pasted = options.get("title"), options.get("background"), "pasted" in options
        self.answer, (_, _, self.unrun) = options.get("answer"), info.partition("unrun=")
        self.start, self.end = match.span()


def choices(text):
    """The code of a guide, in lists of blocks of which the reader takes one."""
    found, end = [], None
    for block in map(Block, FENCE.finditer(text)):
        is_next = end is not None and text[end:block.start].strip() == ""
        is_code = block.language not in ("text", "json")
        choice = [other.language for other in found[-1]] if found and is_next else []
        is_other = is_code and not {"text", "json", block.language} & {*choice}
        if choice and is_other:
            found[-1].append(block)
        else:
            found.append([block])
        end = block.end
    return found


# What the JSON in the guides is: the request, and where in the answer it stands.
ANSWERS = {
    "refused_beneficiary": (("POST", "/v1/beneficiaries", {
        "name": "Asha Rao", "account_number": "50100012345678", "ifsc": "HDFC1000001", "account_type": "nre"}), ()),
    "empty_list": (("GET", "/v1/quote_locks?created.gte=4102444800"), ()),
    "settled_event": (("GET", "/v1/events?type=transfer.status.payout_settled&limit=1"), ("data", 0)),
}


def shape(value, path="$"):
    """Each member of an answer with its type, and its text without what differs from run to run."""
    if isinstance(value, dict):
        return [line for name, inner in value.items() for line in [f"{path}.{name}", *shape(inner, f"{path}.{name}")]]
    if isinstance(value, list):
        return [f"{path} list", *(line for inner in value for line in shape(inner, f"{path}[]"))]
    return [f"{path} {type(value).__name__} {alike(str(value))}"]


def compare_answer(block, where):
    """Fails where JSON in a guide is not what the server answers: members, their order, their types and their words."""
    request, steps = ANSWERS[block.answer]
    answer = call(*request)
    for step in steps:
        answer = answer[step]
    shown, real = shape(json.loads(block.text)), shape(answer)
    if shown != real:
        sys.exit(f"{where} shows\n{json.dumps(shown, indent=1)}\nand the server answers\n{json.dumps(real, indent=1)}")


def unaccounted(guide, text, seen):
    """Where a guide has code that was neither run nor compared, and says no reason."""
    found, fenced = [], set()
    for block in map(Block, FENCE.finditer(text)):
        fenced |= set(range(text.count("\n", 0, block.start), text.count("\n", 0, block.end) + 1))
        if block.start not in seen and not block.unrun.strip():
            found.append((text.count("\n", 0, block.start) + 1, f"```{block.language}"))
    # Code that has no such fence is indented, or has another fence.
    for number, line in enumerate(text.splitlines()):
        if number not in fenced and re.match(r" *(```|~~~)| {4,}\S|\t", line):
            found.append((number + 1, line))
    return [f"{guide.name}:{number}: {line}" for number, line in sorted(found)]


def command(block, folder):
    file = folder / block.title
    if block.language == "rust":
        # The suites compile the examples; here they only have to be the same.
        source = Path("examples") / block.title
        if source.read_text() != block.text:
            sys.exit(f"{source} and the code in the guide differ")
        return str(TOOLS / "examples" / source.stem)
    file.write_text(block.text)
    if block.language == "bash":
        return f"bash {file}"
    if block.language == "python":
        return f"{sys.executable} {file}"
    # The types of the packages are looked for beside the program.
    subprocess.run([TOOLS / "tsc", "--strict", "--module", "nodenext", "--target", "es2022", file.name], check=True, cwd=folder)
    return f"node {file.with_suffix('.js')}"


def alike(line):
    """A line with everything that differs from run to run left out."""
    line = re.sub(r"TEST[A-Z0-9]+", "REFERENCE", line.replace('"', ""))
    return re.sub(r"[0-9A-HJKMNP-TV-Z]{26}|[0-9]+", "#", line).strip()


def wait(what, probe):
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not probe():
        if time.monotonic() > end:
            sys.exit(f"waited in vain for {what}")
        time.sleep(0.02)


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Shell:
    """One shell for the whole guide, which also starts the programs, so that variables are theirs."""

    def __init__(self, folder):
        environment = dict(os.environ, HUNDI_BASE_URL=ADDRESS, HUNDI_API_KEY=KEY)
        self.folder, self.programs_count = folder, 0
        output = open(folder / "0.printed", "wb")
        self.process = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
                                        env=environment, start_new_session=True, cwd=folder)
        self.run("set -euo pipefail")

    def text(self):
        """What the shell printed, and then what each program in the background printed."""
        return "\n".join(file.read_text(errors="replace") for file in sorted(self.folder.glob("*.printed")))

    def start(self, code):
        """Runs code in the background. It prints into a file of its own: two writers of one file could share a line."""
        self.programs_count += 1
        self.run(f"{{\n{code}\n}} > {self.folder}/{self.programs_count}.printed 2>&1 &")

    def run(self, code):
        mark = f"done {time.monotonic_ns()}"
        # The output of the code need not end its line.
        self.process.stdin.write(f"{code}\nprintf '\\n%s\\n' '{mark}'\n".encode())
        self.process.stdin.flush()
        wait(f"the end of\n{code}\nwhich printed\n{self.text()}",
             lambda: mark in self.text() or self.process.poll() is not None)
        if self.process.poll() is not None:
            sys.exit(f"this failed:\n{code}\nand printed:\n{self.text()}")

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def call(method, path, body=None):
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
    content = json.dumps(body).encode() if body else None
    try:
        with urllib.request.urlopen(urllib.request.Request(ADDRESS + path, content, headers, method=method),
                                    timeout=WAIT_SECONDS_MAX) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refusal:
        return json.load(refusal)


def end_endpoints():
    """Ends the webhook endpoints that a guide registered: the next receiver at their address has another secret."""
    for endpoint in call("GET", "/v1/webhook_endpoints?limit=100")["data"]:
        call("DELETE", f"/v1/webhook_endpoints/{endpoint['id']}")


def asks_for_variables(code, folder):
    """A program that lacks its variables says in one line which to set, and ends."""
    lacking = {name: value for name, value in os.environ.items() if not name.startswith(("HUNDI_", "WEBHOOK_"))}
    run = subprocess.run(code, shell=True, env=lacking, cwd=folder, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX)
    said = (run.stdout + run.stderr).splitlines()
    names = ("HUNDI_BASE_URL", "HUNDI_API_KEY"), ("WEBHOOK_SECRET", "WEBHOOK_PORT")
    if run.returncode == 0 or len(said) != 1 or not any(all(name in said[0] for name in pair) for pair in names):
        sys.exit(f"without its variables, {code} ended with {run.returncode} and said\n{run.stdout}{run.stderr}")


def says_why_it_stops(block, folder):
    """The quick start says in a line that nobody answers, and does not wait for a name that cannot match."""
    def said(code, **variables):
        run = subprocess.run(code, shell=True, env={**os.environ, "HUNDI_BASE_URL": ADDRESS, "HUNDI_API_KEY": KEY, **variables},
                             cwd=folder, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX)
        if run.returncode == 0:
            sys.exit(f"{code} ended well with {variables}")
        return run.stdout + run.stderr
    nobody = said(command(block, folder), HUNDI_BASE_URL="http://127.0.0.1:9")
    if "127.0.0.1" not in nobody or len(nobody.splitlines()) > 2:
        sys.exit(f"{block.title} said of a server that is not there\n{nobody}")
    if block.language == "rust":
        return
    text, block.text = block.text, block.text.replace("50100012345678", "50100012340002")
    mismatch = said(command(block, folder))
    block.text = text
    command(block, folder)
    if "input_required" not in mismatch or "name" not in mismatch:
        sys.exit(f"{block.title} said of a name that does not match\n{mismatch}")


def go_through(guide, language):
    """Runs a guide in one language, and answers where the blocks begin that were run or compared."""
    source, seen = guide.read_text(), set()
    starts = [match.start() for match in FENCE.finditer(source)]
    text = guide.read_text().replace(ADDRESS_IN_GUIDES, ADDRESS).replace(KEY_IN_GUIDES, KEY)
    # The ports of the guides may be taken on this machine.
    text = re.sub(r"^(export \w+_PORT=)\d+$", lambda match: match.group(1) + str(free_port()), text, flags=re.M)
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "node_modules").symlink_to(TOOLS / "node_modules")
        shell = Shell(Path(name))
        lines_count = asked_count = 0
        positions = [match.start() for match in FENCE.finditer(text)]
        try:
            for choice in choices(text):
                block = next((block for block in choice if block.language == language), choice[0])
                is_seen = bool(block.title or block.answer or block.language in ("bash", "text"))
                if block.unrun or not is_seen:
                    continue
                seen.add(starts[positions.index(block.start)])
                program = command(block, Path(name)) if block.title else None
                if program and not block.title.startswith(NEEDS_NO_VARIABLES):
                    asks_for_variables(program, Path(name))
                    asked_count += 1
                if block.title and block.title.startswith("quick_start"):
                    says_why_it_stops(block, Path(name))
                if block.answer:
                    compare_answer(block, f"{guide.name} in {block.answer}")
                elif block.language == "text":
                    for line in filter(None, map(alike, block.text.splitlines())):
                        lines_count += 1
                        wait(f"the line {line!r} of {guide.name} in {language}, which printed\n{shell.text()}",
                             lambda: line in map(alike, shell.text().splitlines()))
                elif block.background == "-":
                    shell.start(block.text)
                elif block.background:
                    # The last value that the guide gives it before.
                    port = int(re.findall(rf"^export {block.background}=(\d+)$", text[:block.start], re.M)[-1])
                    if is_listening(port):
                        sys.exit(f"something else listens on port {port}, where {block.title} has to")
                    shell.start(program)
                    wait(f"{block.title} to listen", lambda: is_listening(port))
                elif block.is_pasted:
                    shell.run(f'printed=$({program})\neval "$printed"')
                elif block.title:
                    shell.run(program)
                elif block.language == "bash":
                    shell.run(block.text)
        finally:
            shell.close()
        end_endpoints()
        print(f"{guide.name}: went through it in {language}, and found {lines_count} lines as they are written;"
              f" {asked_count} programs say which variables they lack")
    return seen


def languages_of(text):
    """The languages that a guide is gone through in."""
    blocks = [block for choice in choices(text) for block in choice]
    languages = [language for language in ("bash", *PROGRAMS) if any(block.language == language for block in blocks)]
    # A guide with programs alone is not gone through in the shell; one with JSON alone is gone through once.
    is_for_shell = any(block.language == "bash" for choice in choices(text) if len(choice) > 1 for block in choice)
    if "bash" in languages and len(languages) > 1 and not is_for_shell:
        languages.remove("bash")
    return languages or (["bash"] if blocks else [])


def check(guide):
    seen = set()
    for language in languages_of(guide.read_text()):
        seen |= go_through(guide, language)
    if left := unaccounted(guide, guide.read_text(), seen):
        sys.exit("neither run nor compared, and no reason given:\n" + "\n".join(left))


def refuse_planted():
    """Guides with a fault that this script has to find."""
    page = '{ "object": "list", "data": [], "has_next": false }'
    shown = lambda text: f"```json answer=empty_list\n{text}\n```\n"
    faults = {
        "an untitled program": "```python\nprint(1)\n```\n",
        "JSON of no request": f"```json\n{page}\n```\n",
        "a language that nobody runs": "```http\nGET /v1/events\n```\n",
        "a fence in a list": "- see\n\n  ```bash\n  echo\n  ```\n",
        "indented code": "Run\n\n    hundi serve\n",
        "no reason": "```http unrun=\nGET /v1/events\n```\n",
        "a member that is not answered": shown(page.replace("}", ', "total": 0 }')),
        "a member that is missing": shown('{ "object": "list" }'),
        "another type": shown(page.replace("false", "0")),
        "another word": shown(page.replace("list", "page")),
    }
    with tempfile.TemporaryDirectory() as name:
        guide = Path(name) / "planted.md"
        guide.write_text(f"{shown(page)}\n```http unrun=it is a picture of a request\nGET /\n```\n")
        check(guide)
        for what, text in faults.items():
            guide.write_text(text)
            try:
                check(guide)
            except SystemExit as exit:
                assert exit.code, what
            else:
                sys.exit(f"a guide with {what} was taken")
    print(f"a guide with one of {len(faults)} planted faults is refused")


for guide in sorted(GUIDES.glob("*.md")):
    check(guide)
refuse_planted()
