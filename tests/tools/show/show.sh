#!/bin/sh
# What sinter shows of models: stages read back and are carried on to the same
# later stage, and all are written into a folder.
set -u

. "$SINTER_SOURCE/tests/end_to_end/folder.sh"

# A disassembler that prints as NVIDIA's, which need not be here, what it finds:
# the kernels of a file, from last to first.  Each says that it is from $LINE of
# the kernels' text, by way of another file.
cat >nvdisasm <<'END'
#!/bin/sh
for file; do :; done
[ -z "${KEPT:-}" ] || cp "$file" "$KEPT"
printf '\t.target\tsm_90\n'
grep -ao '\.text\.[km][0-9a-z_]*' "$file" | sort -ru | while read -r section; do
    printf '\n\n//--------------------- %s --------\n' "$section"
    printf '\t.section\t%s,"ax",@progbits\n\t.align\t128\n' "$section"
    printf '        .global         %s\n' "${section#.text.}"
    printf '%s:\n%s:\n' "${section#.text.}" "$section"
    text='"/home/me/resnet9.cu", line'
    own="$text ${LINE:-2}"
    printf '\t//## File "/home/cuda.h", line 3 inlined at %s\n' "$own"
    printf '\t//## File %s inlined at %s 1\n' "$own" "$text"
    printf '\t//## File %s 1\n' "$text"
    printf '        /*0000*/                   LDC R1, c[0x0][0x28] ;\n'
    printf '.L_x_0:\n\t//## File %s\n' "$own"
    printf '        /*0010*/              @!P0 BRA `(.L_x_0) ;\n'
    size=$(readelf -SW "$file" | sed -n "s/.* $section *PROGBITS//p" |
        awk '{ print $3 }')
    printf '        /*%04x*/                   NOP;\n.L_x_1:\n' \
        $((0x$size - 16))
done
printf '\n\n//--------------------- SYMBOLS --------\n\t.type\t.nv.x,@object\n'
END
chmod +x nvdisasm
export XDG_CACHE_HOME=$work/cache

# One that does not end, which is looked at when all else has been.
mkdir late
printf '#!/bin/sh\nsleep 100\n' >late/nvdisasm
chmod +x late/nvdisasm
PATH=$work/late:$PATH "$SINTER" show sass --kernel='k12*' \
    "$models/resnet9.net" >out.late 2>&1 &
late=$!

cnn=$models/resnet9.net

# ---- stages ----

for model in resnet9 gpt_nano; do
    act=f16
    [ "$model" = gpt_nano ] && act=bf16
    PATH=$work:$PATH "$SINTER" show --dump-to="$model" --kernel='k02*' \
        "$models/$model.net" 2>said || fail "dump $model"
    for stage in 02-graph 03-grad 04-typed 05-layout 06-simplified 07-fused \
        08-plan; do
        sed '/^#/d' $model/$stage.ir >graph.ir
        "$SINTER" show --from=${stage#*-} $model/$stage.ir |
            cmp -s - graph.ir || fail "$model/$stage does not read back"
        [ $stage = 08-plan ] && continue
        "$SINTER" show --from=${stage#*-} --to=fused --act=$act --target=cuda \
            $model/$stage.ir | cmp -s - $model/07-fused.ir ||
            fail "$model/$stage does not become what is fused"
    done
    "$SINTER" build --emit=c -o emitted "$models/$model.net"
    cmp emitted/$model.c $model/11-trainer.c || failed=1
    "$SINTER" show kernels --json --kernel='k02*' "$models/$model.net" |
        cmp - $model/10-kernels.json || failed=1
done
expect 0 "KERNEL(256" show --from=fused --to=kernels resnet9/07-fused.ir
expect 0 "kernel k02_" show kernel-ir --kernel='k02*' "$models/resnet9.net"
expect 0 "LANES_DO(k, VW)" show --from=fused --to=kernel-ir resnet9/07-fused.ir
expect 0 "|> call " show ast "$models/lenet.net"
printf 'model A(image: u8[N, 28, 28, 1]) -> {\n' >broken.net
expect 1 "broken.net:1:37" show ast broken.net
expect 74 "No such file" show ast none.net
for stage in memory ast; do
    expect 1 "is a graph, and no model: sinter show reads it with --from=" \
        show $stage resnet9/07-fused.ir
done
expect 1 "expected 'graph': the file is no graph; sinter show graph" opt "$cnn"
expect 2 "not fused and grad" show --from=fused --to=grad resnet9/07-fused.ir
expect 2 "not ast and plan" show --from=ast --to=plan resnet9/07-fused.ir
expect 2 "did you mean fused?" show --from=fusd resnet9/07-fused.ir
expect 2 "the stage comes before the file" show "$models/lenet.net" plan
# All that --help lists is shown, or said not to be there.
"$SINTER" show --help | sed -n 's/^  \([a-z]*\)  .*/\1/p' >listed
[ "$(wc -l <listed)" -eq 18 ] || fail "listed: $(cat listed)"
while read -r stage; do
    "$SINTER" show "$stage" "$models/mlp.net" >out 2>&1
    case $?$stage in
    0* | 4ptx | 4sass) ;;
    *) fail "$stage: $(head out)" ;;
    esac
