#!/bin/sh
# Each kind of mistake has its exit status and a sentence that names it.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

# The command line.
expect 2 "$SINTER"
expect 2 "$SINTER" frobnicate
expect 2 "$SINTER" check
expect 2 "$SINTER" check --frobnicate "$here/tiny.net"
expect_says 'frobnicate'
expect 2 "$SINTER" check --target=toaster "$here/tiny.net"
expect 2 "$SINTER" show dreams "$here/tiny.net"
expect 0 "$SINTER" help
expect 0 "$SINTER" build --help

# Files.
expect 74 "$SINTER" check nothing.net
expect_says 'nothing.net'
expect 74 "$SINTER" build "$here/tiny.net" -o no/such/folder/tiny
if [ -w /dev/full ]; then
    "$SINTER" passes >/dev/full 2>err
    [ $? -eq 74 ] || fail "a full device is not noticed"
    "$SINTER" version >/dev/full 2>err
    [ $? -eq 74 ] || fail "a full device is not noticed by version"
fi
# shellcheck disable=SC2016 # what is after -c is for that shell
expect 74 sh -c 'ulimit -f 100 && exec "$0" build "$1" -o small' \
    "$SINTER" "$here/micro.net"
expect_says 'File too large'
[ -e small ] && fail "a part of a trainer is there"

if [ -d /sys/kernel ]; then # where nobody makes folders
    expect 0 "$SINTER" build "$here/micro.net" -o micro
    expect 74 ./micro --out /sys/kernel/run/micro
    expect_says 'cannot make folder /sys/kernel/run: '
    grep -q 'No such file' err && fail "$(cat err)"
fi

# A name that would be an option, and compilers that make nothing.
cp "$here/micro.net" ./-c.net
expect 0 "$SINTER" build ./-c.net
expect 0 ./_c --epochs 1 --quiet
expect 4 env CC=true "$SINTER" build "$here/micro.net" -o nothing
expect_says 'wrote no program'
[ -e nothing ] && fail "nothing was put in place"

# The model.
sed 's/global_max_pool/global_max_pol/' "$here/tiny.net" >wrong.net
expect 1 "$SINTER" check wrong.net
expect_says 'wrong.net:11:'
expect_says 'global_max_pool'
expect 1 "$SINTER" build wrong.net
[ -e wrong ] && fail "something was built"
expect 1 "$SINTER" check "$here/tiny.net" --set wdith=4
expect_says 'width'

# The data.
expect 0 "$SINTER" build "$here/tiny.net" -o tiny
expect 2 ./tiny --frobnicate
expect 3 ./tiny --data nowhere
expect_says 'nowhere'
idx_data short 192
head -c 2000 short/train-images-idx3-ubyte >part
mv part short/train-images-idx3-ubyte
expect 3 ./tiny --data short --out short.run
expect_says 'train-images-idx3-ubyte'
idx_data labels 192
printf '\000\000\010\001\000\000\000\300' >labels/train-labels-idx1-ubyte
bytes 192 7 >>labels/train-labels-idx1-ubyte
expect 3 ./tiny --data labels --out labels.run
expect_says 'train-labels-idx1-ubyte'
idx_data few 10
expect 3 ./tiny --data few --out few.run
idx_data good 192
expect 3 ./tiny --data good --out empty.run --resume

# The machine.
expect 4 ./tiny --data good --device=cuda:0 --out cuda.run
expect 0 "$SINTER" build "$models/resnet9.net" --set batch=200000 -o huge
expect 5 ./huge --data synthetic --device=host --out huge.run
expect_says 'iB'
exit 0
