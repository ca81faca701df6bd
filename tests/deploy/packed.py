#!/usr/bin/env python3
"""Checks that every file which a packed document names was packed too: packed.py FOLDER.

FOLDER has the layout of the project: README.md, docs/, deploy/. Names are links, and words in backticks that begin with one
of the folders for operators. Prints what is missing and ends with 1."""

import os
import re
import sys

LINK = re.compile(r'\]\(([^)#\s]+)[^)]*\)|src="([^"]+)"')
NAME = re.compile(r"`((?:bench|data|deploy|docs|examples)/[\w./-]*|[\w.]+\.(?:md|toml))`")
# The settings file of one's own, which is not there until it is written.
OWN = {"hundi.toml"}


def named(folder, path):
    """The paths, from the folder, that a document names."""
    with open(os.path.join(folder, path), encoding="utf-8") as file:
        text = file.read()
    for match in LINK.finditer(text):
        target = match[1] or match[2]
        # The guides link to pages of a running server.
        if not re.match(r"[a-z]+:|/", target):
            yield os.path.normpath(os.path.join(os.path.dirname(path), target))
    for match in NAME.finditer(text):
        if match[1] not in OWN:
            yield os.path.normpath(match[1])


def main(folder):
    missing, count = set(), 0
    for place, _, files in os.walk(folder):
        for file in files:
            if not file.endswith((".md", ".toml")):
                continue
            path = os.path.relpath(os.path.join(place, file), folder)
            for name in named(folder, path):
                count += 1
                if not os.path.exists(os.path.join(folder, name)):
                    missing.add(f"{path} names {name}, which is not packed")
    for line in sorted(missing):
        print(line, file=sys.stderr)
    if count < 20:
        sys.exit(f"only {count} names were found in {folder}")
    print(f"{count} names of files in {os.path.basename(folder)} lead to a file")
    sys.exit(1 if missing else 0)


main(sys.argv[1])