done <listed
expect 2 "--dump-to=DIR writes all stages" show plan fused "$models/lenet.net"
expect 2 "--json is for show kernels" show memory --json "$models/lenet.net"
expect 2 "are for show kernels, kernel-ir," show plan --line=14 "$models/lenet.net"
expect 2 "are for show kernels, kernel-ir," \
    show --from=fused --to=kernels --kernel='k*' resnet9/07-fused.ir
expect 2 "show sass takes one GPU: give one --arch" \
    show sass --arch=sm_80,sm_90 "$models/lenet.net"
expect 2 "--at and --samples are for show recipe" show params --at=1 "$models/lenet.net"
for vain in plan --from=plan --to=plan --json --at=1; do
    expect 2 "--dump-to writes every stage of a model: it takes no stage" \
        show --dump-to=vain $vain "$models/lenet.net"
done
[ ! -e vain ] || fail "vain is written"
expect 2 "--samples needs a number from 1, not '0'" \
    show recipe --samples=0 "$models/lenet.net"
expect 0 "LeNet: 1 update of 1 sample, 1 in an epoch" show recipe --samples=1 \
    --set epochs=1 --set batch=1 "$models/lenet.net"
expect 2 "--at and --samples are for" show memory --samples=9 "$models/lenet.net"
expect 2 "--arch is for show kernels," show plan --arch=sm_80 "$models/lenet.net"
expect 2 "--lineinfo is for show kernels," show fused --lineinfo=model "$models/lenet.net"
expect 2 "show recipe shows all graphs: it takes no --graph" \
    show recipe --graph=eval "$models/lenet.net"
expect 2 "--act applies to a graph --from a file" show fused --act=f32 "$cnn"
for option in --set=batch=2 --without=bit_packing --graph=eval; do
    expect 2 "apply to a model, but --from reads a graph" \
        show --from=fused --to=plan $option resnet9/07-fused.ir
done
expect 2 "show launches takes --target=host" show kernels --target=host "$models/lenet.net"
expect 0 "read and written by" show launches --target=host "$models/lenet.net"
expect 0 "bytes read and written by 1 launch" \
    show launches --graph=init "$models/lenet.net"
expect 74 "/show: No such file" show --dump-to=/none/show "$models/lenet.net"

# ---- kernels ----

# Without registers, which NVRTC would compile each kernel for.
mkdir hidden
: >hidden/libnvrtc.so.13
: >hidden/libnvrtc.so.12
searched=${LD_LIBRARY_PATH-}
export LD_LIBRARY_PATH="$work/hidden:$searched"
schema="python3 $SINTER_SOURCE/tests/tools/schema.py \
    $SINTER_SOURCE/docs/kernels.schema.json"
for model in resnet9 gpt_nano airbench94_muon; do
    "$SINTER" show kernels --json "$models/$model.net" >kernels.json
    $schema kernels.json || fail "$model: kernels.json is not as its schema says"
done
sed 's/"bytes"/"byts"/' kernels.json >wrong.json
$schema wrong.json >/dev/null && fail "schema.py finds no fault"

# Configurations of tile kernels: each generation has its own, the fastest by the
# estimate is first, the last two are for kernels that spill with the others, and
# small gradients of weights are split.
cat >ranked.py <<'END'
import json, sys
tiles = [l["tile"] for l in json.load(open(sys.argv[1]))["launches"] if l["tile"]]
lists = [k["configurations"] for t in tiles for k in t["kernels"]]
times = [[c["seconds"] for c in l] for l in lists]
assert lists and times == [sorted(t[:-2]) + t[-2:] for t in times]
assert all(t["seconds"] >= t["kernels"][0]["configurations"][0]["seconds"]
           for t in tiles)
