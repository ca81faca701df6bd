"""deploy/compose.yaml reads, and every file, secret and setting that it names exists. Then its services run as it says, without its
containers: the secrets are made by the commands at its top, PostgreSQL and nginx are this machine's, and the names of the services are
addresses of loopback. What only an engine does is not tried: the image, the user, and what is mounted read-only."""

import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

try:
    import yaml
except ImportError:
    print("skipped: deploy/compose.yaml is not read without python3-yaml")
    sys.exit()

folder = pathlib.Path("deploy")
compose = yaml.safe_load((folder / "compose.yaml").read_text())
services = compose["services"]
assert {"node1", "node2", "postgres", "nginx"} == set(services), set(services)
settings = pathlib.Path("hundi.example.toml").read_text() + "encryption_key database"
for name, service in services.items():
    if build := service.get("build"):
        assert (folder / build["context"] / build["dockerfile"]).is_file(), build
    else:
        assert ":" in service["image"], f"{name}: {service['image']} has no version"
    for secret in service.get("secrets", []):
        assert secret in compose["secrets"], f"{name}: the secret {secret} is not declared"
    for other in service.get("depends_on", []):
        assert other in services, f"{name} depends on {other}"
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        is_there = (folder / source).exists() if source.startswith(".") else source in compose["volumes"]
        assert is_there, f"{name}: {source} is not there"
    for variable, value in service.get("environment", {}).items():
        if variable.endswith("_FILE"):
            secret = value.removeprefix("/run/secrets/")
            assert secret in service["secrets"], f"{name}: {variable} names {value}"
        if variable.startswith("HUNDI_"):
            setting = variable.removeprefix("HUNDI_").removesuffix("_FILE").lower()
            assert setting in settings, f"{name}: {variable} is no setting"
ignored = pathlib.Path("deploy/Dockerfile.dockerignore").read_text().split()
assert "!build.rs" in ignored, "the image cannot be built without build.rs"
print("deploy/compose.yaml reads")


def locations(path):
    """What a configuration of nginx says of each path; the host's name and port may be called differently."""
    text = re.sub(r"^\s*#.*\n", "", (folder / path).read_text(), flags=re.M).replace("$http_host", "$host")
    return re.findall(r"^  location [^}]*}", text, re.M)


assert locations("nginx.conf") == locations("compose/nginx.conf"), "the two examples of nginx differ in what they do with a path"

# The other node has to be asked while the caller still waits: before a node's own limit, which is ANSWER_SECONDS, and for waiting
# requests that much after the longest wait.
ANSWER_SECONDS, WAIT_SECONDS_MAX, DRAIN_SECONDS, FINISH_SECONDS = 10, 30, 5, 20
config = pathlib.Path("src/config.rs").read_text() + "".join(path.read_text() for path in pathlib.Path("src/config").glob("*.rs"))
for text in locations("nginx.conf"):
    if "proxy_pass" not in text:
        continue
    place = re.search(r"location (?:= )?(\S+)", text).group(1)
    limit = ANSWER_SECONDS + (WAIT_SECONDS_MAX if place == "/v1/events" else 0)
    seconds = int(re.search(r"proxy_read_timeout (\d+)s;", text).group(1))
    assert limit - 2 < seconds < limit, f"{place}: nginx waits {seconds} s, and a node answers within {limit} s"
    assert "proxy_connect_timeout 1s;" in text, place
# Who stops a node waits for longer than the node takes.
STOP_SECONDS = DRAIN_SECONDS + FINISH_SECONDS
unit = (folder / "hundi.service").read_text()
waits = [int(services["node1"]["stop_grace_period"].removesuffix("s")), int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.M).group(1))]
assert all(seconds > STOP_SECONDS for seconds in waits), f"a stop takes {STOP_SECONDS} s, and is waited for {waits}"
assert re.search(r"^Type=notify$", unit, re.M), "systemd does not learn when the service is ready, or that it stops"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def get(url, key=None):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, b""
    except OSError:
        return 0, b""


def wait_for(what, probe):
    end = time.monotonic() + 60
    while not probe():
        if time.monotonic() > end:
            sys.exit(f"waited in vain for {what}")
        time.sleep(0.05)


