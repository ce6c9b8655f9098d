#!/bin/sh
# A state_dict of PyTorch as it is, with a map of names: --predict has PyTorch's
# logits, and --init starts with its weights.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

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
mix                = mix
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
echo 'third = body' >>names.map
expect 3 ./trainer --predict inputs.npy --weights=weights.safetensors \
    --map=names.map
expect_says "names.map maps third"
expect 2 ./trainer --predict inputs.npy --map=names.map
expect_says "map needs --init=FILE or --weights=FILE"
