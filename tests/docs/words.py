"""Holds texts to the rules of words.txt: words.py [TEXT...].

Texts are the pages, the help of sinter and of a trainer, the messages in the
sources, the comments that are emitted, and those of the held folders.  A finding names the file, the line,
the rule and the sentence.  Names in backticks and examples are left out.  A
question may begin with What.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

SOURCE = os.environ["SINTER_SOURCE"]
SINTER = os.environ["SINTER"]
EMITTED = ["resnet9", "gpt_nano"]
FOLDERS = ["base", "ir", "frontend", "passes", "codegen", "tools", "runtime"]


class Rules:
    def __init__(self, path):
        self.pending, self.bound, self.rule = set(), {}, []
        self.relative, self.held = [], []
        begins, passive = [], []
        for line in open(path):
            word, _, rest = line.strip().partition(" ")
            if word == "pending":
                self.pending.add(rest)
            elif word == "bound":
                group, count = rest.split()
                self.bound[group] = float(count)
            elif word == "held":
                self.held += rest.split()
            elif word == "begins":
                begins.append(rest)
            elif word == "passive":
                passive.append(rest)
            elif word == "relative":
                self.relative.append(re.compile(rest, re.I))
            elif word == "retired":
                pattern, _, term = rest.rpartition(" = ")
                self.rule.append((re.compile(pattern, re.I), "say " + term))
            elif word and not word.startswith("#"):
                sys.exit(f"{path}: no rule '{line.strip()}'")
        self.begins = re.compile(r"(%s)\b" % "|".join(begins))
        self.rule.append((re.compile(
            r"\b(is|are|was|were|be|been|being)( \w+ly| not)? (%s)\b" %
            "|".join(passive), re.I), "passive: name who does it"))


# ---- from a text to sentences: pairs of a line and a string ----

def sentences(pieces):
    """Splits pieces of prose, (line, text), that follow one another."""
    text, lines = "", []
    for line, piece in pieces:
        text += piece + "\n"
        lines += [line] * (len(piece) + 1)
    start = 0
    for end in re.finditer(r"[.:;?!]['\")*]*\s+(?=[\"'(*]*[A-Z])|\Z", text):
        sentence = text[start:end.end()]
        skip = len(sentence) - len(sentence.lstrip(" \n\"'(*"))
        if sentence.strip():
            yield lines[start + skip], " ".join(sentence.split())
        start = end.end()


def newlines(match):
    """Something else in place of a match, which keeps the number of lines."""
    return "`_`" + "\n" * match.group().count("\n")


def without_names(text):
    return re.sub(r"`[^`]*`", "`_`", text)


def of_page(path):
    """The sentences of Markdown; each cell of a table is one."""
    text = re.sub(r"^```.*?^```$", newlines, open(path).read(), flags=re.M | re.S)
    text = re.sub(r"`(?:[^`\n]|\n(?!\n))+`", newlines, text)
    text = re.sub(r"\]\([^)]*\)", newlines, text)
    paragraph = []
    for number, line in enumerate(text.splitlines() + [""], 1):
        item = re.match(r" *([-*+]|\d+\.) |#+ |> ", line)
        if not line.strip() or item or line.startswith("|"):
            yield from sentences(paragraph)
            paragraph = []
        if re.match("    ", line) and not paragraph:
            continue
        if line.lstrip().startswith("|"):
            for cell in line.replace("\\|", "/").split("|")[1:-1]:
                cell = cell.strip()
                yield from sentences([(number, cell[:1].upper() + cell[1:])])
        elif line.strip():
            line = line[item.end():] if item else line
            paragraph.append((number, line.strip()))


def of_help(text):
    """The sentences of help: a line may have a name, two spaces and a text."""
    paragraph = []
    for number, line in enumerate(text.splitlines() + [""], 1):
        row = re.match(r" +[-\w]\S*(?: \S+)*  +(\S.*)", line)
        if row or not line.strip():
            yield from sentences(paragraph)
            paragraph = []
        if row:
            line = row.group(1)[:1].upper() + row.group(1)[1:]
        paragraph.append((number, without_names(line.strip())))


STRING = r'"((?:[^"\\\n]|\\.)*)"'
CODE = re.compile(r"[{}]|;$|; *\n|\w\(|#\w|->|==|SINTER")


def of_strings(path):
    """The sentences among the strings of C; neighbours are one."""
    text = re.sub(r"(?<![\"\w:])//.*|#include.*", "", open(path).read())
    for run in re.finditer(STRING + r"(?:\s*" + STRING + ")*", text):
        string = "".join(m.group(1) for m in re.finditer(STRING, run.group()))
        string = re.sub(r"\\n|\\t", "\n", string).replace('\\"', '"')
        string = without_names(string)
        if CODE.search(string) or len(re.findall(r"\b[a-z]{2,}\b", string)) < 3:
            continue
        line = text.count("\n", 0, run.start()) + 1
        yield from sentences([(line, string)])


def of_comments(path, behind_code=True):
    """The sentences of comments; one behind code is a block of its own."""
    mark = "//" if re.search(r"\.(c|cu|h|def)$", path) else "#"
    block = []
    for number, line in enumerate(open(path).read().splitlines() + [""], 1):
        comment = re.match(rf"(\s*|.*\s){mark}(?!!|include)\s?(.*)", line)
        if not comment or comment.group(1).strip() or not comment.group(2):
            yield from sentences(block)
            block = []
        if comment and (behind_code or not comment.group(1).strip()):
            block.append((number, without_names(comment.group(2))))


SOURCES = re.compile(r"\.(c|h|def|net|sh)$|bench/fetch$|quickstart$|run-tests$")


def of_folder(folder):
    """The sources of a folder, or one file."""
    paths = [folder] if os.path.isfile(folder) else glob.glob(
        f"{folder}/**", recursive=True)
    return [(p, of_comments(p)) for p in sorted(paths) if SOURCES.search(p)]


# ---- the texts: a name, its group and its sentences ----

def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


def help_texts(trainer):
    usage = output(SINTER, "help")
    yield "sinter help", of_help(usage)
    for command in re.findall(r"^  (\w+) ", usage, re.M):
        if command != "version":
            yield f"sinter {command} --help", of_help(
                output(SINTER, command, "--help"))
    yield "TRAINER --help", of_help(output(trainer, "--help"))


def texts(work, held):
    for path in sorted(glob.glob("*.md") + glob.glob("docs/*.md") +
                       ["bench/README.md", "tests/pytorch/README.md"]):
        yield path, "pages", [(path, of_page(path))]
    trainer = os.path.join(work, "mlp")
    output(SINTER, "build", "models/mlp.net", "-o", trainer)
    yield "help", "help", help_texts(trainer)
    for folder in FOLDERS:
        paths = sorted(glob.glob(f"{folder}/**/*.c", recursive=True) +
                       glob.glob(f"{folder}/**/*.def", recursive=True))
        yield folder, "messages", [(p, of_strings(p)) for p in paths]
    for folder in held:
        yield f"comments of {folder}", "comments", of_folder(folder)
    for model in EMITTED:
        output(SINTER, "build", "--emit=c", "-o", work, f"models/{model}.net")
    yield "emitted", "comments", [
        (p, of_comments(p, behind_code=False))
        for p in sorted(glob.glob(f"{work}/*.c*"))]


def findings(rules, sources):
    """The sentences that break a rule, those with a free relative, words."""
    broken, relatives, words = [], [], 0
    for where, found in sources:
        for line, sentence in found:
            words += len(sentence.split())
            place = f"{where}:{line}"
            asks = sentence.endswith("?")
            if not asks and rules.begins.match(sentence.lstrip("\"'(* ")):
                broken.append((place, "begins with this word", sentence))
            for pattern, advice in rules.rule:
                if pattern.search(sentence):
                    broken.append((place, advice, sentence))
            relatives += [(place, "free relative", sentence)
                          for pattern in rules.relative
                          for _ in pattern.finditer(sentence) if not asks]
    return broken, relatives, words


def main():
    os.chdir(SOURCE)
    rules = Rules("tests/docs/words.txt")
    wanted, seen, failed = sys.argv[1:], set(), False
    with tempfile.TemporaryDirectory(prefix="sinter-words-") as work:
        for name, group, sources in texts(work, rules.held):
            seen.add(name)
            if wanted and name not in wanted:
                continue
            broken, relatives, words = findings(rules, sources)
            per = 1000 * len(relatives) / max(words, 1)
            over = len(relatives) > max(2, rules.bound[group] * words / 1000)
            print(f"{name}: {words} words, {per:.1f} free relatives per 1,000,"
                  f" {len(broken)} other findings")
            if name in rules.pending and not wanted:
                continue
            for place, rule, sentence in broken + sorted(set(relatives * over)):
                print(f"{place}: {rule}: {sentence}", file=sys.stderr)
            if over:
                print(f"{name}: {per:.1f} free relatives per 1,000 words, "
                      f"at most {rules.bound[group]}", file=sys.stderr)
            failed |= over or bool(broken)
    for name in sorted(set(wanted) - seen):
        sys.exit(f"no text {name}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
