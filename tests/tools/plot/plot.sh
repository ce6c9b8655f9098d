#!/bin/sh
# sinter plot and sinter report --metrics: the curves of files of rows, good and
# bad ones, as XML that a parser reads.
set -u

. "$SINTER_SOURCE/tests/end_to_end/folder.sh"

# row SPLIT EPOCH LOSS ACCURACY
row() {
    printf '{"split":"%s","epoch":%s,"step":%s0,"loss":%s,"accuracy":%s,"lr":0.1,"samples_per_second":12,"elapsed":%s}\n' \
        "$1" "$2" "$2" "$3" "$4" "$2"
}

# drawing WORDS...: what tests/tools/plot/plot.py finds in plot.svg.
drawing() {
    python3 "$SINTER_SOURCE/tests/tools/plot/plot.py" "$@" || fail "plot.py $*"
}

# A run: curves of loss and accuracy for each split, one of the rate.
mkdir -p runs/A/001 runs/A/002
for i in 1 2 3; do
    row train $i 0.$((9 - i)) 0.$i
    row test $i 0.$((8 - i)) 0.$((i + 1))
done >runs/A/001/metrics.jsonl
echo '{"split":"time","total":1.5,"parts":[{"a":"}"},[1,2]]}' >>runs/A/001/metrics.jsonl
expect 0 "wrote plot.svg" plot runs/A/001
drawing plot.svg curves=5 charts=3 points=15 text='runs/A/001' text=test text=train \
    text='learning rate' text=epoch
expect 0 "" plot runs/A/001/metrics.jsonl -o file.svg
cmp plot.svg file.svg || fail "a folder is not its metrics.jsonl"
"$SINTER" plot runs/A/001 -o - | cmp - plot.svg || fail "standard output differs"

# Several runs, chosen metrics and axes.
sed 's/"loss":0/"loss":1/' runs/A/001/metrics.jsonl >runs/A/002/metrics.jsonl
expect 0 "" plot runs/A/001 runs/A/002/ loss --x=step
drawing plot.svg curves=4 charts=1 text=runs/A/001 text=runs/A/002 text=step
expect 0 "" plot runs/A/001 samples_per_second --x=time
drawing plot.svg curves=2 charts=1 text=samples_per_second text='time (s)'
expect 2 "did you mean accuracy?" plot runs/A/001 acuracy
expect 2 "no file or folder" plot loss
expect 2 "plot needs RUN" plot
expect 74 "none.jsonl" plot none.jsonl
expect 74 "metrics.jsonl" plot runs/A
expect 2 "would be overwritten" plot runs/A/001 -o runs/A/001/metrics.jsonl
expect 2 "would be overwritten" report --metrics=runs/A/001 \
    -o runs/A/001/metrics.jsonl "$SINTER_SOURCE/tests/end_to_end/tiny.net"