WAIT_SECONDS = 12  # longer than nginx waits for other answers
binary = pathlib.Path("target/debug/hundi").resolve()
work, running, cluster = pathlib.Path(tempfile.mkdtemp(prefix="hundi-compose-")), [], None
work.chmod(0o755)
try:
    # The secrets, as the file's head makes them. There is no user 10001 here.
    lines = [line.removeprefix("#   ") for line in (folder / "compose.yaml").read_text().splitlines() if line.startswith("#   ")]
    making = [line for line in lines if "deploy/secrets" in line and not line.startswith("chown")]
    assert len(making) == 4, making
    for line in making:
        subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=work, check=True)
    secrets = work / "deploy/secrets"
    assert {secret["file"] for secret in compose["secrets"].values()} == {f"./secrets/{file.name}" for file in secrets.iterdir()}

    # PostgreSQL with the role, database and password that its image would make.
    cluster = subprocess.Popen(["tests/postgres/cluster.sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    admin = cluster.stdout.readline().split()[0]
    host, port = re.search(r"@([^:/]+):(\d+)/", admin).groups()
    names, password = services["postgres"]["environment"], (secrets / "postgres_password").read_text()
    role, database = names["POSTGRES_USER"], names["POSTGRES_DB"]
    for sql in (f"CREATE ROLE {role} LOGIN PASSWORD '{password}'", f"CREATE DATABASE {database} OWNER {role}"):
        subprocess.run(["psql", "-q", admin, "-c", sql], check=True)
    kind, check = services["postgres"]["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    subprocess.run(check, shell=True, env=dict(os.environ, PGHOST=host, PGPORT=port), check=True)
    url = secrets / "database"
    assert "@postgres/" in url.read_text()
    url.write_text(url.read_text().replace("@postgres/", f"@{host}:{port}/"))

    # The nodes, with the image's command.
    image = (folder / "Dockerfile").read_text()
    program, arguments = (json.loads(re.search(rf"^{word} (.*)$", image, re.M).group(1)) for word in ("ENTRYPOINT", "CMD"))
    assert program == ["hundi"], program
    own = {name: value for name, value in os.environ.items() if not name.startswith("HUNDI_")}
    site, keys = (folder / "compose/nginx.conf").read_text(), []
    for name in ("node1", "node2"):
        port = free_port()
        environment = own | {key: value.replace("/run/secrets", str(secrets)) for key, value in services[name]["environment"].items()}
        address, listens_on = re.fullmatch(r"(.*):(\d+)", environment["HUNDI_LISTEN"]).groups()
        assert address == "0.0.0.0", "nginx in another container does not reach it"
        environment["HUNDI_LISTEN"] = f"127.0.0.1:{port}"
        home = work / name
        home.mkdir()
        log = open(work / f"{name}.log", "wb")
        running.append(subprocess.Popen([binary, *arguments], env=environment, cwd=home, stdout=log, stderr=log))
        wait_for(f"{name}: {work / name}.log", lambda: get(f"http://127.0.0.1:{port}/readyz")[0] == 200)
        assert f"{name}:{listens_on}" in site, f"nginx does not know {name}"
        site = site.replace(f"{name}:{listens_on}", f"127.0.0.1:{port}")
        make = shlex.split(next(line for line in lines if "hundi keys create" in line))
        made = subprocess.run([binary, *make[make.index("hundi") + 1:]], env=environment, cwd=home, check=True, capture_output=True, text=True)
        keys.append(made.stdout.strip().splitlines()[-1])

    # nginx, asked where the file publishes it.
    published, inner = services["nginx"]["ports"][0].removeprefix("127.0.0.1:").split(":")
    assert services["node1"]["environment"]["HUNDI_PUBLIC_URL"] == f"http://127.0.0.1:{published}"
    front = free_port()
    assert f"listen {inner};" in site
    (work / "site.conf").write_text(site.replace(f"listen {inner};", f"listen 127.0.0.1:{front};"))
    places = "".join(f"{place}_temp_path {work}/{place};" for place in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.getuid() == 0 else ""
    (work / "nginx.conf").write_text(
        f"{user} daemon off; pid {work}/pid; error_log {work}/nginx.log; events {{}} http {{ access_log off; {places} include {work}/site.conf; }}")
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    running.append(subprocess.Popen([nginx, "-e", f"{work}/nginx.log", "-c", f"{work}/nginx.conf"]))
    base = f"http://127.0.0.1:{front}"
    wait_for("nginx", lambda: get(f"{base}/healthz")[0] == 200)
    # Each node knows the key that was made at the other one.
    for key in keys * 2:
        assert get(f"{base}/v1/corridors", key)[0] == 200
    begun = time.monotonic()
    assert get(f"{base}/v1/events?wait={WAIT_SECONDS}", keys[0])[0] == 200, "a request that waits for an event is cut off"
    assert time.monotonic() - begun >= WAIT_SECONDS
    # The disk is read-only but for the image's volume, where a first start leaves the first key.
    place = re.search(r"^WORKDIR (/var.*)$", image, re.M).group(1)
    assert services["node1"]["read_only"] and f"VOLUME {place}\n" in image
    written = [file.name for name in ("node1", "node2") for file in (work / name).iterdir()]
    assert written in ([], ["hundi.first-key"]), written
    print("deploy/compose.yaml: its services ran as it says, without its containers")
finally:
    for process in reversed(running):
        process.terminate()
        process.wait(timeout=60)
    if cluster:
        cluster.stdin.close()
        cluster.wait()
    shutil.rmtree(work)
