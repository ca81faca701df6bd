"""Runs a command and writes what it prints, line by line as it came, as an animated SVG.

Arguments: the SVG's path, then the command. Pauses are kept up to a second. With --check before the command, fails where
it prints other lines than the SVG shows; numbers, IDs and secrets may differ.
"""

import html
import re
import subprocess
import sys
import time

IS_CHECK = sys.argv[2] == "--check"
PATH, COMMAND = sys.argv[1], sys.argv[3 if IS_CHECK else 2:]
LINE_HEIGHT, CHARACTER_WIDTH, MARGIN = 18, 7.85, 16
PAUSE_SECONDS_MAX, LINE_SECONDS_MIN = 1.0, 0.12
COLUMNS_MAX = 112

lines = [(0.0, "$ " + " ".join(COMMAND[:1] + COMMAND[1:]).replace("target/debug/", ""))]
process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True, bufsize=1)
at, before = 0.8, time.monotonic()
for line in process.stdout:
    now = time.monotonic()
    at += max(LINE_SECONDS_MIN, min(PAUSE_SECONDS_MAX, now - before))
    before = now
    lines.append((at, line.rstrip("\n")))
if process.wait() != 0:
    sys.exit("the command failed")


def cut(line):
    return line[:COLUMNS_MAX] + ("…" if len(line) > COLUMNS_MAX else "")


def coloured(line):
    text = html.escape(cut(line))
    text = re.sub(r"(https?://\S+)", r'<tspan class="link">\1</tspan>', text)
    text = re.sub(r"(verified$|(?<=UTR )\S+)", r'<tspan class="good">\1</tspan>', text)
    return re.sub(r"(webhook \S+)", r'<tspan class="quiet">\1</tspan>', text)


def alike(line):
    """A line as the SVG shows it, without what differs from run to run."""
    line = re.sub(r"TEST[A-Z0-9]+|[0-9A-HJKMNP-TV-Z]{26}|\bT[1-9A-HJ-NP-Za-km-z]{33}\b", "#", line)
    # Behind an ID in a link stands a mark, which may be cut off.
    return re.sub(r"[0-9][0-9.,]*", "#", re.sub(r"(#\.)[0-9a-f]*…?", r"\1#", line)).rstrip()


def check():
    """Several webhooks may arrive in another order, and so may stand between other lines."""
    with open(PATH) as file:
        texts = re.findall(r"<text[^>]*>(.*?)</text>", file.read())
    shown = {alike(html.unescape(re.sub(r"<[^>]+>", "", text))) for text in texts}
    printed = {alike(cut(line)) for _, line in lines}
    if shown != printed:
        left, new = sorted(shown - printed), sorted(printed - shown)
        sys.exit("\n".join([f"The command prints other lines than {PATH} shows. Run docs/images/screens.sh.",
                            *(f"- {line}" for line in left), *(f"+ {line}" for line in new)]))


if IS_CHECK:
    check()
    sys.exit()
width = int(COLUMNS_MAX * CHARACTER_WIDTH) + 2 * MARGIN
height = len(lines) * LINE_HEIGHT + 2 * MARGIN
rows = []
for number, (shown_at, line) in enumerate(lines):
    y = MARGIN + (number + 1) * LINE_HEIGHT - 5
    rows.append(f'<text x="{MARGIN}" y="{y}" xml:space="preserve" style="animation-delay:{shown_at:.2f}s">{coloured(line)}</text>')
svg = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="What hundi demo prints">
<style>
rect {{ fill: #11161c; }}
text {{ fill: #dfe5ec; font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; opacity: 0; animation: show 0.15s forwards; }}
.good {{ fill: #79d9a0; font-weight: 700; }}
.link {{ fill: #8ab4f8; }}
.quiet {{ fill: #93a0ae; }}
@keyframes show {{ to {{ opacity: 1; }} }}
@media (prefers-reduced-motion: reduce) {{ text {{ opacity: 1; animation: none; }} }}
</style>
<rect width="{width}" height="{height}" rx="8"/>
{chr(10).join(rows)}
</svg>
"""
with open(PATH, "w") as file:
    file.write(svg)
