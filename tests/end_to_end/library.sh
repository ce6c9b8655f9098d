#!/bin/sh
# sinter build --library: docs/library.md works as written; predictions and
# updates have the trainer's bits; instances share nothing; errors end calls and
# not the program; and the libraries have the model's names alone.
# Libraries of a large model, of threads and of the page are compiled by a whole
# compiler, and run for less time than -O1 takes.
export OPTIMISATION="${OPTIMISATION--Og}"
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
whole=${CC:-cc}
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
tiny=$CC

for candidate in "${SINTER_PYTHON:-}" python3 /usr/bin/python3; do
    $candidate -c 'import numpy, cffi' 2>/dev/null && cffi=$candidate && break
done
for candidate in python3 /usr/bin/python3; do
    $candidate -c 'import numpy, PIL' 2>/dev/null && python=$candidate && break
done
[ -n "${python:-}" ] || exit 77

"$python" "$here/predict.py" data
cp "$here/predict.net" .
for setting in 'average=ema(0.9, start=2 epoch)' \
    'average=lookahead(0.9, every=2 step)' shards=4 sync_batch_norm=true; do
    set -- predict.net --set "$setting"
    [ "$setting" = sync_batch_norm=true ] && set -- "$@" --set shards=4
    case $setting in
    shards=4 | sync_batch_norm=true) set -- "$@" --set optimizer_shards=3 ;;
    esac
    [ "$setting" = sync_batch_norm=true ] && export CC="$whole"
    expect 0 "$SINTER" build "$@" -o trainer
    expect 0 "$SINTER" build "$@" --library -o libsmall
    expect 0 "$SINTER" build "$@" --library --inference -o libpredicts
    for epochs in 1 4; do
        rm -rf run
        expect 0 ./trainer --device=host --out=run --epochs=$epochs --quiet
        expect 0 ./trainer --device=host --predict data --weights=run -o all.npy
        cp "$(newest run)" run.safetensors
        rm -rf run.folder
        mv run run.folder
        expect 0 "$python" "$here/library.py" predicts run.safetensors all.npy
    done
    expect 0 "$python" "$here/library.py" trains run.safetensors
    case $setting in
    *start*) expect 0 "$python" "$here/library.py" early ;;
    esac
    rm -rf again
    expect 0 ./trainer --device=host --init=run.safetensors --out=again --quiet
    expect 0 ./trainer --device=host --predict data --weights=again -o again.npy
    expect 0 "$python" "$here/library.py" continues "$(newest again)" \
        run.safetensors again.npy
done
expect 3 ./trainer --device=host --resume=own.safetensors --out=resumed
expect_says "of a library, whose data are not known"
expect 0 ./trainer --device=host --init=own.safetensors --out=new --steps=1
expect 0 "$python" "$here/library.py" threads

# Small models have contractions of their own instead of oneDNN's.
cp "$here/plain.net" .
expect 0 "$SINTER" build plain.net --library -o libplain
expect 0 "$SINTER" build plain.net --library --inference -o libown
expect 0 "$python" "$here/library.py" own
for file in libown libpredicts; do
    ldd $file.so | grep dnnl && fail "$file needs oneDNN"
done
ldd libplain.so | grep -q dnnl || fail "nothing needs oneDNN"
set -- "$models/resnet9.net" --set width=16 --set batch=64
expect 0 "$SINTER" build "$@" --library -o liblarge
expect 0 "$SINTER" build "$@" --library --inference -o liblarger
expect 0 "$python" "$here/library.py" large
ldd liblarger.so | grep -q dnnl || fail "a large model lacks oneDNN"

expect 0 "$python" "$here/library.py" weights
expect 0 "$python" "$here/library.py" errors
(
    ulimit -S -v $((600 << 10))
    expect 0 "$python" "$here/library.py" memory
) || exit 1

# Inputs that are not finite end no program and change no weight; the loss masks
# targets that are NaN.
export CC="$tiny"
cat >line.net <<'END'
model Line(x: f32[N, 3]) -> f32[N, 1] { x |> linear(1) }
train Line {
  data      = npy("data", targets=true)
  batch     = 8
  epochs    = 20
  loss      = mean(mse(where(label == label, output, 0),
                       where(label == label, label, 0)))
  optimizer = sgd(lr=1)
}
END
expect 0 "$SINTER" build line.net --library -o libline
expect 0 "$python" "$here/library.py" finite

# A model that starts from its data loads what --init-only wrote.
export CC="$tiny"
expect 0 "$SINTER" build "$models/airbench94.net" --set batch=16 --library \
    -o libair
expect 0 "$SINTER" build "$models/airbench94.net" --set batch=16 -o air
expect 0 ./air --device=host --data=synthetic:64 --init-only --out=air_run
expect 0 "$python" "$here/library.py" starts "$(newest air_run)"

for file in libsmall.so libpredicts.so; do
    nm -D --defined-only $file | awk '{print $3}' >names
    [ "$(wc -l <names)" -eq 14 ] || fail "$file has $(cat names)"
done
for file in libsmall.a libpredicts.a; do
    nm -g --defined-only $file | awk 'NF == 3 {print $3}' >names
    [ "$(wc -l <names)" -eq 14 ] || fail "$file has $(cat names)"
done
parts='train_step|k[0-9]+_update.*|rt_loader_.*|rt_report_.*'
nm libsmall.so | grep -q -E " ($parts)$" || fail "no part of training is found"
nm libpredicts.so | grep -E " ($parts)$" &&
    fail "a library that predicts has parts of a trainer"
expect 2 "$SINTER" build predict.net --inference
expect_says "needs --library"
expect 2 "$SINTER" build predict.net --library --emit=c
expect_says "exclude each other"

export CC="$whole"
if [ -n "${cffi:-}" ]; then
    expect 0 "$SINTER" build "$models/mlp.net" --library -o libmlp
    expect 0 "$SINTER" build "$models/mlp.net" -o mlp
    expect 0 ./mlp --data=synthetic:256 --steps=1 --out=mlp_run --quiet
    examples=$SINTER_SOURCE/examples/embed
    expect 0 "$cffi" "$examples/with_cffi.py" ./libmlp.so "$(newest mlp_run)"
    mv out by_cffi
    expect 0 "$python" "$examples/with_ctypes.py" ./libmlp.so "$(newest mlp_run)"
    expect_equal out by_cffi
fi
python3 -c 'import numpy' 2>/dev/null || exit 0
[ -z "${CFLAGS:-}" ] || exit 0
python3 "$SINTER_SOURCE/tests/docs/walk.py" "$SINTER_SOURCE/docs/library.md"
