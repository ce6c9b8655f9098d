#!/bin/sh
# The runtime works without runtime/cuda/tune: device.c alone includes its
# header and needs three functions of it.
set -u
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

cuda=$SINTER_SOURCE/runtime/cuda
users=$(cd "$cuda" && grep -l 'cuda/tune/' ./*.[ch] [!t]*/*.[ch])
[ "$users" = ./device.c ] || fail "tune.h is included by $users"

cat >untuned.c <<'C'
#include "runtime/cuda/tune/tune.h"

bool rt_tuning_tiles(RtCuda *c, const RtOptions *o, RtError *e) {
    (void)c, (void)o, (void)e;
    return true;
}

bool rt_tuning_load(RtCuda *c, const RtOptions *o, RtError *e) {
    (void)c, (void)o, (void)e;
    return true;
}

bool rt_tune(RtDevice *d, const RtStep *step, const char **report, RtError *e) {
    (void)d, (void)step, (void)report;
    return rt_fail(e, EXIT_USAGE, "no tuning");
}
C
mkdir -p bin lib/sinter include
cp "$SINTER" bin
ln -s "$SINTER_INCLUDE" include/sinter
cp "$SINTER_LIB/libsinter_rt.a" lib/sinter
for source in "$cuda"/tune/*.c; do
    ar d lib/sinter/libsinter_rt.a "$(basename "$source").o"
done
"$CC" -c -I "$SINTER_SOURCE" untuned.c && ar r lib/sinter/libsinter_rt.a untuned.o

# train NAME: the losses of some steps in NAME.
train() {
    expect 0 "./$1" --device=cuda:0 --data=synthetic:64 --epochs=1 \
        --log-every=1 --metrics="$1.rows" --out=run --quiet
    sed -n 's/.*"split":"step".*"loss":\([^,}]*\).*/\1/p' "$1.rows" >"$1.loss"
    [ -s "$1.loss" ] || fail "$1: no losses"
    rm -rf run
}

net=$here/tiny.net
expect 0 "$SINTER" build "$net" -o tuned
expect 0 bin/sinter build "$net" -o untuned
train tuned
train untuned
expect_equal tuned.loss untuned.loss
expect 2 ./untuned --device=cuda:0 --data=synthetic:64 --tune --out=run
expect_says "no tuning"
