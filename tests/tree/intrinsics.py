#!/usr/bin/env python3
# The table of intrinsics and the prelude agree: each of the three preludes
# defines each intrinsic with its number of arguments, and each function or
# macro of the prelude that codegen writes into kernels is in the table.
import glob
import os
import re
import sys

SOURCE = os.environ["SINTER_SOURCE"]
PRELUDES = {"cuda": ["cuda", "block", "prelude"], "host": ["host", "prelude"],
            "simt": ["host", "simt", "block", "prelude"]}
# Of <math.h>, which CUDA has without a header.
MATH = {"cosf", "expf", "floorf", "logf", "rsqrtf", "sinf", "sqrtf", "tanhf"}
# The frame of a kernel, which print.c and entry_points.c write around its tree.
FRAME = {"ARG", "FOR_BLOCKS", "ASSUME", "HOST_ENTRY", "HOST_KERNEL", "HOST_LIKE",
         "HOST_FAMILY", "IS_NEEDED", "KERNEL", "MERGED", "MERGED_HOST",
         "MERGED_KERNEL", "PHASED", "SPEC_VALUES"}


def text(path):
    with open(os.path.join(SOURCE, path)) as file:
        return file.read().replace("\\\n", "")


def count(arguments):
    arguments = arguments.strip()
    return arguments.count(",") + 1 if arguments else 0


def definitions(name):
    """Maps each name that a header defines to its numbers of arguments."""
    all = text(f"runtime/prelude/{name}.h")
    found, alias = {}, {}
    functions = re.findall(r"^DEVICE [\w ]+?(\w+)\(([^)]*)\)", all, re.M)
    macros = re.findall(r"^ *# *define (\w+)\(([^)]*)\)", all, re.M)
    for word, arguments in functions + macros:
        found.setdefault(word, set()).add(count(arguments))
    for word, other in re.findall(r"^ *# *define (\w+) (\w+)$", all, re.M):
        alias[word] = other
    return found, alias


def prelude(names):
    found, alias = {}, {}
    for name in names:
        own, others = definitions(name)
        for word, numbers in own.items():
            found.setdefault(word, set()).update(numbers)
        alias.update(others)
    for word, other in alias.items():
        if other in found:
            found.setdefault(word, set()).update(found[other])
    return found


def written():
    """The words that codegen writes before a parenthesis."""
    words = set()
    for path in glob.glob("codegen/**/*.c", root_dir=SOURCE, recursive=True):
        for string in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text(path)):
            words.update(re.findall(r"\b(\w+)\(", string))
    return words


table = dict(re.findall(r"^INTRINSIC\((\w+), (\d+),",
                        text("codegen/kernel/intrinsics.def"), re.M))
faults, known = [], set()
for which, names in PRELUDES.items():
    found = prelude(names)
    known.update(found)
    for word, number in table.items():
        if word not in MATH and int(number) not in found.get(word, set()):
            faults.append(f"{which}: {word} with {number} arguments is not "
                          f"defined, but with {found.get(word, 'none')}")
for word in sorted(written() & known - set(table) - FRAME):
    faults.append(f"{word} is written and not in the table")
print("\n".join(faults), file=sys.stderr)
sys.exit(len(faults) > 0)
