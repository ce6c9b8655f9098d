#!/bin/sh
# Commands that are started in the root of a clone leave nothing there that git
# shows: by default they write where .gitignore says, which names every model.
. "$SINTER_SOURCE/tests/end_to_end/folder.sh"

cat >page.md <<'PAGE'
```sh
sinter build models/mlp.net
sinter build models/mlp.net --emit=c
sinter report models/mlp.net
sinter check --json models/mlp.net >mlp.json
sinter show fused models/mlp.net >fused.ir
./mlp --device=host --data synthetic --steps=12 --metrics=run.jsonl \
    --times=times.jsonl --profile=trace.json
mkdir -p data/mine && touch data/mine/image
for model in models/*.net; do
    name=$(basename "$model" .net)
    for file in $name $name.c $name.cu $name.ir $name.bin $name.html \
        $name.tuning $name.kernel/kernel.c; do
        git check-ignore -q "$file" || { echo "$file is not ignored"; exit 1; }
    done
done
! git check-ignore --no-index $(git -C "$SINTER_SOURCE" ls-files)
```
PAGE
python3 "$SINTER_SOURCE/tests/docs/walk.py" page.md
