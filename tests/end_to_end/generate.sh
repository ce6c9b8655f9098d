#!/bin/sh
# --generate continues a text with the tokens that the model scores highest
# after it, by the caches of the decode step; draws from all, the top-k or the
# top-p; and needs a model that reads earlier tokens alone.  A library generates
# the same texts.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

for candidate in python3 /usr/bin/python3; do
    $candidate -c 'import numpy' 2>/dev/null && python=$candidate && break
done
[ -n "${python:-}" ] || exit 77

expect 0 "$SINTER" data tokenize "$SINTER_SOURCE/docs/tips.md" \
    --tokenizer=characters -o text
kinds=$(sed -n 's/.*vocabulary=\([0-9]*\).*/\1/p' out)
cp "$models/gpt_nano.net" .
for layers in '[1, 2]' '[1]'; do
    set -- gpt_nano.net --set vocabulary="$kinds" --set batch=4 \
        --set "data=tokens(\"text\", length=24, vocabulary=$kinds)" \
        --set "layers=$layers" --set width=24 --set optimizer.lr=5e-3
    expect 0 "$SINTER" build "$@" -o trainer
    expect 0 ./trainer --steps=60 --out="run$layers" --quiet
    cmp text/tokenizer.json "run$layers/tokenizer.json" ||
        fail "the run lacks the tokenizer"
    expect 0 ./trainer --generate='| tool' --weights="run$layers" \
        --temperature=0 --tokens=60
    expect_says "60 generated"
    cp out greedy
    "$python" "$here/generate.py" greedy text/tokenizer.json 6 24 \
        ./trainer "run$layers" || fail "other tokens than --predict's"
done

expect 0 "$SINTER" build "$@" --library -o libgpt
expect 0 "$SINTER" build "$@" --library --inference -o libsmall
"$python" "$here/generate.py" library ./trainer "$(newest 'run[1]')" \
    text/tokenizer.json || fail "the library generates other texts"

# Rotary positions, RMSNorm, SwiGLU and grouped queries.  After fewer steps the
# text is one letter, which tells little of the positions before.
expect 0 "$SINTER" build "$models/llama_nano.net" -o llama --set vocabulary="$kinds" \
    --set "data=tokens(\"text\", length=24, vocabulary=$kinds)" \
    --set batch=4 --set 'layers=[1, 2]' --set width=24 --set optimizer.lr=5e-3
expect 0 ./llama --steps=110 --out=llama-run --quiet
expect 0 ./llama --generate='| tool' --weights=llama-run --temperature=0 --tokens=60
expect_says "60 generated"
cp out llama-greedy
"$python" "$here/generate.py" llama-greedy text/tokenizer.json 6 24 \
    ./llama llama-run || fail "other tokens than --predict's"

# Tied embeddings, and weights under the names of Hugging Face's files.
expect 0 "$SINTER" build "$models/gpt2.net" -o gpt2 --set vocabulary="$kinds" \
    --set "data=tokens(\"text\", length=24, vocabulary=$kinds)" --set lr=5e-3 \
    --set batch=4 --set context=30 --set width=24 --set heads=2
expect 0 ./gpt2 --steps=1 --out=gpt2-run --quiet
expect 0 ./gpt2 --generate='| tool' --weights=gpt2-run --temperature=0 --tokens=60
expect_says "60 generated"
cp out gpt2-greedy
"$python" "$here/generate.py" gpt2-greedy text/tokenizer.json 6 24 \
    ./gpt2 gpt2-run || fail "other tokens than --predict's"
"$python" "$here/gpt2_names.py" "$(newest gpt2-run)" model.safetensors
expect 0 ./gpt2 --init=gpt2-run --eval-only --out=own --metrics=own.jsonl
expect 0 ./gpt2 --init=model.safetensors --map="$models/gpt2.map" \
    --init-except='h.*.attn.bias' --eval-only --out=other --metrics=other.jsonl
[ "$(grep -o '"loss":[^,}]*' own.jsonl)" = "$(grep -o '"loss":[^,}]*' other.jsonl)" ] ||
    fail "the map gives other weights"

# says WORD...: the text that these options give.
says() {
    expect 0 ./trainer --generate='| tool' --weights='run[1]' --tokens=60 "$@"
    cat out
}
[ "$(says --top-k=1)" = "$(cat greedy)" ] || fail "--top-k=1 is not greedy"
[ "$(says --top-p=1e-9)" = "$(cat greedy)" ] || fail "--top-p=1e-9 is not"
[ "$(says --seed=3)" = "$(says --seed=3)" ] || fail "a seed gives two texts"
[ "$(says --seed=3)" != "$(says --seed=4)" ] || fail "seeds do not matter"
[ "$(says --temperature=1e-3)" = "$(cat greedy)" ] || fail "a cold draw"
[ "$(says --top-k=2 --seed=3)" != "$(cat greedy)" ] || fail "two are one"
printf '| tool' >prompt
expect 0 ./trainer --generate=- --weights='run[1]' --tokens=60 --temperature=0 \
    <prompt
expect_equal out greedy

# sinter train does it without the data.
expect 0 env XDG_CACHE_HOME="$work/cache" "$SINTER" train gpt_nano.net \
    --set vocabulary="$kinds" --set batch=4 --set 'layers=[1]' --set width=24 \
    --set optimizer.lr=5e-3 \
    --set "data=tokens(\"nowhere\", length=24, vocabulary=$kinds)" \
    --generate='| tool' --weights='run[1]' --temperature=0 --tokens=60
expect_equal out greedy

# The scores have their probabilities: 100 first tokens.
"$python" "$here/generate.py" draws ./trainer 'run[1]' text/tokenizer.json 24 ||
    fail "draws do not follow the scores"

# Bytes need no tokenizer, and a model may lack it.
expect 3 ./trainer --generate=~ --weights='run[1]'
expect_says "no token for '~'"
expect 2 ./trainer --generate=- --weights='run[1]' </dev/null
expect_says 'needs a text to begin with'
expect 2 ./trainer --generate=a --temperature=-1
expect_says 'a number from 0'
expect 2 ./trainer --tokens=3
expect_says 'needs --generate TEXT'
expect 2 ./trainer --generate=a --steps=3
expect_says 'exclude each other'
rm 'run[1]/tokenizer.json' text/tokenizer.json
expect 3 ./trainer --generate=a --weights='run[1]'
expect_says 'name one with --tokenizer'
sed 's/attention(heads, causal/attention(heads/' gpt_nano.net >seeing.net
expect 0 "$SINTER" build seeing.net --set batch=4 -o seeing
expect 0 ./seeing --data=synthetic:8 --steps=1 --out=seen --quiet
expect 2 ./seeing --generate=a --weights=seen
expect_says 'cannot generate: softmax of attention_1, seeing.net:13 reads later'
expect 0 "$SINTER" build "$models/mlp.net" -o mlp
expect 0 ./mlp --data=synthetic:256 --steps=1 --out=images --quiet
expect 2 ./mlp --generate=a --weights=images
expect_says 'does not score the next token'
