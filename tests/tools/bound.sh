#!/bin/sh
# What the compiler takes for the worst that a file can ask for, as section 12 of
# docs/language.md states it: whatever it says of each, it ends by itself with no
# more than 512 MiB of addresses, 640 MiB where text is written for two devices,
# and so many seconds of processor time.  With BOUND_ALL=1 the text of each is
# written, and each is planned for too little memory; else of some of the worst.
set -u

[ -z "${SINTER_SANITIZED:-}" ] || exit 77 # they take addresses of their own
work=$(mktemp -d "${TMPDIR:-/tmp}/bound-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# bounded STATUS MIB SECONDS WORD...: runs sinter on bad.net.
bounded() {
    want=$1
    room=$(($2 * 1024))
    seconds=$3
    shift 3
    (
        ulimit -v "$room"
        ulimit -t "$seconds"
        exec "$SINTER" "$@" bad.net
    ) >out 2>&1
    got=$?
    if [ $got -ne "$want" ]; then
        echo "bound: $what: $1: status $got, not $want:" >&2
        tail -n 3 out >&2
        : >failed # in a pipe a variable would be lost
    fi
}

# text: writes it for two devices.
text() {
    bounded 0 640 15 build --emit=c --out=text
}

# small: plans it for too little memory.
small() {
    bounded 5 512 20 check --target=cuda --memory=1KiB
}

# check STATUS: what is refused is so before anything is written.
check() {
    bounded "$1" 512 3 check --target=cuda
    if [ "$1" -eq 0 ] && [ -n "${BOUND_ALL:-}" ]; then
        text
        small
    fi
}

# others: commands that show what check looks at.
others() {
    bounded 0 512 2 fmt --check
    bounded 0 512 10 show graph
    bounded 0 512 10 show plan
    [ -z "${BOUND_ALL:-}" ] || bounded 0 512 10 show launches
    "$SINTER" show simplified bad.net >bad.ir
    mv bad.ir bad.net
    bounded 0 512 12 opt --run=fuse,schedule,memory
}

# survives KIND WORD...: what commands say of each file kept for KIND is theirs,
# but none ends with our fault or a signal.
survives() {
    kind=$1
    shift
    for file in "$SINTER_SOURCE/tests/fuzz/$kind"/*; do
        cp "$file" bad.net
        what=$file
        (
            ulimit -v $((512 * 1024))
            ulimit -t 10
            exec "$SINTER" "$@" bad.net
        ) >out 2>&1
        got=$?
        if [ $got -gt 6 ]; then
            echo "bound: $what: $1: status $got" >&2
            tail -n 3 out >&2
            : >failed
        fi
    done
}

# digits N: a list of N numbers.
digits() {
    awk -v n="$1" 'BEGIN { while (n-- > 1) printf "%d, ", n % 9 + 1; print 1 }'
}

# lines N LINE: LINE, N times.
lines() {
    awk -v n="$1" -v line="$2" 'BEGIN { while (n--) print line }'
}

# model STATUS TRAIN: a model of what is read, trained with TRAIN.
model() {
    {
        echo 'model M(x: f32[N, 8, 8, 8]) -> f32[N, 10] {'
        cat
        echo '  x |> global_avg_pool |> linear(10, bias=false)'
        echo '}'
        echo 'train M {'
        echo '  data = synthetic()'
        echo '  input = data.train'
        echo '  batch = 8'
        echo '  epochs = 1'
        echo '  loss = mean(cross_entropy(output, label))'
        printf '%b\n' "$2"
        echo '}'
    } >bad.net
    check "$1"
}

# each N BODY: BODY for each of N numbers.
each() {
    echo "  for i in [$(digits "$1")] { $2 }"
}

sgd='  optimizer = sgd(lr=0.1)'
muon='  optimizer = muon(lr=0.1)'
adam='  optimizer = adam(lr=0.1)'

what='convolutions below the limit'
each 2500 'x = x |> conv(8, 3)' | model 0 "$adam"
what='convolutions, line by line'
{
    echo '  x = x'
    lines 20000 '    |> conv(8, 3)'
} | model 1 "$sgd"
what='residual blocks'
block='(x |> conv(8, 3) |> batch_norm |> relu |> conv(8, 3) |> batch_norm)'
each 1500 "x = relu(x + $block)" | model 1 "$sgd"
what='a value for each layer, added up'
each 3500 'x = x + (x |> conv(8, 1))' | model 0 "$sgd"
small
what='a long expression that many kernels compute'
{
    echo '  w = parameter([8])'
    each 400 'w = tanh(w)'
    each 400 'x = (x |> conv(8, 1)) * w'
} | model 1 "$sgd"
what='matrices that are made orthogonal'
each 2000 'x = x |> conv(8, 3, bias=false)' | model 0 "$muon"
what='numbers that follow from one another'
{
    echo '  x = x'
    lines 30000 '    |> tanh'
} | model 0 "$sgd"

# Graphs for the stages of a run, for gathering and averaging.
stages=
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    stages="$stages\n  freeze \"conv_$i.*\" after $((5 * i))%"
done
staged="$sgd\n  accumulate = 4\n  average = ema(0.99)$stages"
what='sixteen stages'
each 160 'x = x |> conv(8, 3)' | model 0 "$staged"
text
[ -z "${BOUND_ALL:-}" ] || bounded 0 512 20 check --target=cuda --memory=3MiB
what='sixteen stages of a small model, and the largest batch'
each 40 'x = x |> conv(8, 3)' | model 0 "$staged"
[ -z "${BOUND_ALL:-}" ] || bounded 5 512 20 check --target=cuda --memory=500KiB
bounded 0 512 20 check --target=cuda --memory=500KiB --max-batch

what='functions that double'
{
    echo 'fn f0(x) = x |> conv(8, 3)'
    for i in 1 2 3 4 5 6; do
        echo "fn f$i(x) = x$(lines 10 "|> f$((i - 1))" | tr '\n' ' ')"
    done
    echo 'model M(x: f32[N, 8, 8, 8]) -> f32[N, 10] { x |> f6 }'
} >bad.net
check 1

what='a ResNet of 1154 layers'
sh "$SINTER_SOURCE/bench/compile/resnet.sh" 1154 >bad.net
bounded 0 512 3 check --target=cuda
[ -z "${BOUND_ALL:-}" ] || bounded 5 512 20 check --target=cuda --memory=500MiB
others

for command in check 'check --memory=1KiB' fmt 'show plan'; do
    survives language $command
done
survives graph opt --run=fuse,schedule,memory

what='brackets'
awk 'BEGIN { for (i = 0; i < 500000; i++) printf "(" }' >bad.net
check 1
what='zeros'
head -c 1000000 /dev/zero >bad.net
check 1
what='functions'
awk 'BEGIN { for (i = 0; i < 60000; i++) print "fn f" i "(x) = x" }' >bad.net
check 1
what='layers that are not there'
awk 'BEGIN { for (i = 0; i < 50000; i++) print "let a" i " = b" i }' >bad.net
check 1

[ ! -e failed ]