assert any(c["parts"] > 1 and c["workspace_bytes"] > 0 for l in lists for c in l)
print(max(c["columns"] for l in lists for c in l))
END
for device in h200 a100; do
    "$SINTER" show kernels --json --device=$device "$models/resnet9.net" >$device.json
done
[ "$(python3 ranked.py h200.json)" = 256 ] || fail "h200: no tile of 256 columns"
[ "$(python3 ranked.py a100.json)" = 128 ] || fail "a100: not tiles of its own"
# shown STAGE TEXT: a line of the stage for an H200 is like that.
shown() {
    "$SINTER" show "$1" --device=h200 "$models/resnet9.net" >shown.txt
    grep -q "$2" shown.txt || fail "show $1 has no line like '$2'"
}
shown fusion "us: 128x[0-9]*x64, 8 warps, [0-9]* parts$"
shown tile "^// 128x[0-9]*x64, 8 warps: [0-9]* blocks, .* us on NVIDIA H200, estimated$"
shown kernels "^// tile  *t[0-9]*_conv__.*: 128x[0-9]*x64, 8 warps, [0-9.]* us$"

# Launches have the bytes that check prints for a step, and charge each byte and
# flop once.
cat >sum.py <<'END'
import json, sys
kernels, check = (json.load(open(path)) for path in sys.argv[1:])
steps = {step["name"]: step for step in check["steps"]}
for name, step in steps.items():
    mine = [l for l in kernels["launches"] if l["step"] == name]
    assert sum(l["bytes"] for l in mine) == step["bytes_moved"], name
    calls = sum(l["flops"] for l in mine if l["kind"] == "call")
    assert calls == step["flops"], name
    for l in mine:
        for cost in "bytes", "flops":
            assert sum(c[cost] for c in l["charges"]) == l[cost], (l["name"], cost)
END
"$SINTER" show kernels --json "$cnn" >kernels.json
"$SINTER" check --json --target=cuda "$cnn" >check.json
python3 sum.py kernels.json check.json || fail "kernels.json and check differ"

# A step is all of its batches, of which the last one trains.
cat >step.py <<'END'
import json, re, sys
check, text, n = json.load(open("check.json")), open("out").read(), int(sys.argv[1])
step = {step["name"]: step for step in check["steps"]}
for key, of_step in ("flops_step", "flops"), ("launches", "launches"):
    batches = step["train"][of_step]
    if n > 1:
        batches += (n - 1) * step["accumulate"][of_step]
    assert check[key] == batches, (n, key)
flops, unit = re.search(r"^flops  +(\S+) ([kMG]) per step$", text, re.M).groups()
assert flops == f"{check['flops_step'] / {'k': 1e3, 'M': 1e6, 'G': 1e9}[unit]:.1f}"
launches = re.search(r"^launches +(\d+) per step", text, re.M).group(1)
assert int(launches) == check["launches"]
traffic = re.search(r"^memory traffic +(\S+) KiB per sample$", text, re.M).group(1)
assert traffic == f"{check['bytes_moved_per_sample'] / 1024:.1f}"
END
for n in 1 2; do
    "$SINTER" check --target=cuda --json --max-batch --set accumulate=$n "$cnn" >check.json
    "$SINTER" check --target=cuda --set accumulate=$n "$cnn" >out
    python3 step.py $n || fail "check of $n batches"
    python3 "$SINTER_SOURCE/tests/tools/schema.py" \
        "$SINTER_SOURCE/docs/check.schema.json" check.json || fail "check.json"
done

# Every text is there once, also one that is shared with a step that is not shown.
cat >texts.py <<'END'
import json, sys
kernels = json.load(sys.stdin)
launches, merged = kernels["launches"], kernels["merged_launches"]
texts = {l["text_of"] for l in launches} - {None}
assert texts, "no kernels"
assert sorted(texts) == sorted(l["name"] for l in launches if l["text"])
names = {j["name"] for j in merged}
assert sorted(names) == sorted(j["name"] for j in merged if j["text"])
place = {(l["step"], l["index"]): l for l in launches}
# What is read of a launch before is so for a reason.
made = set()
for l in launches:
    for t in l["reads"]:
        assert (t["reason"] is None) == (t["node"] not in made), t
    made |= {t["node"] for t in l["writes"]}
