#!/bin/sh
# sinter export: onnx.checker accepts the ONNX file, and onnxruntime has the
# predictions of the trainer for some inputs; so has the module for PyTorch, and
# its state_dict comes back by --init.  EXPORT_ALL=1: of all models, 100 inputs.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

for candidate in "${SINTER_PYTHON:-}" python3; do
    $candidate -c 'import onnx, onnxruntime' 2>/dev/null &&
        python=$candidate && break
done
[ -n "${python:-}" ] || exit 77
own=$SINTER_SOURCE/tests/tools/export
for candidate in python3 /usr/bin/python3; do
    $candidate -c 'import torch' 2>/dev/null && torch=$candidate && break
done

# trained FILE.net SETTING...: some steps of it, in a folder of its name, whose
# settings export takes from the run.
trained() {
    model=$1 name=$(basename "$1" .net)
    shift
    for setting; do
        shift
        set -- "$@" --set "$setting"
    done
    mkdir "$name"
    expect 0 "$SINTER" build "$model" "$@" -o "$name/trainer"
    expect 0 "$name/trainer" --data=synthetic:32 --steps=2 --out="$name/run" \
        --quiet
    expect 0 "$SINTER" export "$model" --weights="$name/run" --onnx \
        -o "$name/model.onnx"
    expect 0 "$SINTER" export "$model" --weights="$name/run" --pytorch \
        -o "$name/model.py"
    all="${all:-} $name"
}

# agree: the predictions of all; Python and its packages start once for each
# side.
agree() {
    # shellcheck disable=SC2086 # words
    expect 0 "$python" "$own/agree.py" inputs $all
    for name in $all; do
        expect 0 "$name/trainer" --predict "$name/inputs.npy" \
            --weights="$name/run" -o "$name/trainer.npy"
    done
    # shellcheck disable=SC2086
    expect 0 "$python" "$own/agree.py" agree $all
    cat out
    [ -n "${torch:-}" ] || return 0
    # shellcheck disable=SC2086
    expect 0 "$torch" "$own/agree_torch.py" $all
    cat out
    for name in $all; do
        expect 0 "$name/trainer" --predict "$name/inputs.npy" \
            --weights="$name/model.safetensors" -o "$name/back.npy"
        expect_equal "$name/trainer.npy" "$name/back.npy"
    done
}

image='data=synthetic(shape=[32, 32, 3])'
# Views of an evaluation; attention; upsampling and skips; groups; averages.
trained "$models/airbench94.net" batch=16
trained "$models/gpt_nano.net" batch=4 'layers=[1]' \
    'data=synthetic(vocabulary=65, shape=[32])'
trained "$models/llama_nano.net" batch=4 'layers=[1]' \
    'data=synthetic(vocabulary=65, shape=[32])'
# Recurrent layers: gated, and stacked from a list.
trained "$models/gru_text.net" batch=4 size=8 width=8 \
    'data=synthetic(vocabulary=256, shape=[12])'
trained "$models/unet_seg.net" batch=4 width=4 classes=10 input=data.train \
    'data=synthetic(shape=[32, 32, 3])'
trained "$models/mobilenetv2.net" batch=8 classes=10 input=data.train "$image"
trained "$models/vit_tiny.net" batch=4 shards=2 'depth=[1]' width=24 \
    input=data.train "$image"
trained "$models/mlp.net" batch=16
if [ -n "${EXPORT_ALL:-}" ]; then
    trained "$models/airbench94_muon.net" batch=16
    trained "$models/airbench96.net" batch=16 width=16
    trained "$models/hlb.net" batch=16
    trained "$models/lenet.net" batch=16
    trained "$models/preact_resnet18.net" batch=16
    trained "$models/resnet18.net" batch=16
    trained "$models/resnet50.net" batch=4
    trained "$models/resnet9.net" batch=16
    trained "$models/resnet9_tricks.net" batch=16
    trained "$models/vgg16_bn.net" batch=16
fi
trained "$own/transposed.net" batch=16
agree
for layer in Conv2d BatchNorm2d Linear; do
    grep -q "nn.$layer(" mobilenetv2/model.py || fail "no layer is an nn.$layer"
done
grep -q 'nn.ConvTranspose2d(8, 6, 3, stride=2' transposed/model.py ||
    fail "no layer is an nn.ConvTranspose2d"

# Weights of another program, without averages; errors.
cp "$models/mlp.net" .
expect 0 "$SINTER" export mlp.net --set batch=16 --onnx \
    --weights="$(newest mlp/run)"
[ -s mlp.onnx ] || fail "no file is written by default"
# An output gives way to an input of its name.
sed 's/(image: /(prediction: /; s/^  image$/  prediction/' mlp.net >taken.net
expect 0 "$SINTER" export taken.net --set batch=16 --onnx --weights=mlp/run
expect_says "with input prediction and output output.prediction"
sed 's/prediction/self/' taken.net >self.net
expect 1 "$SINTER" export self.net --set batch=16 --pytorch --weights=mlp/run
expect_says "PyTorch has another meaning for the name self"
expect 0 "$SINTER" export mlp.net --set batch=16 --safetensors=pytorch \
    --weights=mlp/run -o state_dict.safetensors
expect_equal state_dict.safetensors mlp/model.safetensors
expect 0 mlp/trainer --data=synthetic:64 --init=state_dict.safetensors \
    --init-only --out=again
sed 's/linear(10)/linear(10) as forward/' mlp.net >named.net
expect 0 "$SINTER" build named.net --set batch=16 -o named
expect 0 ./named --data=synthetic:64 --steps=1 --quiet --out=named_run
expect 1 "$SINTER" export named.net --set batch=16 --pytorch --weights=named_run
expect_says "PyTorch has another meaning for the name forward"
expect 2 "$SINTER" export mlp.net --onnx
expect_says "needs --weights=PATH"
expect 2 "$SINTER" export mlp.net --weights=mlp/run
expect_says "needs a format"
expect 2 "$SINTER" export mlp.net --weights=mlp/run --onnx --pytorch
expect_says "needs one of --onnx, --pytorch and --safetensors=pytorch"
expect 2 "$SINTER" export mlp.net --weights=mlp/run --safetensors=jax
expect 3 "$SINTER" export mlp.net --onnx --weights=nothing
expect_says "cannot open nothing"
expect 3 "$SINTER" export mlp.net --set width=50 --onnx --weights=mlp/run
expect_says "mlp/run: it has no tensor linear_1.weight of shape .*50.*: give all"
cp -r mlp/run unreadable
sed -i 's/"set": {.*}/"set": {"width": 24}/' unreadable/settings.json
expect 2 "$SINTER" export mlp.net --onnx --weights=unreadable
expect_says "unreadable: the settings of its run cannot be read: give --set"
expect 2 "$SINTER" export mlp.net --onnx --weights=mlp/run -o mlp.net
expect 74 "$SINTER" export mlp.net --onnx --weights=mlp/run -o nowhere/m.onnx
if [ -z "${torch:-}" ]; then
    echo "no PyTorch: modules of --pytorch are written and not run"
    exit 77
fi
