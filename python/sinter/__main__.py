"""Runs the compiler: python -m sinter, or the command sinter."""
import os
import sys

from . import executable


def main():
    path = executable()
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
