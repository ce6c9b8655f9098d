#!/bin/sh
# What the warps of a training step do, on the stand-in with what NVRTC makes of
# kernels: sectors of global memory and turns of shared memory that accesses
# take beside the least that their bytes need, and how many lanes take part.
#
#   warps.sh                    two small models, with bounds, and the warp
#                               instructions of these and of two narrow ones
#                               or, with PTX_ALL=1, of all, against the column
#                               step of tests/golden/nvrtc.txt
#   warps.sh NAME SETTING...    prints those of a model, kernel by kernel;
#                               WARPS=FILE keeps what the stand-in says of each
#                               access
set -u
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

[ -d "$SINTER_DOUBLE" ] || exit 77

# step NAME SETTING...: what a step does, in warps, and the kernels' text.
step() {
    name=$1
    shift
    for setting in "$@"; do
        shift
        set -- "$@" --set "$setting"
    done
    expect 0 "$SINTER" build "$models/$name.net" "$@" -o trainer
    expect 0 "$SINTER" show kernels "$models/$name.net" "$@"
    mv out kernels
    rm -rf warps run
    expect 0 env LD_LIBRARY_PATH="$SINTER_DOUBLE" XDG_CACHE_HOME=/dev/null \
        SINTER_DOUBLE_PTX=1 SINTER_DOUBLE_NVRTC="$SINTER_NVRTC" \
        SINTER_DOUBLE_SEED=0 SINTER_DOUBLE_WARPS="$work/warps" \
        ./trainer --data=synthetic:64 --steps=1 --device=cuda:0 --out=run
    [ -s warps ] || fail "$name: nothing was counted"
    [ -z "${WARPS:-}" ] || cp warps "$WARPS"
}

# table: a line for each kernel, and one for all.  A merged one, as m12_13_NAME,
# has the lines of k12 and k13.
table() {
    awk '
    function share(is, least) { return least > 0 ? is / least : 1 }
    function row(name, where, lanes, all, sectors, least, turns, few) {
        printf "%-44s %-20s %9d %5.2f %5.2f %5.2f\n", substr(name, 1, 44),
            where, sectors, share(sectors, least), share(turns, few),
            lanes / (32 * all)
    }
    FNR == NR && /^\/\/ k[0-9]+_/ { split($2, part, "_"); kernel = part[1] }
    FNR == NR && /^\/\/ lines / {
        sub(/^[^:]*:/, "")
        line[kernel] = $0
    }
    FNR == NR { next }
    FNR == 1 {
        printf "%-44s %-20s %9s %5s %5s %5s\n", "kernel", "lines", "sectors",
            "/least", "turns", "lanes"
    }
    / launches / {
        n = split($1, part, "_")
        where = line[part[1]]
        if (part[1] ~ /^m/) {
            where = line["k" substr(part[1], 2)]
            for (i = 2; i <= n && part[i] ~ /^[0-9]+$/; i++)
                where = where "; " line["k" part[i]]
        }
        row($1, substr(where, 1, 20), $7, $5, $9, $10, $12, $13)
        for (i = 5; i <= 13 && $1 !~ /_(init|derive)$/; i++)
            sum[i] += $i
    }
    END { row("all but init and derive", "", sum[7], sum[5], sum[9], sum[10], sum[12], sum[13]) }
    ' kernels warps
}

