"""Runs the examples of a page and compares what they print: pages.py PAGE.

An example is an indented block: a line that begins with "sinter" or "$ sinter" is
a command, run where models/ is; the lines below one with a $ are
what it prints, and "..." stands for any lines.  Numbers of machine code are
those of the version of NVRTC that the page names; with another, or none, they
are not compared, and what needs a program that is not here is left out.  Lines
of kernels' text that a page quotes are those of the file that is emitted.
"""
import os
import re
import subprocess
import sys
import tempfile

UNAVAILABLE = 4


def blocks(page):
    """Runs of indented lines, without the indentation."""
    block = []
    for line in page.splitlines() + ["end"]:
        if line.startswith("    ") or (block and not line.strip()):
            block.append(line[4:])
            continue
        if block:
            yield block
        block = []


def examples(page):
    """Pairs of a command and the lines that it prints, None: any."""
    for block in blocks(page):
        command, prints = None, None
        for line in block:
            shown = line.removeprefix("$ ")
            if shown.startswith("sinter "):
                if command:
                    yield command, prints
                command, prints = shown, [] if shown != line else None
            elif prints is not None:
                prints.append(line)
        if command:
            yield command, prints


def pattern(prints):
    return "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n"
        for line in prints)


def mismatch(prints, printed):
    """The first line of an example that is not printed; None where all are."""
    while prints and not prints[-1].strip():
        prints = prints[:-1]
    if re.fullmatch(pattern(prints), printed):
        return None
    for i in range(len(prints)):
        if not re.match(pattern(prints[:i + 1]), printed):
            return prints[i]
    return "the end of the example"


def run(command):
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def compiler(version):
    """Whether it is NVRTC of this version that says what machine code takes."""
    status, printed, _ = run(
        "sinter show ptx --kernel='k02*' models/resnet9.net | head -1")
    return printed.strip().endswith(version)


def of_machine_code(command):
    return re.search(r"show (sass|ptx|lines) ", command)


def misquoted(page):
    """What stands as "// NAME.cu:LINE  TEXT", and is another line there."""
    for name, line, text in re.findall(r"// (\w+)\.cu:(\d+)  (.+)$", page, re.M):
        run(f"sinter build --emit=c -o emitted models/{name}.net")
        with open(f"emitted/{name}.cu") as file:
            if file.read().splitlines()[int(line) - 1].strip() != text:
                yield f"line {line} of {name}.cu is not '{text}'"


def check(command, prints, comparable):
    """What is wrong with an example; None where nothing is."""
    status, printed, said = run(command)
    if status == UNAVAILABLE and of_machine_code(command):
        print(f"left out: {command}: {said.strip()}")
        return None
    if status != 0:
        return f"status {status}: {said.strip()}"
    if prints is None:
        return None
    if not comparable and of_machine_code(command):
        return None
    if not comparable:
        prints = [line for line in prints if not line.startswith("// sm_")]
        printed = re.sub(r"^// sm_.*\n", "", printed, flags=re.M)
    line = mismatch(prints, printed)
    return line and f"does not print '{line}' there:\n{printed[:4000]}"


def main():
    with open(sys.argv[1]) as file:
        page = file.read()
    here = tempfile.mkdtemp(prefix="sinter-pages-")
    os.chdir(here)
    os.symlink(os.path.join(os.environ["SINTER_SOURCE"], "models"), "models")
    os.environ["PATH"] = (os.path.dirname(os.environ["SINTER"]) + ":" +
                          os.environ["PATH"])
    named = re.search(r"by (NVRTC [0-9.]+)$", page, re.M)
    comparable = named is None or compiler(named.group(1))
    count, failed = 0, 0
    for wrong in misquoted(page):
        print(f"{sys.argv[1]}: {wrong}", file=sys.stderr)
        failed += 1
    for command, prints in examples(page):
        wrong = check(command, prints, comparable)
        count += 1
        failed += wrong is not None
        if wrong:
            print(f"{sys.argv[1]}: {command}\n  {wrong}", file=sys.stderr)
    subprocess.run(["rm", "-r", here], check=True)
    if count == 0:
        print(f"{sys.argv[1]} has no examples", file=sys.stderr)
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
