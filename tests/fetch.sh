#!/bin/sh
# bench/fetch brings archives and packed files, checks their sums and leaves
# nothing behind when one is wrong or missing.
. "$SINTER_SOURCE/tests/folder.sh"
fetch=$SINTER_SOURCE/bench/fetch
command -v curl >/dev/null || command -v wget >/dev/null || exit 77

# runs STATUS WORD...
runs() {
    want=$1
    shift
    "$@" >out 2>&1
    got=$?
    [ "$got" -eq "$want" ] || { fail "$*: status $got, not $want:"; cat out >&2; }
}
says() {
    grep -qF -e "$1" out || { fail "nothing about '$1':"; cat out >&2; }
}
# row NAME FILE: a line of a table, with the file's sum.
row() {
    sum=$(md5sum <"$2")
    echo "$1 ${sum%% *} $address/$2"
}

mkdir -p cifar-10-batches-bin
echo one >cifar-10-batches-bin/data_batch_1.bin
echo two >cifar-10-batches-bin/test_batch.bin
tar -czf cifar-10-binary.tar.gz cifar-10-batches-bin
for part in train t10k; do
    echo $part | gzip >$part-labels-idx1-ubyte.gz
done

# A server of these files; curl reads them without one.
address=file://$work
if ! command -v curl >/dev/null; then
    python3 -u -m http.server --bind 127.0.0.1 0 >server 2>&1 &
    server=$!
    trap 'kill $server; rm -rf "$work"' EXIT
    while ! grep -q ' port ' server; do sleep 0.1; done
    address=http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\).*/\1/p' server)
fi
{
    row cifar10 cifar-10-binary.tar.gz
    row mnist train-labels-idx1-ubyte.gz
    row mnist t10k-labels-idx1-ubyte.gz
    echo "wrong $(row x train-labels-idx1-ubyte.gz | cut -d' ' -f2,3)"
    echo "wrong 00000000000000000000000000000000 $address/t10k-labels-idx1-ubyte.gz"
    echo "missing 00000000000000000000000000000000 $address/none.gz"
} >table
export FETCH_TABLE="$work/table"

mkdir in && cd in || exit 1
runs 0 "$fetch" cifar10
[ "$(cat data/cifar10/data_batch_1.bin data/cifar10/test_batch.bin)" = "one
two" ] || fail "other files than those packed"
runs 0 "$fetch" mnist there
[ "$(cat there/train-labels-idx1-ubyte there/t10k-labels-idx1-ubyte)" = "train
t10k" ] || fail "other files than those packed"
echo mine >there/train-labels-idx1-ubyte
runs 0 "$fetch" mnist there
says "there is there already"
[ "$(cat there/train-labels-idx1-ubyte)" = mine ] || fail "it is overwritten"

runs 3 "$fetch" wrong
says "not 00000000000000000000000000000000"
runs 3 "$fetch" missing
says "none.gz: no download"
runs 2 "$fetch" nothing
runs 2 "$fetch"
[ "$(ls data)" = cifar10 ] || fail "left behind: $(ls data)"

# The table itself: three sets, and sums of 32 digits.
if grep -v '^#' "$SINTER_SOURCE/bench/datasets" |
    grep -qvE '^(cifar10|cifar100|mnist) [0-9a-f]{32} https://[^ ]+\.gz$'; then
    fail "bench/datasets has another line"
fi
exit $failed
