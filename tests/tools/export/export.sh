#!/bin/sh
# sinter export: onnx.checker accepts the ONNX file, and onnxruntime has the
# predictions of the trainer for 100 inputs; so has the module for PyTorch, and
# its state_dict comes back by --init.  EXPORT_ALL=1: of all models.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

for candidate in "${SINTER_PYTHON:-}" python3; do
    $candidate -c 'import onnx, onnxruntime' 2>/dev/null &&
        python=$candidate && break
done
[ -n "${python:-}" ] || exit 77
own=$SINTER_SOURCE/tests/tools/export
for candidate in python3 /usr/bin/python3; do
    $candidate -c 'import torch' 2>/dev/null && torch=$candidate && break
done

# agrees NAME SETTING...: after some steps of training.
agrees() {
    name=$1
    shift
    for setting; do
        shift
        set -- "$@" --set "$setting"
    done
    expect 0 "$SINTER" build "$models/$name.net" "$@" -o trainer
    rm -rf run
    expect 0 ./trainer --data=synthetic:64 --steps=4 --out=run --quiet
    expect 0 "$SINTER" export "$models/$name.net" "$@" --weights=run --onnx \
        -o "$name.onnx"
    expect 0 "$python" "$own/agree.py" inputs "$name.onnx" inputs.npy
    expect 0 ./trainer --predict inputs.npy --weights=run -o trainer.npy
    expect 0 "$python" "$own/agree.py" agree "$name.onnx" inputs.npy trainer.npy
    cat out
    expect 0 "$SINTER" export "$models/$name.net" "$@" --weights=run \
        --pytorch -o "$name.py"
    [ -n "${torch:-}" ] || return 0
    expect 0 "$torch" "$own/agree_torch.py" "$name.py" inputs.npy trainer.npy
    cat out
    expect 0 ./trainer --predict inputs.npy --weights="$name.safetensors" \
        -o back.npy
    expect_equal trainer.npy back.npy
}

image='data=synthetic(shape=[32, 32, 3])'
# Views of an evaluation; attention; upsampling and skips; groups; averages.
agrees airbench94 batch=16
agrees gpt_nano batch=4 'layers=[1]' 'data=synthetic(vocabulary=65, shape=[32])'
agrees llama_nano batch=4 'layers=[1]' 'data=synthetic(vocabulary=65, shape=[32])'
# Recurrent layers: gated, and stacked from a list.
agrees gru_text batch=4 size=8 width=8 'data=synthetic(vocabulary=256, shape=[12])'
agrees unet_seg batch=4 width=4 classes=10 input=data.train \
    'data=synthetic(shape=[32, 32, 3])'
agrees mobilenetv2 batch=4 classes=10 input=data.train "$image"
agrees vit_tiny batch=4 'depth=[1]' width=24 input=data.train "$image"
for layer in Conv2d BatchNorm2d Linear; do
    grep -q "nn.$layer(" mobilenetv2.py || fail "no layer is an nn.$layer"
done
agrees mlp batch=16
if [ -n "${EXPORT_ALL:-}" ]; then
    agrees airbench94_muon batch=16
    agrees airbench96 batch=16 width=16
    agrees hlb batch=16
    agrees lenet batch=16
    agrees preact_resnet18 batch=16
    agrees resnet18 batch=16
    agrees resnet50 batch=4
    agrees resnet9 batch=16
    agrees resnet9_tricks batch=16
    agrees vgg16_bn batch=16
    agrees vit_tiny batch=4
fi

# Weights of another program, without averages; errors.
cp "$models/mlp.net" .
expect 0 "$SINTER" export mlp.net --set batch=16 --onnx \
    --weights="$(newest run)"
[ -s mlp.onnx ] || fail "no file is written by default"
expect 0 "$SINTER" export mlp.net --set batch=16 --safetensors=pytorch \
    --weights=run -o state_dict.safetensors
expect_equal state_dict.safetensors mlp.safetensors
expect 0 ./trainer --data=synthetic:64 --init=state_dict.safetensors \
    --init-only --out=again
sed 's/linear(10)/linear(10) as forward/' mlp.net >named.net
expect 0 "$SINTER" build named.net --set batch=16 -o named
expect 0 ./named --data=synthetic:64 --steps=1 --quiet --out=named_run
expect 1 "$SINTER" export named.net --set batch=16 --pytorch --weights=named_run
expect_says "PyTorch has another meaning for the name forward"
expect 2 "$SINTER" export mlp.net --onnx
expect_says "needs --weights=PATH"
expect 2 "$SINTER" export mlp.net --weights=run
expect_says "needs a format"
expect 2 "$SINTER" export mlp.net --weights=run --onnx --pytorch
expect_says "needs a format"
expect 2 "$SINTER" export mlp.net --weights=run --safetensors=jax
expect 3 "$SINTER" export mlp.net --onnx --weights=nothing
expect_says "cannot open nothing"
expect 1 "$SINTER" export mlp.net --set width=50 --onnx --weights=run
expect_says "the weights have no tensor linear_1.weight of this shape"
expect 2 "$SINTER" export mlp.net --onnx --weights=run -o mlp.net
expect 74 "$SINTER" export mlp.net --onnx --weights=run -o nowhere/m.onnx

models=$own
agrees transposed batch=16
grep -q 'nn.ConvTranspose2d(8, 6, 3, stride=2' transposed.py ||
    fail "no layer is an nn.ConvTranspose2d"
