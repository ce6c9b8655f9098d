#!/bin/sh
# The pictures in docs/pictures are those of today's compiler: the drawings that
# follow from it alone to the byte, the others by the facts in them; all are small,
# whole, and shown by a page.
set -u

. "$SINTER_SOURCE/tests/end_to_end/folder.sh"
pictures=$SINTER_SOURCE/docs/pictures
drawn="kernel memory pipeline step"
again="docs/pictures/make --only"

# shellcheck disable=SC2046 # an option and a name for each
"$pictures/make" --out made $(printf ' --only %s' $drawn) >out 2>&1 ||
    fail "make: $(cat out)"

# same NAME FOLDER: whether a drawing is the one that was just made.
same() {
    cmp -s "$2/$1.svg" "made/$1.svg"
}
for name in $drawn; do
    same "$name" "$pictures" || fail "$name.svg is not today's; $again $name:
$(diff "$pictures/$name.svg" "made/$name.svg" | head -6)"
done

# A number that has changed is noticed.
mkdir stale
sed 's/721 MiB/720 MiB/' "$pictures/memory.svg" >stale/memory.svg
same memory stale && fail "a stale drawing is not noticed"

# The others: text in the screenshot's file, and on the terminal.
"$SINTER" check --target=host --json --set width=8 "$models/resnet9.net" >check.json
python3 "$SINTER_SOURCE/tests/docs/pictures.py" "$pictures" check.json \
    "$(cd "$SINTER_SOURCE" && python3 docs/pictures/draw.py facts "$SINTER" models/resnet9.net)" ||
    failed=1

# Each is on a page.
for file in "$pictures"/*.svg "$pictures"/*.png; do
    grep -qF "pictures/$(basename "$file")" "$SINTER_SOURCE"/*.md "$SINTER_SOURCE"/docs/*.md ||
        fail "no page shows $(basename "$file")"
done

exit $failed
