#!/bin/sh
# docs/your-data.md does what it says on stand-ins for a reader's data.  Where
# PyTorch is installed, weights in torchvision's form give PyTorch's logits
# before training, and fine-tuning them tells classes apart.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

[ -z "${CFLAGS:-}" ] || exit 77
command -v curl >/dev/null || exit 77
has() {
    for candidate in python3 /usr/bin/python3; do
        python=$(command -v $candidate) &&
            $python -c "import $1" 2>/dev/null && return
    done
    return 1
}
has "numpy, PIL" || exit 77
page=$SINTER_SOURCE/docs/your-data.md
if has "numpy, PIL, torch"; then
    torch=1
else
    has "numpy, PIL"
    torch=0
    sed '/^## Fine-tuning/,$d' "$page" >without.md
    page=$work/without.md
fi
mkdir bin
ln -s "$python" bin/python3

# The reader's data, and at the end what came of it.
cat >prepare <<PREPARE
#!/bin/sh -e
python3 '$here/readers_data.py'
[ $torch = 0 ] || python3 '$here/readers_resnet.py'
PREPARE
cat >judge <<JUDGE
#!/bin/sh -e
tar -cf '$work/rows.tar' build/*.jsonl data/logits/variance
JUDGE
chmod +x prepare judge
export FETCH_TABLE=build/mirror/table PATH="$work/bin:$PATH"
[ $torch = 1 ] || sed -i 's, data/logits/variance,,' judge
python3 "$SINTER_SOURCE/tests/walk.py" "$page" "$work/prepare" "$work/judge" || exit $?

# value KEY FILE SPLIT: that of the last row.
value() {
    grep "\"split\":\"$3\"" "$2" | tail -n 1 |
        sed "s/.*\"$1\":\([^,]*\),.*/\1/"
}
tar -xf rows.tar
learnt() {
    accuracy=$(value accuracy "$1" test)
    awk -v a="$accuracy" -v least="$2" 'BEGIN { exit !(a >= least && a <= 1) }' ||
        fail "$1: accuracy $accuracy, not $2"
}
learnt build/photos.jsonl 0.5
[ $torch = 1 ] || exit 0
learnt build/fine-tune.jsonl 0.5
awk -v error="$(value loss build/logits.jsonl test)" \
    -v variance="$(cat data/logits/variance)" 'BEGIN {
    ratio = sqrt(error / variance)
    print "logits differ by", ratio, "of their spread"
    exit !(error > 0 && ratio < 1e-4)
}' || fail "the logits are not PyTorch's"
exit 0