# shellcheck disable=SC2046 # thirteen words
expect 2 "a plot has colours for 12" plot $(printf 'runs/A/001 %.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13)
sed 's/,"elapsed":[0-9]*//' runs/A/001/metrics.jsonl >old.jsonl
expect 3 'no row has a number "elapsed"' plot old.jsonl --x=time

# Lines that are no rows: the last of a run that was killed, and others.
{
    row train 1 0.5 0.5
    echo 'Traceback (most recent call last):'
    echo '{"split":"train","epoch":2'
    echo '{"split":"train","epoch":[2,"loss":1}'
    printf '{"split":"train","epoch":2,"loss":1}\0\n'
    row train 3 0.4 0.5
    printf '{"split":"train","epoch":4,"lo'
} >bad.jsonl
expect 0 "not drawn: 5; the first is line 2" plot bad.jsonl
drawing plot.svg curves=3 charts=3 points=6
: >empty.jsonl
expect 3 "empty.jsonl has no rows of training or evaluation" plot empty.jsonl
printf 'x\n' >noise.jsonl
expect 3 "noise.jsonl:1 is no row of --metrics" plot noise.jsonl
printf '[1]\n{}\n{"split":3}\n{"a":{"b":[}}\n"split"\n' >odd.jsonl
expect 3 "odd.jsonl:1 is no row" plot odd.jsonl
head -c 3000 "$SINTER" >binary.jsonl
expect 3 "binary.jsonl" plot binary.jsonl

# A run that diverges: no number is a gap, and all of them are no curve.
{
    row train 1 0.5 0.5
    row train 2 null 0.5
    row train 3 NaN 0.5
    row train 4 1e999 0.5
    row train 5 0.4 0.5
} >nan.jsonl
expect 0 "" plot nan.jsonl loss
drawing plot.svg curves=1 charts=1 points=2 gaps=1
row train 1 null null | sed 's/0\.1/null/' >null.jsonl
expect 3 "no row has a finite loss, accuracy or lr" plot null.jsonl
expect 2 "neither a file nor a number" plot null.jsonl loss

# So is a number so large that no range can hold it.
{
    row train 1 -1e308 0.5
    row train 2 1e308 0.5
    row train -1e308 0.5 0.5
    row train 1e308 0.5 0.5
    row train 3 0.5 0.5
} >huge.jsonl
expect 0 "" plot huge.jsonl
drawing plot.svg curves=3 charts=3 points=7

# A single row is a dot; equal numbers have an axis.
row test 1 0.25 0.5 >one.jsonl
expect 0 "" plot one.jsonl
drawing plot.svg curves=3 charts=3 points=3 dots=3

# A long run is drawn by its envelope: no spike is lost, and the file is small.
awk 'BEGIN {for (i = 1; i <= 200000; i++)
    printf "{\"split\":\"step\",\"epoch\":%.5f,\"step\":%d,\"loss\":%s}\n",
        i / 1000, i, i == 77777 ? 9 : i == 123456 ? -7 : 1 + i % 7 / 10}' >long.jsonl
expect 0 "" plot long.jsonl
drawing plot.svg curves=1 charts=1 highest=1 lowest=1 bytes=40000

# Names and keys that would be markup stay text, whole.
hostile='a<b>&"c'\''</title><script>x(1)</script>'
hostile="$hostile$(printf '\302\205\033[31m\377\357\277\276\357\277\277')"
name=$(printf '%s%0150d' "]]>--" 7)
mkdir -p "$hostile" "$name"
row train 1 0.5 0.5 | sed 's/"lr"/"l<r>"/' >"$hostile/metrics.jsonl"
row train 1 0.5 0.5 >"$name/metrics.jsonl"
expect 0 "" plot "$hostile" "$name" loss 'l<r>'
drawing plot.svg curves=3 charts=2 text="$name" text='l<r>' hostile=1
red=$(printf '\033[31m')
expect 0 'wrote red\x1b[31m.svg' plot "$hostile" loss -o "red$red.svg"
grep -qF "$red" out && fail "a name steers the terminal"
expect 74 "/dev/null is not a regular file" plot runs/A/001 -o /dev/null

# The page has the same curves, and none without the option.
tiny=$SINTER_SOURCE/tests/end_to_end/tiny.net
expect 0 "" report --metrics=runs/A/001 --metrics="$hostile" -o page.html "$tiny"
sed -n '/<h2>Training curves<\/h2><svg/,/<\/svg>/p' page.html |
    sed 's/.*<svg/<svg/; s/<\/svg>.*/<\/svg>/' >plot.svg
drawing plot.svg curves=7 charts=3 text=runs/A/001 hostile=1
expect 3 "empty.jsonl has no rows" report --metrics=empty.jsonl "$tiny"
expect 74 "/dev/null is not a regular file" report -o /dev/null "$tiny"
expect 0 "" report -o page.html "$tiny"
grep -q '<h2>Training curves</h2></section>' page.html || fail "curves of no run"

# A row that a trainer writes is one that is drawn.
cc=${CC:-cc}
if command -v "$cc" >/dev/null; then
    "$SINTER" build -o tiny "$tiny" && ./tiny --data synthetic:640 --quiet \
        --metrics=real.jsonl --out=real >/dev/null || fail "no run"
    expect 0 "" plot real.jsonl
    drawing plot.svg curves=5 charts=3 points=15
fi

exit $failed
