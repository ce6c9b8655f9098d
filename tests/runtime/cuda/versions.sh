#!/bin/sh
# Where the libraries of CUDA 12 and 13 are both there, a trainer opens the
# newest that support its GPU and its driver, and sinter doctor names the same
# ones; if they are missing, both name the CUDA version to install.  cuDNN has
# one name for both: a copy for the other version is refused.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
export SINTER_DOUBLE_THREADS=1


# Files that are no libraries hide the installed ones.
mkdir without
for file in libnvrtc.so.12 libcublasLt.so.12; do
    echo none >without/$file
done

sed 's/"deviceVer": 750/"deviceVer": 700/' "$SINTER_SOURCE/tools/devices/t4.json" >volta.json
grep -q '"deviceVer": 700' volta.json || fail "no device of 7.0"

cat >many.net <<'NET'
fn mix(x) = (x @ transpose(x, [0, 2, 1]) |> softmax) @ x

model Many(image: f32[N, 4, 4, 8]) -> f32[N, 3] {
  image |> reshape([N, 16, 8]) |> linear(8) |> mix |> flatten |> linear(3)
}

train Many {
  data      = synthetic()
  batch     = 16
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET
expect 0 "$SINTER" build many.net -o many

# takes CUDA FOLDER VARIABLE=VALUE...: a run and doctor open its libraries.
takes() {
    cuda=$1 folder=$2
    shift 2
    rm -f log
    both=$folder:$SINTER_DOUBLE:$SINTER_DOUBLE/12
    expect 0 env LD_LIBRARY_PATH="$both" SINTER_DOUBLE_LOG="$work/log" "$@" \
        ./many --device=cuda:0 --data=synthetic:32 --out=run
    for call in nvrtcVersion cublasLtCreate; do
        [ "$(sed -n "s/.* $call //p" log | sort -u)" = "$cuda" ] ||
            fail "$*: $call not of $cuda"
    done
    expect 0 env LD_LIBRARY_PATH="$both" "$@" "$SINTER" doctor
    expect_says "^NVRTC  *$cuda[.].*$folder/libnvrtc.so.$cuda"
    expect_says "^cuBLASLt  *$cuda[.].*$folder/libcublasLt.so.$cuda"
    expect_says "^cuDNN .* for CUDA $cuda  $folder/libcudnn.so.9"
    expect_says "complete: trainers run"
    rm -rf run
}

takes 13 "$SINTER_DOUBLE" SINTER_DOUBLE_SEED=2
takes 12 "$SINTER_DOUBLE/12" SINTER_DOUBLE_DRIVER=12080
takes 12 "$SINTER_DOUBLE/12" SINTER_DOUBLE_DEVICE="$work/volta.json"

# cuDNN of CUDA 13 where that of CUDA 12 is needed, and the other way round.
expect 0 "$SINTER" build "$here/tiny.net" -o tiny
first_13=$SINTER_DOUBLE:$SINTER_DOUBLE/12
LD_LIBRARY_PATH=$first_13
for needs in DRIVER=12080 DEVICE="$work/volta.json"; do
    expect 4 env "SINTER_DOUBLE_$needs" ./tiny --device=cuda:0 \
        --data=synthetic:64 --out=run
    expect_says "this cuDNN is for CUDA 13, .*nvidia-cudnn-cu12"
    expect 0 env "SINTER_DOUBLE_$needs" "$SINTER" doctor
    expect_says "^  cuDNN: this cuDNN is for CUDA 13"
done
expect 0 env LD_LIBRARY_PATH="$SINTER_DOUBLE/12:$SINTER_DOUBLE" ./tiny \
    --device=cuda:0 --data=synthetic:64 --out=run
rm -rf run

# Without those of CUDA 12.
export SINTER_DOUBLE_DEVICE="$work/volta.json"
export LD_LIBRARY_PATH="$work/without:$SINTER_DOUBLE/12:$SINTER_DOUBLE"
expect 4 ./many --device=cuda:0 --data=synthetic:32 --out=run
expect_says "needs* libcublasLt.so.12.*install cuBLAS of CUDA 12$"
expect 0 "$SINTER" doctor
expect_says "NVRTC: .*libnvrtc.so.12.*need CUDA 12.*nvidia-cuda-nvrtc-cu12"
expect_says "cuBLASLt: .*install cuBLAS of CUDA 12$"
expect 4 ./tiny --device=cuda:0 --data=synthetic:64 --out=run
expect_says "NVIDIA's compiler libnvrtc.so.12.*need CUDA 12"

# Code for both is compiled by each one's own, and needs none where it runs.
unset SINTER_DOUBLE_DEVICE
expect 4 "$SINTER" build "$here/tiny.net" -o two --target=cuda:sm_70,sm_90
expect_says "need CUDA 12"
LD_LIBRARY_PATH=$first_13
rm -f log
expect 0 env SINTER_DOUBLE_LOG="$work/log" "$SINTER" build "$here/tiny.net" \
    -o two --target=cuda:sm_90,sm_70,sm_80
[ "$(sed -n 's/.* nvrtcVersion //p' log | tr '\n' ' ')" = "13 12 13 " ] ||
    fail "not each by its own"
for file in libnvrtc.so.13 libcublasLt.so.13; do
    echo none >without/$file
done
LD_LIBRARY_PATH=$work/without:$SINTER_DOUBLE/12:$SINTER_DOUBLE
for device in volta.json "$SINTER_SOURCE/tools/devices/h200.json"; do
    expect 0 env SINTER_DOUBLE_DEVICE="$device" ./two --device=cuda:0 \
        --data=synthetic:64 --out=run
    rm -rf run
done
exit 0
