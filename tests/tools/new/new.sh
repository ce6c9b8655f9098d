#!/bin/sh
# shellcheck disable=SC2154 # work is of expect.sh
# sinter new: each start trains at once on generated data, and its README's own
# commands train on files as the README says that they lie.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
export XDG_CACHE_HOME="$work/cache"
PATH=$(dirname "$SINTER"):$PATH

# commands: those of README.md, one a line.
commands() {
    awk '/^```/ { inside = !inside; next } inside' README.md |
        grep -E '^(sinter|python3) '
}

# follow EXTRA [OPTION...]: runs every command of the page, with one step on
# generated data, EXTRA added to train, and the options to every training.
follow() {
    [ "$(commands | grep -c '^sinter train')" -ge 2 ] || fail "$(cat README.md)"
    commands >page
    extra=$1
    shift
    while read -r line; do
        case $line in
        *synthetic*) line="$(echo "$line" | sed 's/:640/:64/') --steps=1 $*" ;;
        "sinter train"*) line="$line $extra $*" ;;
        esac
        # shellcheck disable=SC2086 # words of a page
        expect 0 $line
    done <page
}

# start KIND WORD...: a folder as it is made, which is checked.
start() {
    kind=$1
    shift
    expect 0 sinter new "$kind" "$@"
    expect_says "^    sinter train model.net --data synthetic:640 --epochs=1$"
    cd "$kind" || exit 1
    expect 0 sinter fmt --check model.net
    expect 0 sinter check model.net
    expect 3 sinter train model.net
    expect_says "no data in data"
    # What the page offers to set is there.
    grep -o -e '--set [a-z.]*=[^`]*' README.md | sort -u >settings
    [ -s settings ] || fail "$kind: no settings"
    while read -r line; do
        value=${line#--set }
        expect 0 sinter check model.net --set "${value%% --set*}"
    done <settings
}

# ---- images ----

start images
# shape SEED COLOUR: 24 x 20 pixels of noise, with more of one colour.
mkdir -p data/train/cat data/train/dog data/test/cat data/test/dog
/usr/bin/env python3 - <<'END'
import random
import struct
import zlib

def chunk(kind, data):
    return (struct.pack(">I", len(data)) + kind + data +
            struct.pack(">I", zlib.crc32(kind + data)))

def png(path, channel, seed, w=24, h=20):
    draw = random.Random(seed)
    rows = b""
    for _ in range(h):
        pixels = [draw.randrange(200) for _ in range(3 * w)]
        pixels[channel::3] = [min(255, p + 80) for p in pixels[channel::3]]
        rows += b"\0" + bytes(pixels)
    header = struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

for channel, name in enumerate(("cat", "dog")):
    for i in range(20):
        png(f"data/train/{name}/{i}.png", channel, i)
    for i in range(5):
        png(f"data/test/{name}/{i}.png", channel, 100 + i)
END
follow "--epochs=2 --metrics=rows"
expect_says "40 training and 10 test samples"
grep -q '"split":"test".*"accuracy"' rows || fail "$(cat rows)"
find runs -name '*.safetensors' | grep -q . || fail "no weights below runs/"
mkdir data/train/cow
cp data/train/cat/1.png data/train/cow
expect 3 sinter train model.net --set classes=2 --epochs=1
expect_says "folders of 3 classes, .* takes 2: build it with --set classes=3"
rm -r data/train/cow
# Fewer than a batch, as the page says.
rm data/train/*/1?.png
expect 0 sinter train model.net --set classes=2 --set batch=8 --epochs=1
cd ..

# ---- a table ----

if python3 -c 'import numpy' 2>/dev/null; then
    start table --table
    # Two classes that one column tells apart, in 16 columns of any scale.
    awk 'BEGIN {
        srand(1)
        for (c = 1; c <= 16; c++) printf "column%d,", c
        print "class"
        for (i = 0; i < 400; i++) {
            kind = i % 2
            for (c = 1; c <= 16; c++)
                printf "%.4f,", 1000 * c * (rand() + (c == 3) * kind)
            print kind ? "yes" : "no"
        }
    }' >table.csv
    follow "--epochs=20 --metrics=rows"
    expect_says "320 training and 80 test samples"
    python3 from-csv.py 2>err && fail "no file is a table"
    printf 'a,b,kind\n1,blue,x\n2,3,y\n\n' >words.csv
    python3 from-csv.py words.csv 2>err && fail "blue is a number"
    grep -q "column b, row 1: 'blue' is not a number" err || fail "$(cat err)"
    python3 from-csv.py absent.csv 2>err && fail "absent.csv is a table"
    [ "$(wc -l <err)" = 1 ] && grep -q '^cannot read absent.csv' err ||
        fail "$(cat err)"
    printf 'a b kind\n1 2 x\n' >one.csv
    python3 from-csv.py one.csv 2>err && fail "a table of one column"
    grep -q "one.csv has 1 columns and 1 rows" err || fail "$(cat err)"
    [ "$(cat data/classes.txt)" = "$(printf 'no\nyes')" ] ||
        fail "$(cat data/classes.txt)"
    expect 0 sinter train model.net --set classes=2 --predict data/test_x.npy
    expect_says '"class":"\(no\|yes\)"'
    accuracy=$(grep '"split":"test"' rows | tail -n 1 |
        sed 's/.*"accuracy":\([0-9.]*\).*/\1/')
    awk -v a="$accuracy" 'BEGIN { exit !(a > 0.9) }' ||
        fail "accuracy $accuracy: $(cat rows)"
    # As a spreadsheet writes it.
    sed 's/,/;/g; 1s/^/\xef\xbb\xbf/' table.csv >semicolons.csv
    (cd data && sha256sum ./*) >sums
    expect 0 python3 from-csv.py semicolons.csv
    expect_says "^16 columns, 2 classes: no, yes$"
    (cd data && sha256sum -c --quiet ../sums) || fail "other arrays"
    cd ..
fi

# ---- a text ----

start text --text
mkdir data
i=0
while [ $i -lt 500 ]; do
    echo "line $i of a text — that is nearly the same."
    i=$((i + 1))
done >data/text.txt
follow "--steps=1" --set batch=4
expect_says "test samples"
cd ..

# ---- a name that a shell would take apart ----

name="cat's & \$(dogs)"
expect 0 sinter new "$name"
(eval "$(grep '^    cd ' out)" && [ "$PWD" = "$work/$name" ]) ||
    fail "no shell reads $(cat out)"
expect 0 sinter new plain
expect_says '^    cd plain$'

# ---- a folder that is in use ----

expect 2 sinter new images
expect_says "images is not empty; name a new folder"
mkdir hollow
expect 0 sinter new hollow
cmp -s hollow/model.net images/model.net || fail "an empty folder"
: >file
expect 2 sinter new file
expect 2 sinter new other --text --table
expect_says "exclude each other"
[ ! -e other ] || fail "other was made"
expect 74 sinter new no/where/at/all
expect 2 sinter new
