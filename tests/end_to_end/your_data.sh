#!/bin/sh
# docs/your-data.md works as written, with stand-ins for a reader's data.  Where
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
printf '#!/bin/sh\nexec %s "$@"\n' "$python" >bin/python3
chmod +x bin/python3

# The reader's data, and at the end the metrics of three runs.
cat >prepare <<PREPARE
#!/bin/sh -e
python3 '$here/readers_data.py'
[ $torch = 0 ] || python3 '$here/readers_resnet.py'
PREPARE
cat >judge <<JUDGE
#!/bin/sh -e
cp runs/Images/001/metrics.jsonl '$work/images'
cp build/flowers/runs/Table/001/metrics.jsonl '$work/table'
[ $torch = 1 ] || exit 0
cp runs/Photos/001/metrics.jsonl '$work/photos'
cp build/logits.jsonl '$work/logits'
cp data/logits/variance '$work'
JUDGE
chmod +x prepare judge
export FETCH_TABLE=build/mirror/table PATH="$work/bin:$PATH"
python3 "$SINTER_SOURCE/tests/docs/walk.py" "$page" "$work/prepare" "$work/judge" ||
    exit $?

# values KEY FILE SPLIT: those of its rows, in their order.
values() {
    grep "\"split\":\"$3\"" "$2" | sed "s/.*\"$1\":\([^,]*\),.*/\1/"
}
# learnt FILE SPLIT LEAST: the last accuracy, where chance has 1/3 or 1/2.
learnt() {
    values accuracy "$1" "$2" | awk -v name="$1" -v least="$3" '
    END { print name ": accuracy", $1; exit !($1 >= least && $1 <= 1) }' ||
        fail "$1: accuracy below $3"
}
learnt images test 0.5
learnt table test 0.7
if [ $torch = 0 ]; then
    echo "no PyTorch: no ResNet-18 is fine-tuned; the other blocks ran"
    exit 77
fi
# Its 48 images of validation say less than those that it trains on.
learnt photos test 0.4
learnt photos train 0.65
awk -v error="$(values loss logits test)" -v variance="$(cat variance)" 'BEGIN {
    ratio = sqrt(error / variance)
    print "logits differ by", ratio, "of their spread"
    exit !(error > 0 && ratio < 1e-4)
}' || fail "the logits are not PyTorch's"
exit 0
