"""Follows a page as a reader does: walk.py PAGE [PREPARATION [JUDGE]].

In a clone of the sources, with sinter in PATH, it takes the fenced blocks of
PAGE from the first to the last: "sh" is run, and must end with status 0; a
block whose first line names a language and a file is written to that file;
"text" is printed by the "sh" before it, "..." standing for any characters or
lines.  PREPARATION is a script that first makes files that the reader has, JUDGE
one that looks at what is there in the end.  Nothing may be left in the clone
that git would show as untracked.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", re.M | re.S)


def git(folder, *words):
    return subprocess.run(["git", "-C", folder, *words], check=True,
                          capture_output=True, text=True).stdout


def clone(source, folder):
    """The sources as they are, with changes that are not committed, but for
    golden files, more than half of all, which no page reads."""
    os.mkdir(folder)
    for name in git(source, "ls-files", "-co", "--exclude-standard", "-z",
                    "--", ".", ":!tests/golden").split("\0"):
        if name and os.path.lexists(os.path.join(source, name)):
            to = os.path.join(folder, name)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy2(os.path.join(source, name), to, follow_symlinks=False)
    git(folder, "init", "-q")
    # In one file, not one for each.
    git(folder, "-c", "core.bigFileThreshold=1", "-c", "core.compression=0",
        "add", "-A", "-f")


def run(script, folder):
    done = subprocess.run(["sh", "-e", "-c", script], cwd=folder, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def pattern(text):
    lines = (r"(?:.*\n)*?" if line.strip() == "..." else
             r".*".join(map(re.escape, line.split("..."))) + r"\n"
             for line in text.splitlines())
    return r"(?:.*\n)*?" + "".join(lines)


def walk(page, folder):
    """What is wrong with the first block that fails; None: nothing."""
    printed = ""
    ran = 0
    for language, file, text in BLOCK.findall(page):
        if file:
            to = os.path.join(folder, file)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            with open(to, "w", encoding="utf-8") as out:
                out.write(text)
        elif language == "sh":
            ran += 1
            status, printed = run(text, folder)
            if status != 0:
                return f"status {status}:\n{text}{printed[-4000:]}"
        elif language == "text" and not re.match(pattern(text), printed):
            return f"not printed:\n{text}but:\n{printed[-4000:]}"
    left = git(folder, "status", "--porcelain", "--untracked-files=all")
    left = [line for line in left.splitlines() if not line.startswith("A ")]
    if left:
        return "changed or untracked in the clone:\n" + "\n".join(left)
    return None if ran else "no block is run"


def main():
    source = os.environ["SINTER_SOURCE"]
    os.environ["PATH"] = (os.path.dirname(os.environ["SINTER"]) + ":" +
                          os.environ["PATH"])
    with open(sys.argv[1], encoding="utf-8") as file:
        page = file.read()
    with tempfile.TemporaryDirectory(prefix="sinter-walk-") as work:
        folder = os.path.join(work, "sinter")
        os.environ["XDG_CACHE_HOME"] = os.path.join(work, "cache")
        os.environ["CCACHE_BASEDIR"] = folder
        try:
            clone(source, folder)
        except subprocess.CalledProcessError as failed:
            print(failed.stderr, file=sys.stderr)
            return 77  # no git, or sources without it
        preparation, judge = (sys.argv[2:] + [None, None])[:2]
        if preparation:
            subprocess.run([preparation], cwd=folder, check=True)
        wrong = walk(page, folder)
        if judge and not wrong:
            subprocess.run([judge], cwd=folder, check=True)
    if wrong:
        print(f"{sys.argv[1]}: {wrong}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
