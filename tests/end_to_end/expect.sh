# shellcheck shell=sh
# Sourced by the tests of this folder: a temporary folder, compilation, and
# assertions.
set -u

# Trainers compile in half the time with this.  A script about what the users'
# flags make of kernels sets none before.
export OPTIMISATION="${OPTIMISATION--O1}"

export here="$SINTER_SOURCE/tests/end_to_end"
export models="$SINTER_SOURCE/models"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# expect STATUS COMMAND...: runs the command, whose output goes to out and err.
expect() {
    want=$1
    shift
    "$@" >out 2>err
    got=$?
    [ "$got" -eq "$want" ] && return
    cat out err >&2
    fail "exit status $got, not $want: $*"
}

# expect_says TEXT: the last command has printed it, on stdout or stderr.
expect_says() {
    grep -q -e "$1" out err && return
    cat out err >&2
    fail "nothing about '$1'"
}

expect_equal() {
    cmp "$1" "$2" >&2 || fail "$1 and $2 differ"
}

# small_cache GPU: its description, with a cache so small that writing over it
# takes no time.
small_cache() {
    sed 's/"l2CacheSize": [0-9]*/"l2CacheSize": 65536/' \
        "$SINTER_SOURCE/tools/devices/$1.json"
}

# newest DIR: the newest checkpoint there.
newest() {
    find "$1" -name '*.safetensors' | sort | tail -n 1
}

# tensor FILE NAME: its bytes in a checkpoint.
tensor() {
    length=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    range=$(head -c $((length + 8)) "$1" | tail -c "$length" | sed -n \
        "s/.*\"$2\":{[^}]*\"data_offsets\":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p")
    [ -n "$range" ] || fail "$1 has no $2"
    tail -c +$((length + 9 + ${range% *})) "$1" |
        head -c $((${range#* } - ${range% *}))
}

# bytes COUNT SEED: pseudo-random bytes on stdout (Lehmer's generator).
bytes() {
    # shellcheck disable=SC2059 # the format is what awk makes of the numbers
    printf "$(awk -v n="$1" -v x="$2" 'BEGIN {
        for (i = 0; i < n; i++) {
            x = x * 16807 % 2147483647
            printf "\\%03o", int(x / 65536) % 256
        }
    }')"
}

# octet NUMBER: one byte.
octet() {
    printf '%b' "\\0$(printf '%03o' "$1")"
}

# idx_data DIR COUNT: images of 12x12 noise and labels 0 ... 7, 0 ... as
# MNIST's files hold them, below 256 in number.
idx_data() {
    mkdir -p "$1"
    for split in train t10k; do
        {
            printf '\000\000\010\003\000\000\000'
            octet "$2"
            printf '\000\000\000\014\000\000\000\014'
            bytes $(($2 * 144)) 42
        } >"$1/$split-images-idx3-ubyte"
        {
            printf '\000\000\010\001\000\000\000'
            octet "$2"
            i=0
            while [ $i -lt "$2" ]; do
                octet $((i % 8))
                i=$((i + 1))
            done
        } >"$1/$split-labels-idx1-ubyte"
    done
}
