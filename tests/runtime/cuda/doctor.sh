#!/bin/sh
# sinter doctor lists the driver and the libraries that trainers would find,
# here NVIDIA's double, and names a missing GPU, driver or C compiler.
set -u
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

expect 0 "$SINTER" doctor
expect_says "^driver .*for CUDA 13.0  $SINTER_DOUBLE/libcuda.so.1"
expect_says "^cuda:0 .*compute capability"
expect_says "^NVRTC .*$SINTER_DOUBLE/libnvrtc.so.13"
expect_says "^cuDNN  *9[.].*$SINTER_DOUBLE/libcudnn.so.9"
expect_says "^cuBLASLt .*$SINTER_DOUBLE/libcublasLt.so.13"
expect_says "^NVTX .*$SINTER_DOUBLE/libnvtx3interop.so.1"
expect_says "^nvJPEG .*$SINTER_DOUBLE/libnvjpeg.so.13"
expect_says "^DuckDB "
expect_says "^oneDNN  *[0-9]"
expect_says "complete: trainers run on a GPU and on the host"

expect 0 env SINTER_DOUBLE_DEVICES=0 "$SINTER" doctor
expect_says "driver: .*NO_DEVICE.*CUDA_VISIBLE_DEVICES"
expect 0 env SINTER_DOUBLE_FAIL=cuInit:1:803 "$SINTER" doctor
expect_says "driver: .*restart the machine"
# NVRTC is there, but not all of it.
expect 0 env SINTER_DOUBLE_FAIL=nvrtcCompileProgram:1:7 "$SINTER" doctor
expect_says "NVRTC: .*libnvrtc-builtins"

expect 4 env LD_LIBRARY_PATH= CC=/nowhere PATH=/nowhere "$SINTER" doctor
expect_says "no trainer can be built here until this is installed:"
expect_says "  C compiler: .*install gcc or clang"

expect 4 env LD_LIBRARY_PATH= TMPDIR=/nowhere "$SINTER" doctor
expect_says "  C compiler: .*name one in TMPDIR"

# It leaves nothing behind, nor does one that is interrupted.
mkdir empty
expect 0 env TMPDIR="$work/empty" "$SINTER" doctor
[ -z "$(ls empty)" ] || fail "left behind: $(ls empty)"
printf '#!/bin/sh\nexec sleep 1\n' >slow
chmod +x slow
LD_LIBRARY_PATH='' TMPDIR=$work/empty CC=$work/slow "$SINTER" doctor >out 2>err &
until ls empty/*/version >/dev/null 2>&1; do
    kill -0 $! || fail "there is no doctor to interrupt"
    sleep 0.1
done
kill $!
wait $! || true
for _ in $(seq 50); do
    [ -z "$(ls empty)" ] && break
    sleep 0.1
done
[ -z "$(ls empty)" ] || fail "left behind: $(ls empty)"

expect 0 "$SINTER" doctor --json
if command -v python3 >/dev/null; then
    python3 - out <<'END' || fail "not what the text says"
import json, sys
told = json.load(open(sys.argv[1]))
name = [found["name"] for found in told["found"]]
assert told["schema"] == 1 and told["devices"] == 1, told
assert name[:4] == ["driver", "cuda:0", "NVRTC", "cuDNN"], name
assert all("version" in found for found in told["found"]), told
END
fi
exit 0
