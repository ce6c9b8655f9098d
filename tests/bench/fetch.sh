#!/bin/sh
# bench/fetch brings archives and packed files, by curl or wget, checks their
# sums, and leaves nothing behind when one is wrong or missing.
. "$SINTER_SOURCE/tests/end_to_end/folder.sh"
fetch=$SINTER_SOURCE/bench/fetch
command -v python3 >/dev/null || exit 77

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

python3 -u -m http.server --bind 127.0.0.1 0 >server 2>&1 &
server=$!
trap 'kill $server; rm -rf "$work"' EXIT
waited=0
while ! grep -q ' port ' server; do
    sleep 0.1
    waited=$((waited + 1))
    [ $waited -lt 300 ] || { cat server >&2; exit 1; }
done
address=http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\).*/\1/p' server)
{
    row cifar10 cifar-10-binary.tar.gz
    row mnist train-labels-idx1-ubyte.gz
    row mnist t10k-labels-idx1-ubyte.gz
    echo "wrong $(row x train-labels-idx1-ubyte.gz | cut -d' ' -f2,3)"
    echo "wrong 00000000000000000000000000000000 $address/t10k-labels-idx1-ubyte.gz"
    echo "missing 00000000000000000000000000000000 $address/none.gz"
} >table
export FETCH_TABLE="$work/table" no_proxy=127.0.0.1

# Everything that the script runs, and one program that downloads.
mkdir none
for command in basename cat chmod dirname grep gunzip gzip ls md5sum mkdir \
    mktemp mv rm sed sh tar; do
    ln -s "$(command -v $command)" none
done

# try_with TOOL
try_with() {
    cp -RP none "$1" && ln -s "$(command -v "$1")" "$1" || exit 1
    mkdir "in-$1" && cd "in-$1" || exit 1
    PATH=$work/$1
    runs 0 "$fetch" cifar10
    [ "$(cat data/cifar10/data_batch_1.bin data/cifar10/test_batch.bin)" = "one
two" ] || fail "$1: other files than those packed"
    runs 0 "$fetch" mnist there
    [ "$(cat there/train-labels-idx1-ubyte there/t10k-labels-idx1-ubyte)" = "train
t10k" ] || fail "$1: other files than those packed"
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
    cd .. || exit 1
}
path=$PATH
tried=0
for tool in curl wget; do
    PATH=$path
    command -v $tool >/dev/null || continue
    try_with $tool
    tried=$((tried + 1))
done
[ $tried -gt 0 ] || exit 77
PATH=$work/none
runs 3 "$fetch" cifar10 nowhere
says "neither curl nor wget is installed"
PATH=$path

# The table itself: three sets, and sums of 32 digits.
if grep -v '^#' "$SINTER_SOURCE/bench/datasets" |
    grep -qvE '^(cifar10|cifar100|mnist) [0-9a-f]{32} https://[^ ]+\.gz$'; then
    fail "bench/datasets has another line"
fi
exit $failed
