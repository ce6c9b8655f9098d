"""Subfolders form no cycle, by what sources include and what objects call.

A subfolder is one node. A file directly in a folder is a node of its own, with
its header: some are below the subfolders, as runtime.h, others above, as
main.c. The argument is the build folder.
"""
import collections
import os
import re
import subprocess
import sys

SOURCE = os.environ["SINTER_SOURCE"]
FOLDERS = ["base", "ir", "frontend", "passes", "codegen", "runtime", "tools"]


def node_of(path):
    top, *inner = path.split("/")
    return f"{top}/{inner[0].split('.')[0]}" + "*" * (len(inner) == 1)


def files_below(root, ending):
    for folder, _, names in os.walk(root):
        for name in names:
            if re.search(ending, name):
                yield os.path.join(folder, name)


def includes(edges):
    for top in FOLDERS:
        for path in files_below(os.path.join(SOURCE, top), r"\.(c|h|def)$"):
            path = os.path.relpath(path, SOURCE)
            for line in open(os.path.join(SOURCE, path), errors="replace"):
                found = re.match(r'#include "([^"]+)"', line)
                if found and os.path.exists(os.path.join(SOURCE, found[1])):
                    edges[node_of(path)][node_of(found[1])] = (path, found[1])


def calls(edges, build):
    """Of each library and of the compiler: CMakeFiles/NAME.dir/PATH.c.o."""
    objects = {}
    for path in files_below(os.path.join(build, "CMakeFiles"), r"\.c\.o$"):
        source = re.sub(r".*?/CMakeFiles/\w+\.dir/", "", path)[:-2]
        if os.path.exists(os.path.join(SOURCE, source)):
            objects[path] = source
    listed = subprocess.run(["nm", "-gA", *objects], stdout=subprocess.PIPE,
                            check=True, text=True).stdout
    defines, needs = {}, []
    for line in listed.splitlines():
        path, rest = line.split(":", 1)
        *_, kind, symbol = rest.split()
        if kind == "U":
            needs.append((objects[path], symbol))
        else:
            defines[symbol] = objects[path]
    for source, symbol in needs:
        if symbol in defines:
            other = node_of(defines[symbol])
            edges[node_of(source)][other] = (source, symbol)


def reached(edges, start):
    seen, left = set(), [start]
    while left:
        for node in edges[left.pop()]:
            if node not in seen:
                seen.add(node)
                left.append(node)
    return seen


def main(build):
    edges = collections.defaultdict(dict)
    includes(edges)
    calls(edges, build)
    for node in edges:
        edges[node].pop(node, None)
    reach = {node: reached(edges, node) for node in list(edges)}
    bad = False
    for node in sorted(reach):
        if node.endswith("*") or node not in reach[node]:
            continue
        bad = True
        for other, (source, used) in sorted(edges[node].items()):
            if node in reach.get(other, ()):
                print(f"{node} and {other} form a cycle: {source} uses {used}")
    return bad


sys.exit(main(sys.argv[1]))
