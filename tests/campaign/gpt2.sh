#!/bin/sh
# models/gpt2.net takes the weights of Hugging Face's GPT-2 by its map, at full
# size, and computes its logits.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
python=$SINTER_PYTHON
"$python" -c 'import torch, transformers' 2>/dev/null || exit 77
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false

"$python" "$SINTER_SOURCE/tests/campaign/gpt2.py" save "$work" 2>err ||
    fail "$(cat err)"
expect 0 "$SINTER" build "$models/gpt2.net" --set precision=f32 --set batch=1 -o gpt2
expect 0 ./gpt2 --predict texts.npy --weights=model.safetensors \
    --map="$models/gpt2.map" --quiet -o logits.npy
"$python" "$SINTER_SOURCE/tests/campaign/gpt2.py" compare "$work" logits.npy ||
    fail "other logits"
