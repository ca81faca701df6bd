"""deploy/compose.yaml reads, and every file, secret and setting that it names exists."""

import pathlib
import sys

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
