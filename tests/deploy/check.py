"""Two nodes behind nginx with the example's configuration: callers notice nothing when one node is killed or frozen."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.join(ROOT, "target/debug/hundi")
CALLERS_COUNT = 8
# How long one request may be tried until it has its final answer.
PATIENCE_SECONDS = 30
# How long a node is frozen, as a machine whose disk hangs is, until it is restarted.
FROZEN_SECONDS = 25
# In deploy/nginx.conf: how long nginx waits for a node's answer.
READ_SECONDS = 9
SENDER = {"name": "John Miller", "type": "individual", "country": "US"}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_for(what, probe, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = probe()
        if found:
            return found
        time.sleep(0.05)
    sys.exit(f"waited in vain for {what}")


class Node:
    def __init__(self, folder, name, database):
        self.port = free_port()
        self.log = os.path.join(folder, name + ".log")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("HUNDI_")}
        self.environment |= {
            "HUNDI_DATABASE": database,
            "HUNDI_ENCRYPTION_KEY": "aHVuZGkgdGVzdHMgc2hhcmUgdGhpcyBvbmUga2V5ISE=",
            "HUNDI_RATE_LIMIT_READS": "0",
            "HUNDI_RATE_LIMIT_WRITES": "0",
        }
        self.folder = folder
        self.start()

    def start(self):
        arguments = [BINARY, "serve", "--metrics", "--listen", f"127.0.0.1:{self.port}"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(arguments, env=self.environment, cwd=self.folder, stdout=log, stderr=log)
        wait_for("a node", self.is_ready)

    def run(self, *arguments):
        return subprocess.run([BINARY, *arguments], env=self.environment, cwd=self.folder, check=True, capture_output=True, text=True).stdout

    def page(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def is_ready(self):
        return self.page("/readyz")[0] == 200

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            self.process.wait(timeout=60)


class Nginx:
    """The example, with the addresses, names and certificates of this test."""

    def __init__(self, folder, nodes, change=lambda site: site):
        self.port = free_port()
        for name in ("hundi.crt", "hundi.key"):
            assert name in open(os.path.join(ROOT, "deploy/nginx.conf")).read()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=pay.example.com"]
            + ["-keyout", f"{folder}/hundi.key", "-out", f"{folder}/hundi.crt"],
            check=True,
            capture_output=True,
        )
        site = open(os.path.join(ROOT, "deploy/nginx.conf")).read()
        for address, node in zip(("10.0.0.11:8080", "10.0.0.12:8080"), nodes):
            assert address in site
            site = site.replace(address, f"127.0.0.1:{node.port}")
        site = site.replace("listen 443 ssl", f"listen 127.0.0.1:{self.port} ssl").replace("/etc/nginx/", folder + "/")
        places = "".join(
            f"{place}_temp_path {folder}/{place};\n" for place in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        site = change(site)
        user = "user root;" if os.getuid() == 0 else ""
        with open(f"{folder}/nginx.conf", "w") as file:
            file.write(
                f"{user}\ndaemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/nginx.log;\nevents {{}}\n"
                f"http {{\naccess_log off;\n{places}{site}}}\n"
            )
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        command = [program, "-e", f"{folder}/nginx.log", "-c", f"{folder}/nginx.conf"]
        subprocess.run(command + ["-t"], check=True, capture_output=True)
        self.process = subprocess.Popen(command)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)


class Caller:
    """Sends requests one after the other, each until it has a final answer."""

    def __init__(self, port, key, source="127.0.0.1"):
        self.port = port
        self.key = key
        self.source = source
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.connection = None
        self.made = []
        self.failures = []
        self.repeated = 0
        # Seconds until the final answer of each request.
        self.waits = []

    def ask(self, method, path, body=None, idempotency_key=None):
        headers = {"Authorization": f"Bearer {self.key}"}
        if idempotency_key:
            headers |= {"Idempotency-Key": idempotency_key, "Content-Type": "application/json"}
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=20, source_address=(self.source, 0), context=self.context
            )
        try:
            self.connection.request(method, path, body and json.dumps(body), headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            self.connection = None
            return 0, repr(error)
        return answer.status, text

    def send(self):
        began = time.monotonic()
        self.create()
        self.waits.append(time.monotonic() - began)

    def create(self):
        key = str(uuid.uuid4())
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            status, text = self.ask("POST", "/v1/senders", SENDER, key)
            if status == 200:
                self.made.append(json.loads(text)["id"])
                return
            # Both are hundi's own words for "send it again".
            code = json.loads(text)["errors"][0]["code"] if status in (409, 503) and b"errors" in text else ""
            if code not in ("resource_locked", "service_unavailable"):
                self.failures.append(f"{status} {text[:300]}")
                return
            self.repeated += 1
            time.sleep(0.05)
        self.failures.append("no final answer")

    def run(self, is_over):
        while not is_over.is_set():
            self.send()


def load(port, key, trouble):
    callers = [Caller(port, key) for _ in range(CALLERS_COUNT)]
    is_over = threading.Event()
    threads = [threading.Thread(target=caller.run, args=(is_over,)) for caller in callers]
    for thread in threads:
        thread.start()
    try:
        trouble()
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    made = [made for caller in callers for made in caller.made]
    failures = [failure for caller in callers for failure in caller.failures]
    slowest = max(wait for caller in callers for wait in caller.waits)
    return made, failures, sum(caller.repeated for caller in callers), slowest


def senders(port, key):
    caller, ids, cursor = Caller(port, key), [], ""
    while True:
        status, text = caller.ask("GET", f"/v1/senders?limit=100{cursor}")
        assert status == 200, (status, text)
        page = json.loads(text)
        ids += [sender["id"] for sender in page["data"]]
        if not page["has_next"]:
            return ids
        cursor = f"&starting_after={ids[-1]}"


def requests_count(node):
    page = node.page("/metrics")[1]
    return sum(float(line.split()[-1]) for line in page.splitlines() if re.match(r"hundi_http_requests_total.*/v1/senders", line))


def main():
    folder = tempfile.mkdtemp(prefix="hundi-deploy-")
    os.chmod(folder, 0o755)
    cluster, nodes, nginx = None, [], None
    try:
        admin = os.environ.get("HUNDI_TEST_POSTGRES")
        if not admin:
            script = os.path.join(ROOT, "tests/postgres/cluster.sh")
            cluster = subprocess.Popen([script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
            admin = cluster.stdout.readline().split()[0]
        name = f"hundi_deploy_{os.getpid()}"
        subprocess.run(["psql", "-q", admin, "-c", f"CREATE DATABASE {name} TEMPLATE template0"], check=True)
        database = admin.rsplit("/", 1)[0] + "/" + name
        nodes = [Node(folder, f"node{index}", database) for index in range(2)]
        key = nodes[0].run("keys", "create", "--mode", "test").strip().splitlines()[-1]
        nginx = Nginx(folder, nodes)
        caller = Caller(nginx.port, key)
        wait_for("nginx", lambda: caller.ask("GET", "/v1/corridors")[0] == 200)
        assert caller.ask("GET", "/metrics")[0] == 404, "the figures are on the internet"
        assert caller.ask("GET", "/readyz")[0] == 200, "this machine may ask for it"
        # An address of this machine that is not the one allowed stands for all others.
        elsewhere = Caller(nginx.port, key, source="127.0.0.2")
        assert elsewhere.ask("GET", "/v1/corridors")[0] == 200
        assert elsewhere.ask("GET", "/readyz")[0] == 403, "whoever asks for /readyz takes turns at the store"
        shown = caller.ask("GET", "/v1/senders?limit=0")
        assert shown[0] == 400, shown

        def one_dies_and_comes_back():
            for node in nodes:
                time.sleep(1.5)
                node.kill()
                time.sleep(1.5)
                node.start()
            time.sleep(2.5)

        made, failures, repeated, _ = load(nginx.port, key, one_dies_and_comes_back)
        assert not failures, failures[:5]
        assert len(made) > 100, f"only {len(made)} requests were made"
        assert len(set(made)) == len(made), "a sender was answered to two requests"
        assert sorted(made) == sorted(senders(nginx.port, key)), "a request was lost or had two effects"
        shares = [requests_count(node) for node in nodes]
        assert all(share > 0 for share in shares), f"nginx did not come back to both nodes: {shares}"
        print(f"{len(made)} requests while both nodes were killed in turn, {repeated} sent again on hundi's word, none failed; {shares}")

        def one_freezes(seconds):
            nodes[0].freeze()
            time.sleep(seconds)
            nodes[0].kill()
            nodes[0].start()
            time.sleep(2.5)

        frozen, failures, repeated, slowest = load(nginx.port, key, lambda: one_freezes(FROZEN_SECONDS))
        assert not failures, failures[:5]
        assert len(set(frozen)) == len(frozen), "a sender was answered to two requests"
        assert sorted(made + frozen) == sorted(senders(nginx.port, key)), "a request was lost or had two effects"
        # The control: the frozen node was asked, and nginx gave it up.
        assert slowest > READ_SECONDS - 0.5, f"nobody asked the frozen node: {slowest:.1f} s"
        print(
            f"{len(frozen)} requests while a node was frozen for {FROZEN_SECONDS} s and restarted, {repeated} sent again on hundi's word, "
            f"none failed; the slowest took {slowest:.1f} s"
        )

        # The control: where nginx does not ask the other node, the same callers do notice.
        nginx.stop()

        def ask_one_only(site):
            changed = site.replace("error timeout non_idempotent", "error timeout")
            assert changed != site
            return changed

        nginx = Nginx(folder, nodes, ask_one_only)
        caller = Caller(nginx.port, key)
        wait_for("nginx", lambda: caller.ask("GET", "/v1/corridors")[0] == 200)
        failed = load(nginx.port, key, lambda: one_freezes(READ_SECONDS + 2))[1]
        assert failed, "the callers do not notice a frozen node at all"
        print(f"the control, without another node to ask: {len(failed)} failed, such as {failed[0][:60]}")

        # The control: with no node left, the same callers do notice.
        for node in nodes:
            node.kill()
        failed = load(nginx.port, key, lambda: time.sleep(1))[1]
        assert failed, "the callers notice nothing at all"
        for node in nodes:
            node.start()
        print(nodes[0].run("check").strip().splitlines()[-1])
        for node in nodes:
            log = open(node.log).read()
            assert "panicked" not in log, log
    finally:
        if nginx:
            nginx.stop()
        for node in nodes:
            node.stop()
        if cluster:
            cluster.stdin.close()
            cluster.wait()
        elif nodes:
            subprocess.run(["psql", "-q", admin, "-c", f"DROP DATABASE {name} WITH (FORCE)"], check=False)
        shutil.rmtree(folder, ignore_errors=True)


main()
