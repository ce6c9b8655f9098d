# shellcheck shell=sh
# Sourced after tiny.sh: stall.so, and images of two classes whose files it lets
# fail or stand still.

expect 0 "$LINKER" -shared -fPIC -w -o stall.so \
    "$SINTER_SOURCE/tests/end_to_end/stall.c"

for split in train test; do
    for class in a b; do
        mkdir -p images/$split/$class
        for file in 1 2 3 4; do
            echo iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg== |
                base64 -d >images/$split/$class/$file.png
        done
    done
done
