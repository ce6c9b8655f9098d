"""Runs commands on a terminal and draws it as an SVG file, in which each line
comes when it came, in SECONDS for all of them.

terminal.py OUT.svg SECONDS COMMAND...

Each COMMAND is a line of the shell; it is run as it is shown.
"""
import os
import pty
import re
import sys
import time

COLUMNS, ROWS = 124, 46
LETTER, LINE = 7.25, 17
COLOURS = {"31": "#e06c75", "32": "#7fb86e", "33": "#d4a24c", "34": "#6aa6e8", "35": "#c08bd0",
           "36": "#56b6c2", "90": "#8b949e", "91": "#e06c75", "92": "#7fb86e", "93": "#d4a24c",
           "94": "#6aa6e8", "95": "#c08bd0", "96": "#56b6c2"}
INK, SOFT, PAPER = "#d8dee4", "#8b949e", "#1b1f23"


class Screen:
    """Lines of letters, each with its style; a line has the time of its last
    change."""

    def __init__(self):
        self.lines, self.times, self.row, self.column, self.style = [[]], [0.0], 0, 0, ""

    def down(self, now):
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])
            self.times.append(now)

    def put(self, letter, now):
        line = self.lines[self.row]
        line.extend([(" ", "")] * (self.column + 1 - len(line)))
        line[self.column] = (letter, self.style)
        self.column += 1
        self.times[self.row] = now

    def control(self, code, kind):
        number = int(code) if code.isdigit() else 0
        if kind == "m":
            self.style = "" if code in ("", "0") else ";".join(filter(None, (self.style, code)))
        elif kind == "K":
            first = 0 if number else self.column
            self.lines[self.row][first:] = []
        elif kind == "A":
            self.row = max(0, self.row - max(1, number))
        elif kind == "G":
            self.column = max(0, number - 1)

    def write(self, text, now):
        for part in re.finditer(r"\x1b\[([\d;?]*)([A-Za-z])|(.|\n)", text):
            code, kind, letter = part.groups()
            if kind:
                self.control(code, kind)
            elif letter == "\n":
                self.down(now)
            elif letter == "\r":
                self.column = 0
            elif letter >= " ":
                self.put(letter, now)


def run(command, screen, start):
    screen.style = "32"
    screen.write("$ ", time.time() - start)
    screen.style = "1"
    screen.write(command + "\r\n", time.time() - start)
    screen.style = ""
    pid, file = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES=str(ROWS))
        os.environ.pop("NO_COLOR", None)
        os.execvp("sh", ["sh", "-c", f"stty cols {COLUMNS} rows {ROWS}; {command}"])
    pending = b""
    while True:
        try:
            data = os.read(file, 65536)
        except OSError:
            break
        if not data:
            break
        pending += data
        text = pending.decode("utf-8", "ignore")
        pending = b""
        screen.write(text, time.time() - start)
    if os.waitpid(pid, 0)[1]:
        sys.exit(f"terminal.py: {command} failed:\n" + "\n".join(map(plain, screen.lines)))


def plain(line):
    return "".join(letter for letter, _ in line).rstrip()


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def spans(line):
    """The line as elements, one for each style."""
    out, i = [], 0
    while i < len(line):
        end = i
        while end < len(line) and line[end][1] == line[i][1]:
            end += 1
        text = escaped("".join(letter for letter, _ in line[i:end]))
        codes = line[i][1].split(";")
        fill = next((COLOURS[c] for c in codes if c in COLOURS), SOFT if "2" in codes else None)
        attributes = (f' fill="{fill}"' if fill else "") + (' font-weight="600"' if "1" in codes else "")
        out.append(f"<tspan{attributes}>{text}</tspan>" if attributes else text)
        i = end
    return "".join(out)


def drawn(screen, seconds):
    lines = [(line, at) for line, at in zip(screen.lines, screen.times)]
    while lines and not plain(lines[-1][0]):
        lines.pop()
    last = max(at for _, at in lines) or 1
    width, height = int(COLUMNS * LETTER + 40), len(lines) * LINE + 44
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
           f'height="{height}" font-family="ui-monospace, \'DejaVu Sans Mono\', Menlo, Consolas, '
           'monospace" font-size="12">',
           "<title>a terminal</title>",
           "<style>text { animation: come 0.01s both; } @keyframes come { from { opacity: 0 } } "
           "@media (prefers-reduced-motion) { text { animation: none } }</style>",
           f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>']
    for i, (line, at) in enumerate(lines):
        line = line[:len(plain(line))]
        if line:
            out.append(f'<text x="20" y="{32 + i * LINE}" fill="{INK}" xml:space="preserve" '
                       f'style="animation-delay:{seconds * at / last:.2f}s">{spans(line)}</text>')
    return "\n".join(out + ["</svg>", ""])


def main(out, seconds, *commands):
    screen, start = Screen(), time.time()
    for command in commands:
        run(command, screen, start)
    with open(out, "w", encoding="utf-8") as file:
        file.write(drawn(screen, float(seconds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
