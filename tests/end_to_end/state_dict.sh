#!/bin/sh
# A state_dict of PyTorch as it is, with a map of names: --predict has PyTorch's
# logits, and --init starts with its weights.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

for candidate in python3 /usr/bin/python3; do
    $candidate -c 'import numpy, torch' 2>/dev/null && python=$candidate &&
        break
done
[ -n "${python:-}" ] || exit 77
cp "$here/state_dict.net" .
"$python" "$here/state_dict.py" write weights.safetensors inputs.npy torch.npy ||
    fail "PyTorch"
cat >names.map <<'END'
# state_dict.net, from the network of state_dict.py
first.conv_1       = stem.0
first.batch_norm_1 = stem.1
second.conv_1      = body.conv
second.batch_norm_1 = body.norm
up.conv_transpose_1 = up.0
mix                = mix
line.conv1d        = line
head               = classifier
END
expect 0 "$SINTER" build state_dict.net -o trainer
expect 0 ./trainer --predict inputs.npy --weights=weights.safetensors \
    --map=names.map -o trainer.npy
expect 0 "$python" "$here/state_dict.py" compare trainer.npy torch.npy

# The same from a run that starts with them.
expect 0 ./trainer --data=synthetic:64 --init=weights.safetensors \
    --map=names.map --init-only --out=run
expect_says "its filters have channels first, and are turned"
expect_says "counters: stem.1.num_batches_tracked, body.norm.num_batches"
expect 0 ./trainer --predict inputs.npy --weights=run -o again.npy
expect_equal trainer.npy again.npy

# Without the map; with a line for nothing.
expect 3 ./trainer --predict inputs.npy --weights=weights.safetensors
expect_says "it has no first.conv_1.weight"
expect_says "--map=FILE maps names of the model to the file's; build with the"
echo 'third = body' >>names.map
expect 3 ./trainer --predict inputs.npy --weights=weights.safetensors \
    --map=names.map
expect_says "names.map maps third"
expect 2 ./trainer --predict inputs.npy --map=names.map
expect_says "map needs --init=FILE or --weights=FILE"

# logits NAME MODEL.net MAP SIZE SETTING...: a network of torchvision.
logits() {
    name=$1 model=$SINTER_SOURCE/$2 map=$SINTER_SOURCE/$3 size=$4
    shift 4
    for setting; do
        shift
        set -- "$@" --set "$setting"
    done
    "$python" "$here/state_dict.py" torchvision "$name" "$model" "$size" ||
        fail "$name"
    expect 0 "$SINTER" build "$model" --set batch=4 "$@" -o trainer
    expect 0 ./trainer --predict inputs.npy --weights=weights.safetensors \
        --map="$map" -o trainer.npy
    expect 0 "$python" "$here/state_dict.py" compare trainer.npy torch.npy
    echo "$name: $(cat out)"
}

# TORCHVISION=1: three minutes.
[ -n "${TORCHVISION:-}" ] || exit 0
logits resnet18 docs/examples/photos.net docs/examples/photos.map 64 \
    classes=1000 data.size=64
logits resnet50 models/resnet50.net models/resnet50.map 224
logits mobilenet_v2 models/mobilenetv2.net models/mobilenetv2.map 224
logits vit_b_16 models/vit_tiny.net models/vit_b_16.map 224 width=768 heads=12
