#!/bin/sh
# A trainer built for a GPU embeds cubins and needs no compiler there; on other
# GPUs it uses PTX, NVRTC, or ends with a message.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
export SINTER_DOUBLE_THREADS=1

# The double with files in place of NVRTC that are no libraries, so that one
# that is installed is not found either.
mkdir without
for file in "$SINTER_DOUBLE"/*; do
    ln -s "$file" without
done
for version in 12 13; do
    rm -f without/libnvrtc.so.$version
    echo none >without/libnvrtc.so.$version
done

# run FOLDER PROGRAM OPTION...: two steps with the libraries there.
run() {
    libraries=$1 program=$2
    shift 2
    env LD_LIBRARY_PATH="$libraries" "$program" --device=cuda:0 \
        --data=synthetic:128 --steps=2 --log-every=1 --metrics=rows "$@"
    status=$?
    sed -n 's/.*"split":"step".*"loss":\([^,}]*\).*/\1/p' rows >losses
    return $status
}

expect 0 "$SINTER" build "$here/tiny.net" -o plain
expect 0 run "$SINTER_DOUBLE" ./plain --out=plain.run
mv losses plain.losses
[ "$(wc -l <plain.losses)" -eq 2 ] || fail "no losses"
expect 4 run "$work/without" ./plain --out=none
expect_says "NVIDIA's compiler"

expect 0 "$SINTER" build "$here/tiny.net" -o embedded --target=cuda:sm_80,sm_90
rm -rf cache
expect 0 run "$work/without" ./embedded --resident=no --out=embedded.run
expect_equal plain.losses losses
expect 0 run "$work/without" ./embedded --out=embedded.run2
expect_says "images stay on cuda:0"
expect_equal plain.losses losses

# A GPU that none of it is for.
expect 0 "$SINTER" build "$here/tiny.net" -o other --target=cuda:sm_100
expect 4 run "$work/without" ./other --out=none
expect_says "built for compute capability 10.0, but the GPU has 9.0"
expect 0 run "$SINTER_DOUBLE" ./other --out=other.run
expect_equal plain.losses losses

# The driver compiles PTX for an older GPU.
expect 0 "$SINTER" build "$here/tiny.net" -o older --target=cuda:sm_80
expect 0 run "$work/without" ./older --resident=no --out=older.run
expect_equal plain.losses losses
# If it refuses PTX, as code of a newer CUDA or as it cannot compile now, NVRTC
# compiles.  Without NVRTC the message has the driver's reason.
for error in 200 209 218 221 222 223; do
    rm -rf older.run2
    expect 0 env SINTER_DOUBLE_FAIL=cuModuleLoadDataEx:1:$error ./older \
        --device=cuda:0 --data=synthetic:128 --steps=2 --out=older.run2
done
expect 4 env SINTER_DOUBLE_FAIL=cuModuleLoadDataEx:1:200 \
    LD_LIBRARY_PATH="$work/without" ./older --device=cuda:0 \
    --data=synthetic:128 --steps=2 --out=none
expect_says "INVALID_IMAGE.*update the driver"

# loads DEVICE COUNT [FAULTS]: a run there, without NVRTC, in which so much code
# is given to the driver.
loads() {
    rm -rf log board
    expect 0 env SINTER_DOUBLE_DEVICE="$1" SINTER_DOUBLE_FAIL="${3-}" \
        SINTER_DOUBLE_LOG="$work/log" LD_LIBRARY_PATH="$work/without" ./boards \
        --device=cuda:0 --data=synthetic:128 --steps=2 --resident=no --out=board
    [ "$(grep -c cuModuleLoadDataEx log)" -eq "$2" ] ||
        fail "not $2 on $1: $(grep cuModuleLoadDataEx log)"
}

# A cubin of 8.7, of integrated GPUs, is not for a card of 8.9, which takes that of
# 8.6; after code that the driver refuses the next is tried.
card=$SINTER_SOURCE/tools/devices/rtx4090.json
expect 0 "$SINTER" build "$here/tiny.net" -o boards --target=cuda:sm_86,sm_87
loads "$card" 1
loads "$card" 2 cuModuleLoadDataEx:1:209
loads "$card" 3 cuModuleLoadDataEx:1:209,cuModuleLoadDataEx:2:222
sed 's/"deviceVer": 890/"deviceVer": 870/' "$card" >board.json
loads board.json 1
sed 's/"deviceVer": 890/"deviceVer": 880/' "$card" >unknown.json
loads unknown.json 1

# Mistakes.
for target in sm_90 cuda: cuda:90 cuda:sm_9x cuda:sm_90, cuda:sm_90,,sm_80; do
    expect 2 "$SINTER" build "$here/tiny.net" -o no --target=$target
    expect_says "needs architectures as cuda:sm_90"
done
[ -e no ] && fail "a mistake made a trainer"

# NVIDIA's own compiler, where it is installed: there is machine code of a GPU,
# an ELF file of machine 190, and assembly.
[ -d "${SINTER_NVRTC:-}" ] || exit 0
expect 0 env XDG_CACHE_HOME="$work/real.cache" \
    LD_LIBRARY_PATH="$SINTER_NVRTC" "$SINTER" build "$here/tiny.net" -o real \
    --target=cuda:sm_90
command -v python3 >/dev/null || exit 0
python3 - <<'END' || fail "the machine code"
import re
bytes_ = open("real", "rb").read()
found = [m.start() for m in re.finditer(b"\x7fELF\x02\x01", bytes_)][1:]
machines = [int.from_bytes(bytes_[at + 18 : at + 20], "little") for at in found]
assert machines == [190], machines
assert bytes_.count(b".target sm_90") == 1, "no assembly for sm_90"
END
exit 0