if [ $# -gt 0 ]; then
    step "$@"
    table
    exit 0
fi

# bound NAME MOST: of no kernel are accesses scattered.  Activations have 16
# bits here, and are what is accessed by v4.u32 and v2.u32.  Eight lanes of f32
# are two accesses, each of every second half of a sector, so that a kernel of
# f32 takes twice the least.  That bound is derived.  The others are ratchets, a
# little above what was measured: in all 1.17 of the least for resnet9 and 1.34
# for gpt_nano, an access of activations 1.02, an update 1.001, turns at banks
# 1.00; of a kernel's lanes 0.67 take part or more.  In gpt_nano the 65 blocks that
# add to a table each read the index, four elements a thread, so that what one
# access of a warp leaves of a sector is for the next three.  Attention transposes
# tiles of keys while it reads them: a warp reads 16 bytes of each of 32 rows, and
# the other half of their sectors in its next turn; its turns at banks are 1.23.
bound() {
    awk -v name="$1" -v most="$2" '
    function wrong(what) {
        print name ": " what ": " $0
        bad = 1
    }
    / launches / {
        attends = $1 ~ /_attention(_grad)?$/
        if ($1 !~ /_(init|derive)$/) {
            sectors += $9
            least += $10
            count++
        }
        if ($9 > 2.1 * $10)
            wrong("sectors")
        if ($12 > (attends ? 1.25 : 1.1) * $13)
            wrong("conflicts")
        if ($7 < 0.6 * 32 * $5)
            wrong("lanes")
        if ($1 ~ /_update$/ && $9 > 1.05 * $10)
            wrong("sectors of an update")
        next
    }
    /global.*\.v[24]\.u32/ && $(NF - 4) > (attends ? 2 : 1.25) * $(NF - 3) {
        wrong("sectors")
    }
    END {
        printf "%s: %d sectors, least %d\n", name, sectors, least
        if (!(sectors <= most * least) || count < 10) {
            print name ": more than " most " of the least"
            bad = 1
        }
        exit bad
    }' warps || fail "$1: accesses are scattered"
}

# steps NAME SETTING...: adds the instructions of a step to those of others.
steps() {
    [ "$1" = resnet9 ] || [ "$1" = gpt_nano ] || step "$@"
    awk -v model="$1" '/ launches / && $1 !~ /_(init|derive)$/ {
        print model, $1, 0, 0, $5
    }' warps >>steps
}

python3 -c '
import ctypes, sys
version = [ctypes.c_int(), ctypes.c_int()]
library = ctypes.CDLL(sys.argv[1] + "/libnvrtc.so")
library.nvrtcVersion(*map(ctypes.byref, version))
print("# NVRTC %d.%d" % tuple(v.value for v in version))
' "$SINTER_NVRTC" >steps || fail "the version of NVRTC"

step resnet9 batch=4 width=16
bound resnet9 1.2
steps resnet9
step gpt_nano batch=4 'layers=[1]' 'data=synthetic(vocabulary=65, shape=[32])'
bound gpt_nano 1.36
steps gpt_nano

image='data=synthetic(shape=[32, 32, 3])'
steps lenet batch=2
steps mlp batch=3 width=40
if [ -n "${PTX_ALL:-}" ]; then
    steps airbench94 batch=2
    steps airbench94_muon batch=2 width=8
    steps airbench96 batch=2 width=8
    steps denoise batch=2 'data=synthetic(shape=[32, 32, 3])'
    steps gpt2 batch=2 'layers=[1]' heads=2 width=64 context=40 vocabulary=65 \
        'data=synthetic(vocabulary=65, shape=[40])'
    steps gru_text batch=2 width=16 size=8 \
        'data=synthetic(vocabulary=256, shape=[16])'
    steps hlb batch=2 width=8
    steps llama_nano batch=2 'layers=[1]' 'data=synthetic(vocabulary=65, shape=[32])'
    steps mobilenetv2 batch=2 width=0.25 divisor=2 classes=10 input=data.train "$image"
    steps multitask batch=2 width=4
    steps preact_resnet18 batch=2 width=4
    steps resnet18 batch=2 width=4
    steps resnet50 batch=2 width=4 classes=10 input=data.train "$image"
    steps resnet9_tricks batch=16 width=8
    steps unet_seg batch=2 width=4 classes=10 input=data.train \
        'data=synthetic(shape=[16, 16, 3])'
    steps vgg16_bn batch=2 width=4
    steps vit_tiny batch=2 'depth=[1]' width=24 input=data.train "$image"
fi
python3 "$SINTER_SOURCE/tests/codegen/nvrtc/totals.py" step steps
