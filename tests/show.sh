#!/bin/sh
# What sinter shows of models: stages read back and are carried on to the same
# later stage, and all are written into a folder.
set -u

work=$(mktemp -d "${TMPDIR:-/tmp}/show-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
models=$SINTER_SOURCE/models

fail() {
    echo "$*" >&2
    failed=1
}

# expect STATUS TEXT WORD...: sinter's status, and a line of what it prints.
expect() {
    status=$1
    text=$2
    shift 2
    "$SINTER" "$@" >out 2>&1
    got=$?
    if [ "$got" -ne "$status" ] || ! grep -qF -e "$text" out; then
        fail "sinter $*: status $got, not $status, or no '$text':"
        head -20 out >&2
    fi
}

# ---- stages ----

for model in resnet9 gpt_nano; do
    act=f16
    [ "$model" = gpt_nano ] && act=bf16
    "$SINTER" show --dump-to="$model" "$models/$model.net" || fail "dump $model"
    for stage in 02-graph 03-grad 04-typed 05-layout 06-simplified 07-fused \
        08-plan; do
        "$SINTER" show --from=${stage#*-} $model/$stage.ir |
            cmp -s - $model/$stage.ir || fail "$model/$stage does not read back"
        [ $stage = 08-plan ] && continue
        "$SINTER" show --from=${stage#*-} --to=fused --act=$act --target=cuda \
            $model/$stage.ir | cmp -s - $model/07-fused.ir ||
            fail "$model/$stage does not become what is fused"
    done
    "$SINTER" build --emit=c -o emitted "$models/$model.net"
    cmp emitted/$model.cu $model/09-kernels.cu || failed=1
    cmp emitted/$model.c $model/10-trainer.c || failed=1
done
expect 0 "KERNEL(256)" show --from=fused --to=kernels resnet9/07-fused.ir
expect 0 "|> call " show ast "$models/lenet.net"
printf 'model A(image: u8[N, 28, 28, 1]) -> {\n' >broken.net
expect 1 "broken.net:1:37" show ast broken.net
expect 74 "No such file" show ast none.net
expect 2 "not from fused to grad" show --from=fused --to=grad resnet9/07-fused.ir
expect 2 "not from ast to plan" show --from=ast --to=plan resnet9/07-fused.ir
expect 2 "did you mean fused?" show --from=fusd resnet9/07-fused.ir
expect 74 "/show: No such file" show --dump-to=/none/show "$models/lenet.net"

exit $failed