assert made
for j in merged:
    parts = [place[j["step"], j["index"] + i] for i in range(j["count"])]
    assert all(p["merged_launch"] == j["name"] for p in parts), j["name"]
    assert j["bytes"] == sum(p["bytes"] for p in parts), j["name"]
END
for shown in airbench94/train airbench94/train_2 vit_tiny/train; do
    "$SINTER" show kernels --json --graph=${shown#*/} "$models/${shown%/*}.net" |
        python3 texts.py || fail "texts of $shown"
done
expect 0 "// source: see above" show kernels "$models/airbench94.net"

# A name in a text stands for an operation that is the same in each launch that
# shares it.
cat >nodes.py <<'END'
import json, re, sys
launches = json.load(sys.stdin)["launches"]
first = {l["name"]: l for l in launches if l["text"]}
checked = 0
for l in launches:
    here = dict(l["text_nodes"])
    operations = {o["node"]: (o["op"], o["type"]) for o in l["operations"]}
    for o in first[l["text_of"]]["operations"] if here else []:
        node = o["node"]
        if re.search(r"\bv%d\b" % node, first[l["text_of"]]["text"]):
            assert operations[here.get(node, node)] == (o["op"], o["type"]), \
                (l["step"], l["index"], node)
            checked += 1
assert checked, "nothing is shared"
END
"$SINTER" show kernels --json "$models/airbench94.net" | python3 nodes.py ||
    fail "names in shared texts are of other operations"

# A layer that is asked for is told whose numbers its text has, and its own.
cat >own.py <<'END'
import json, re
launches = json.load(open("vgg.json"))["launches"]
text = open("vgg.cu").read()
chosen = json.load(open("chosen.json"))["launches"]
shared = [l for l in chosen if l["text_nodes"]]
assert shared, "nothing is shared"
for l in shared:
    block = text.split(f"\n// {l['name']}\n")[1].split("\n\n")[0]
    first = next(f for f in launches if f["text_of"] == l["text_of"])
    layer = first["operations"][0]["path"]
    assert (f"// nodes      numbered as in launch {first['index']} of {first['step']}, "
            f"{layer}; here\n") in block, block[:2000]
    rows = re.findall(r"^//  +(\d+) is %(\d+) (\w+) ", block, re.M)
    assert [[int(a), int(b)] for a, b, _ in rows] == l["text_nodes"], l["name"]
    here = {o["node"]: o["op"] for o in l["operations"]}
    assert all(here.get(int(b), op) == op for _, b, op in rows)
    assert {o["node"] for o in l["operations"]} <= {int(b) for _, b, _ in rows}
END
"$SINTER" show kernels --json --graph=train "$models/vgg16_bn.net" >vgg.json
"$SINTER" show kernels --graph=train --op=stage1.batch_norm_2 \
    "$models/vgg16_bn.net" >vgg.cu
"$SINTER" show kernels --json --graph=train --op=stage1.batch_norm_2 \
    "$models/vgg16_bn.net" >chosen.json
python3 own.py || fail "numbers of a shared text"

expect 0 "// roofline   78.14 us on NVIDIA H200, by arithmetic" \
    show kernels --kernel=c07_conv__layer1 "$cnn"
expect 0 "on NVIDIA H200 fused as statistics into c07_conv__layer1" \
    show kernels --line=14 --kernel='k08*' "$cnn"
expect 0 "// lines      resnet9.net:14, 27" show kernels --line=27 --kernel='k60*' "$cnn"
expect 0 "  merged as m43_44_batch_norm_" show launches "$cnn"

# shown OPTION...: the names of what is shown, without the rest of them.
shown() {
    "$SINTER" show kernels --graph=train "$@" "$cnn" |
        sed -nE 's/^\/\/ ([ckm][0-9]+(_[0-9]+)*)_.*/\1/p' | tr '\n' ' '
}

# Merged launches have a name of their own, are of all lines and layers that their
# kernels are of, and stand behind them.
[ "$(shown --kernel='m43*')" = "m43_44 " ] || fail "m43*: $(shown --kernel='m43*')"
[ "$(shown --kernel='k4[34]*')" = "k43 k44 " ] || fail "k4[34]*: $(shown --kernel='k4[34]*')"
[ "$(shown --line=27)" = "k09 m09_10 k60 m59_60 " ] || fail "line 27: $(shown --line=27)"
[ "$(shown --line=27 --kernel='m5*')" = "m59_60 " ] ||
    fail "line 27: $(shown --line=27 --kernel='m5*')"
[ "$(shown --op='input.*')" = "k02 k03 m02_03 " ] || fail "input: $(shown --op='input.*')"
# Listings say which of all are chosen; a merged name is that of its parts.
expect 0 "   480250880  bytes read and written by 2 launches of 65" \
    show launches --line=27 "$cnn"
[ "$(grep -c '^ *[0-9]*  [ckm][0-9]' out)" -eq 2 ] || fail "launches of line 27: $(cat out)"
expect 0 " by 2 launches of 65" show launches --kernel='m43*' "$cnn"
"$SINTER" show fusion --device=h200 --kernel='k09*' "$cnn" >out
grep -A1 '^  is not merged with k08_' out |
    grep -q '^    because k08_.* takes [1-9][0-9].* us, and a launch saved 1.50 us' ||
    fail "the price of a merge is not shown"
[ "$("$SINTER" show fusion --kernel='m43*' "$cnn" | grep -c '^k4[34]_')" -eq 2 ] ||
    fail "fusion of m43*"
"$SINTER" show fusion --line=27 "$cnn" >out
[ "$(grep -c '^[ck]' out)" -eq 2 ] || fail "fusion of line 27"
# What is not shown does not say what it reads, so what is shown does.
grep -A 1 '  leaves %.* to c61_conv_grad__layer1$' out |
    grep -q 'because a library call reads its operands from memory' ||
    fail "line 27: $(cat out)"
grep -q '^  leaves .* to k60_' out && fail "said twice: $(cat out)"
"$SINTER" show fusion "$cnn" | grep -q '^  leaves ' && fail "all is said twice"
expect 2 "; line 14 is the nearest" show fusion --line=1 "$cnn"

# Bytes to whitened images are no prologue: a tap would compute each of them.
"$SINTER" show fusion --device=h200 --kernel='c15*' \
    "$SINTER_SOURCE/models/airbench94.net" >out
sed -n 's/.*_whiten computes windows: as a prologue estimated at \(.*\) us in place of /\1 /p' \
    out | awk '$1 > 4 * $2 { found++ } END { exit found != 1 }' ||
    fail "a kernel of windows is a prologue"
expect 2 "no graph 'tain'" show launches --graph=tain --line=1 "$cnn"
# Those of devices that take other fusions are there by name.
expect 0 "// not used on NVIDIA H200" show kernels --kernel='m08_09*' "$cnn"
"$SINTER" show kernels --kernel='m43*' "$cnn" >out
grep -q '^// merges     k43_batch_norm_.*__layer3$' out && grep -q '^//            then k44_' out &&
    grep -q '^// lines      resnet9.net:14, 29, 30$' out && grep -q ', 2 phases$' out ||
    fail "merged: $(cat out)"
expect 2 "did you mean m05_06_batch_norm_relu__prep?" \
    show kernels --kernel=m05_60_batch_norm_relu__prep "$cnn"
expect 2 "did you mean 'k40*'?" show kernels --kernel=k40 "$cnn"
"$SINTER" show kernels --op='layer1.*' --kernel='[ck]0*' --graph=train --json \
    "$cnn" | tr '{' '\n' >out
grep -q '^"name": "k08.*__layer1' out || fail "--op=layer1.* finds nothing"
grep -qE '^"name": "[kc][0-9]+_.*__layer[23]' out && fail "--op=layer1.* finds others"
expect 2 "did you mean layer1.*?" show kernels --op=layer9 "$cnn"
expect 2 "did you mean layer1.conv_1?" show kernels --op=layer1.cnv_1 "$cnn"
expect 2 "no operation has the path 'nosuch'; sinter" show kernels --op=nosuch "$cnn"
expect 2 "did you mean c07_conv__layer1?" show kernels --kernel=c7_conv__layer1 "$cnn"
expect 2 "no kernel is called 'x*'; see sinter show launches" \
    show kernels --kernel='x*' "$cnn"
expect 2 "no line 9999: resnet9.net ends at line 47" show kernels --line=9999 "$cnn"
expect 2 "no line 48: " show kernels --line=48 "$cnn"
expect 2 "no kernel comes from line 1 of resnet9.net; line 14 is the nearest" \
    show kernels --line=1 "$cnn"
expect 2 "; line 14 and line 18 are the nearest" show kernels --line=15 "$cnn"
expect 2 "--line needs a number from 1, or FILE:N, not 'nets.net:'" \
    show kernels --line=nets.net: "$cnn"

# A line of another file is asked for with its name.
{
    printf 'import "resnet9.net" { ResNet9, mean }\n'
    sed -n '/^train/,$p; /^import .*vision/p' "$cnn"
} >recipe.net
cp "$cnn" .
"$SINTER" show launches --line=resnet9.net:27 recipe.net | grep '^ ' >theirs
"$SINTER" show launches --line=27 "$cnn" | grep '^ ' | cmp -s - theirs ||
    fail "line 27 of another file: $(cat theirs)"
expect 2 "no kernel comes from line 1 of resnet9.net; line 14 is the nearest" \
    show kernels --line=resnet9.net:1 recipe.net
expect 2 "no kernel comes from line 1 of other.net; nor from any other line" \
    show kernels --line=other.net:1 recipe.net
# Files of one name are told apart by their folders.
mkdir -p same/lib same/other
echo 'fn head(x) = x |> linear(30) |> relu' >same/lib/net.net
printf '#\nfn tail(x) = x |> linear(10)\n' >same/other/net.net
{
    printf 'import "lib/net.net" { head }\nimport "other/net.net" { tail }\n'
    sed '/|> conv\|> linear(120)/d; s/|> linear(10)/|> head |> tail/' \
        "$models/lenet.net"
} >same/net.net
"$SINTER" show graph same/net.net >same.ir
for file in net lib/net other/net; do
    grep -q "# $file.net:[0-9]" same.ir || fail "nothing is of $file.net"
done
"$SINTER" show --from=graph --to=graph same.ir | cmp - same.ir || failed=1
expect 0 "_linear_relu" show launches --line=lib/net.net:1 same/net.net
expect 2 "no kernel comes from line 1 of net.net; line" \
    show launches --line=net.net:1 same/net.net
# A kernel of lines of several files is of these, and of no file called after
# all of them.
"$SINTER" build --emit=c --lineinfo=model -o same same/net.net
sed -n 's/^#line [0-9]* //p' same/net.cu | sort -u | tr '\n' ' ' >said
[ "$(cat said)" = '"lib/net.net" "net.cu" "net.net" "other/net.net" ' ] ||
    fail "files of the lines: $(cat said)"
expect 2 "no kernel matches all of --line, --kernel and --op" \
    show kernels --line=18 --op=prep.conv_1 "$cnn"
expect 2 "no graph 'tain'" show kernels --graph=tain "$cnn"
expect 2 "--arch needs a list such as sm_80,sm_90" show kernels --arch=90 "$cnn"

LD_LIBRARY_PATH=$searched

# ---- memory, parameters, recipe ----

for model in resnet9 lenet unet_seg; do
    "$SINTER" show memory "$models/$model.net" >memory || fail "memory of $model"
    # What is live at the peak is what the lines put there, and in the arena
    # nothing that lives at the same time lies in the same place.
    python3 - memory <<'END' || fail "show memory $model"
import re, sys
text = open(sys.argv[1]).read()
rows = [tuple(map(int, row)) for row in re.findall(
    r"^ +(\d+) +(\d+)  (\d+)\.\.(\d+)", text, re.M)]
marked = re.findall(r"^ +\d+ +(\d+)  \d+\.\.\d+ +\*", text, re.M)
lines = re.findall(r"^ +(\d+)  \S+:\d+$", text, re.M)
assert rows and sum(map(int, marked)) == sum(map(int, lines))
peak = max(sum(b for _, b, first, last in rows if first <= k <= last)
           for k in range(max(row[3] for row in rows) + 1))
assert peak == sum(map(int, marked))
for i, (offset, size, first, last) in enumerate(rows):
    for other, its_size, its_first, its_last in rows[:i]:
        assert (offset + size <= other or other + its_size <= offset or
                last < its_first or its_last < first), (offset, other)
END
done
# The largest step is not always the one that is shown.
"$SINTER" check --target=cuda "$models/airbench94.net" | sed -n 's/^arena *//p' >arena
expect 0 "arena of all steps         $(cat arena)" show memory "$models/airbench94.net"
expect 0 "10 parameters, 61706 numbers" show params "$models/lenet.net"
expect 0 "conv_1.bias                      f32[6]" show params "$models/lenet.net"
expect 0 "ResNet9: 2328 updates of 512 samples, 97 in an epoch" show recipe "$cnn"
# What is frozen is a parameter too, also where a step reads a copy of it alone.
expect 0 "18 parameters, 6571609 numbers" show params "$models/resnet9_tricks.net"
expect 0 "  fixed  " show params "$models/resnet9_tricks.net"
"$SINTER" check --target=cuda --json "$models/resnet9_tricks.net" 2>said |
    grep -q '"parameters": 6571609,' || fail "check counts other parameters"
expect 0 "adamw lr" show recipe --samples=1000 "$models/lenet.net"
expect 0 "lars momentum" show recipe --samples=1000 \
    --set "optimizer=lars(lr=1)" "$models/lenet.net"
expect 0 "  lamb " show params --set "optimizer=lamb(lr=1e-3)" "$models/lenet.net"
expect 0 "(assumed; give the number of samples with --samples=N)" show recipe "$models/lenet.net"
expect 0 "2345 updates of 128 samples, 469 in an epoch" \
    show recipe --samples=60000 "$models/lenet.net"
"$SINTER" show recipe --at=0,485,2328 "$cnn" >out
# The rate rises to 0.4 in five epochs of 97, and falls to 0.
grep -qE '^lr +0 +0\.4 +0 ' out || fail "show recipe: $(cat out)"
grep -qE '^sgd lr +0 +0\.00078125 .* prep.conv_1.weight and 24 more' out ||
    fail "show recipe: $(cat out)"
expect 2 "--at needs numbers such as 0,10,100" show recipe --at=x "$cnn"
expect 2 "--at needs numbers such as 0,10,100" show recipe --at= "$cnn"
expect 2 "2329 is past the end of the run, 2328 updates" \
    show recipe --at=0,2329 "$cnn"

# ---- machine code ----

# Kernels are in the order of the launches, each with its comment, and above
# instructions is the line that they are from.
sass_shows() {
    kernel=$(grep '^KERNEL(.*) k08' emitted/resnet9.cu)
    line=$(grep -n '^KERNEL(.*) k08' emitted/resnet9.cu | cut -d: -f1)
    comment=$(sed -n '/^\/\/ k08_.*: resnet9.net:14$/,/^[^/]/p' emitted/resnet9.cu |
        grep '^//')
    cat >wanted <<END
// sm_90 by NVRTC

$comment
k08_batch_norm__layer1:
        // resnet9.cu:$line  $kernel
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/              @!P0 BRA \`(.L_x_0) ;
END
    LINE=$line KEPT=kept.cubin PATH=$work:$PATH \
        "$SINTER" show sass --kernel='k08*' "$cnn" |
        sed 's/NVRTC [0-9.]*$/NVRTC/' | diff wanted - || fail "show sass"
    # The places are those of the file that is emitted.
    readelf --debug-dump=decodedline kept.cubin 2>/dev/null |
        awk '$1 == "resnet9.cu" {print $2}' | grep -qx "$line" ||
        fail "no code is of line $line"
    PATH=$work:$PATH "$SINTER" show sass --kernel='k0[89]*' "$cnn" >out
    [ "$(grep '^k' out | tr '\n' ' ')" = \
        "k08_batch_norm__layer1: k09_max_pool__layer1: " ] ||
        fail "kernels: $(grep '^k' out)"
}

# wrong STATUS TEXT: what is said where nvdisasm of wrong/ is the first.
wrong() {
    chmod +x wrong/nvdisasm
    (PATH=$work/wrong:$PATH TMPDIR=$work/empty expect "$1" "$2" \
        show sass --kernel='k12*' "$cnn"; exit $failed) || failed=1
    [ -z "$(ls empty)" ] || fail "left behind: $(ls empty)"
}

sass_fails() {
    mkdir wrong empty
    printf '#!/bin/sh\necho "nvdisasm fatal   : Cannot decode SM90" >&2\nexit 1\n' \
        >wrong/nvdisasm
    wrong 4 "cannot read code of sm_90 by NVRTC"
    wrong 4 ": nvdisasm fatal   : Cannot decode SM90"
    printf '#!/bin/sh\nexit 3\n' >wrong/nvdisasm
    wrong 4 "it gives no reason"
    printf '#!/bin/sh\necho hello\n' >wrong/nvdisasm
    wrong 4 "nvdisasm printed only a part of the code of k12_batch_norm__layer1"
    # Of what is cut off, the last kernel is not whole.
    printf '#!/bin/sh\n%s/nvdisasm "$@" | sed "/NOP/,\$d"\n' "$work" \
        >wrong/nvdisasm
    wrong 4 "nvdisasm printed only a part of the code of k12_batch_norm__layer1"
    printf 'hello\n' >wrong/nvdisasm
    wrong 4 "wrong/nvdisasm: Exec format error"
    (PATH=$work:$PATH TMPDIR=$work/none expect 74 "none/sinter-" \
        show sass --kernel='k12*' "$cnn"; exit $failed) || failed=1
    # A folder of that name is no program.
    rm wrong/nvdisasm
    mkdir wrong/nvdisasm
    PATH=$work/wrong:$work:$PATH "$SINTER" show sass --kernel='k12*' "$cnn" \
        >out || fail "a folder is run"
    rmdir wrong/nvdisasm
    # What is interrupted leaves nothing behind once its program ends.
    printf '#!/bin/sh\nexec sleep 1\n' >wrong/nvdisasm
    chmod +x wrong/nvdisasm
    PATH=$work/wrong:$PATH TMPDIR=$work/empty \
        "$SINTER" show sass --kernel='k12*' "$cnn" >out 2>&1 &
    until ls empty/*/kernels.sass >/dev/null 2>&1; do
        kill -0 $! || fail "there is nothing to interrupt"
        sleep 0.1
    done
    kill $!
    wait $!
    for _ in $(seq 50); do
        [ -z "$(ls empty)" ] && break
        sleep 0.1
    done
    [ -z "$(ls empty)" ] || fail "left behind: $(ls empty)"
    wait $late
    status=$?
    grep -q 'late/nvdisasm was stopped after' out.late &&
        [ $status -eq 4 ] || fail "late: $status, $(cat out.late)"
}

"$SINTER" show ptx --kernel='k12*' "$cnn" >out 2>said
case $? in
0)
    grep -q '\.entry k12_batch_norm__layer1' out || fail "no entry in ptx"
    grep -q "x09" out && fail "tabs of ptx are escaped"
    [ "$(grep -c '^k02' resnet9/13-sass.sass)" = 1 ] || fail "no machine code"
    expect 0 "// sm_80      " show kernels --kernel='k12*' --arch=sm_80 "$cnn"
    # The oldest described GPU has no instruction for two halves at once.
    expect 0 "// sm_75      " show kernels --kernel='k09*' --device=t4 "$cnn"
    # Of merged launches the code is there that they alone run, all of it.
    "$SINTER" show ptx --kernel='m43*' "$cnn" >out
    grep '\.entry' out | grep -q ' m43_44_' && [ "$(grep -c '\.entry' out)" -eq 1 ] ||
        fail "merged: $(grep '\.entry' out)"
    expect 0 "// sm_90      " show kernels --kernel='m43*' "$cnn"
    [ "$(PATH=$work:$PATH "$SINTER" show sass --kernel='[km]4[34]*' "$cnn" |
        grep '^[km]' | cut -c-6 | tr '\n' ' ')" = "k43_ba k44_ba m43_44 " ] ||
        fail "merged kernels in sass"
    "$SINTER" show ptx --graph=train_2 --kernel='*_max_pool_batch_norm' \
        "$models/airbench94.net" >out
    [ "$(grep -c '\.entry' out)" -eq 3 ] || fail "shared: $(grep '\.entry' out)"
    expect 2 "the selected launches are library calls" \
        show ptx --kernel='c07*' "$cnn"
    (PATH=/bin expect 4 "install it and have its folder" \
        show sass --kernel='k12*' "$cnn"; exit $failed) || failed=1
    # The disassembler is looked for before anything is compiled.
    (PATH=/bin expect 4 "install it and have its folder" \
        show sass --kernel='k12*' --arch=sm_12 "$cnn"; exit $failed) || failed=1
    expect 4 "invalid value for --gpu-architecture" \
        show ptx --kernel='k12*' --arch=sm_12 "$cnn"
    sass_shows
    sass_fails
    ;;
4)
    grep -q "NVIDIA's compiler" said || fail "no reason: $(cat said)"
    ;;
*)
    fail "show ptx: $(cat said)"
    ;;
esac

# What is emitted with the model's lines is the same program.
"$SINTER" build --emit=c --lineinfo=model -o lines "$models/mlp.net"
grep -q '#line 1[0-9] "mlp.net"' lines/mlp.cu || fail "no directive"
grep -q 'kernel_lines = true' lines/mlp.c || fail "no line tables in a trainer"
"$SINTER" build --emit=c -o plain "$models/mlp.net"
grep -v '^#line' lines/mlp.cu | cmp - plain/mlp.cu || failed=1

exit $failed
