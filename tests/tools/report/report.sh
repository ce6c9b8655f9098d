#!/bin/sh
# The page that sinter report writes, in a browser: its links, what is marked, its
# drawings, light and dark, on paper, and how long the largest takes to load.
set -u

. "$SINTER_SOURCE/tests/end_to_end/folder.sh"

for model in resnet9 gpt_nano resnet50; do
    "$SINTER" report -o $model.html "$models/$model.net" || fail "report $model"
    # Nothing is loaded: the one address is a name, that of SVG.
    grep -oE '(https?:)?//[a-z0-9.]+\.[a-z]+/?' $model.html |
        grep -v '^http://www.w3.org/' && fail "$model.html names an address"
done
# Launches are those that check counts.
for model in resnet9 gpt_nano; do
    "$SINTER" check --json --target=cuda "$models/$model.net" >check.json
    python3 - $model.html check.json <<'END' || fail "launches of $model"
import json, re, sys
page = open(sys.argv[1]).read()
data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
check = json.load(open(sys.argv[2]))
steps = {s["name"]: s for s in data["steps"]}
assert {n: s["launches"] for n, s in steps.items()} == {
    s["name"]: s["launches"] for s in check["steps"]}
assert steps["train"]["launches"] == check["launches"]
assert steps["train"]["launches_without_joins"] == check["launches_without_joins"]
END
done
"$SINTER" report "$models/none.net" 2>out && fail "a report of nothing"
"$SINTER" report -o none/x.html "$models/lenet.net" 2>out
[ $? -eq 74 ] || fail "a page that cannot be written: $(cat out)"

tiny=$SINTER_SOURCE/tests/end_to_end/tiny.net
# A model that is imported is on the page with its lines, and what it imports, each
# with its own where their names are alike.
mkdir -p lib/own
sed -n '/^fn/p' "$tiny" >lib/own/net.net
{
    echo 'import "own/net.net" { conv_bn }'
    sed -n '/^model/,/^}/p' "$tiny"
} >lib/net.net
{
    echo 'import "lib/net.net" { Tiny }'
    sed -n '/^import/p' "$tiny"
    sed -n '/^train/,$p' "$tiny"
} >net.net
"$SINTER" report -o two.html net.net || fail "report two"

# Text of the model stays text.
{
    printf '# </script><b id="injected">@DATA@</b><!-- " \1 \377 \342\200\250 \t\r\n'
    cat "$models/lenet.net"
} >hostile.net
"$SINTER" report hostile.net || fail "report hostile"
"$SINTER" report -o - hostile.net | cmp - hostile.html || failed=1

# The page is the same; what made it is what sanitizers look at.
[ -z "${SINTER_SANITIZED:-}" ] || exit $failed

browser=$(command -v chromium || command -v chromium-browser)
if [ -z "$browser" ]; then
    [ $failed -eq 0 ] || exit 1
    echo "no chromium: pages are not opened"
    exit 77
fi

browse() {
    HOME=$work timeout 100 "$browser" --headless --no-sandbox --disable-gpu \
        --disable-dev-shm-usage --user-data-dir="$work/profile" \
        --window-size=1400,1000 "$@" 2>browser.log
}

# check PAGE OPTION...: opens it with what is asked appended; result has the
# answer.
check() {
    page=$1
    shift
    {
        cat "$page.html"
        echo '<script>'
        cat "$SINTER_SOURCE/tests/tools/report/check.js"
        echo '</script>'
    } >checked.html
    browse --dump-dom --virtual-time-budget=60000 "$@" "file://$work/checked.html" |
        sed -n '/<pre id="result">/,/<\/pre>/p' >result
    grep -q 'as it should be' result || fail "$page: $(cat result browser.log)"
}

check gpt_nano
check resnet9
check two
light=$(sed -n 's/.*paper //p' result)
check two --blink-settings=preferredColorScheme=0
[ "$(sed -n 's/.*paper //p' result)" != "$light" ] || fail "dark is light"
for file in net lib/net lib/own/net; do
    grep -q "\"file\": \"$file.net\", \"text\": " two.html ||
        fail "$file.net is not on the page"
done
check hostile

# A page that is broken is noticed.
sed 's/classList.add("marked")/classList.add("unmarked")/' two.html >broken.html
(check broken 2>/dev/null; [ $failed -eq 0 ]) && fail "check.js finds no fault"

# opened PAGE: the milliseconds that all of the browser works for it; its document
# goes to PAGE.dom.
opened() {
    (browse --dump-dom "file://$work/$1" >"$1.dom"; times) |
        awk 'END {split($0, part, /[ms ]+/)
            print int(1000 * (60 * (part[1] + part[3]) + part[2] + part[4]))}'
}

# A machine that does other work makes a page wait, so what is worked to open it and
# to draw all that is in it counts, beyond opening nothing: alone it is there
# sooner.
echo '<script>waitingDraw(() => false); document.body.offsetHeight;</script>' |
    cat resnet50.html - >timed.html
echo '<p>nothing' >nothing.html
nothing=$(opened nothing.html)
took=$(($(opened timed.html) - nothing))
grep -q 'id="peak"' timed.html.dom || fail "resnet50 is not drawn"
echo "resnet50 takes $took ms of processor beside $nothing ms of any page"
[ "$took" -lt 2000 ] || fail "resnet50 takes $took ms"

browse --no-pdf-header-footer --print-to-pdf=paper.pdf "file://$work/resnet9.html"
pages=$(grep -ac '/Type /Page$' paper.pdf)
[ "$pages" -gt 2 ] || fail "$pages pages on paper"

exit $failed
